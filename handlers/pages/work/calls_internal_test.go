package work

import (
	"testing"
	"time"

	"agentsite/internal/hub"
)

func TestStatChart_DrawsDays(t *testing.T) {
	t.Parallel()
	today := time.Now().UTC().Truncate(24 * time.Hour)
	p := statChart([]hub.Day{{Day: today.AddDate(0, 0, -40), Calls: 9}, {Day: today.AddDate(0, 0, -29), Calls: 1}, {Day: today, Calls: 4, Failed: 1}})
	if len(p.Bars) != 3 || p.Bars[0].X != "0" || p.Bars[1].X != "290" || p.Bars[2].State != "failed" {
		t.Errorf("bars: %+v", p.Bars)
	}
}

func TestWirePairs_PutAnswersBesideRequests(t *testing.T) {
	t.Parallel()
	got := wirePairs([]hub.Trace{{Sent: true, Head: "POST /a", Body: `{"a":1}`, Size: 7}, {Head: "200", Body: "half", Size: 4096}, {Head: "again"}, {Sent: true, Head: "GET /b"}})
	if len(got) != 3 || got[0].Sent.Head != "POST /a" || got[0].Sent.Body != "{\n  \"a\": 1\n}" || got[0].Got.Cut != "The first 4 bytes of 4 KiB." || got[1].Sent != nil || got[2].Got != nil {
		t.Errorf("pairs: %+v", got)
	}
}

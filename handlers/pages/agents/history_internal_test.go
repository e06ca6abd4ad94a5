package agents

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentsite/internal/hub"
)

func contacts(now time.Time, every time.Duration, states ...hub.Live) []hub.Contact {
	out := make([]hub.Contact, len(states))
	for i, s := range states {
		out[i] = hub.Contact{At: now.Add(-every * time.Duration(len(states)-i)), State: s, Latency: 20 * time.Millisecond}
	}
	return out
}

func TestUptime_WeighsByTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 12, 12, 0, 0, 0, time.UTC)
	list := []hub.Contact{{At: now.Add(-30 * time.Hour), State: hub.Alive}, {At: now.Add(-6 * time.Hour), State: hub.Unreachable}, {At: now.Add(-5 * time.Hour), State: hub.Unreachable}, {At: now.Add(-3 * time.Hour), State: hub.Alive}}
	for _, c := range []struct {
		span  time.Duration
		want  float64
		known time.Duration
	}{{24 * time.Hour, 21. / 24, 24 * time.Hour}, {4 * time.Hour, 3. / 4, 4 * time.Hour}, {7 * 24 * time.Hour, 27. / 30, 30 * time.Hour}, {time.Hour, 1, time.Hour}} {
		if share, known := uptime(list, now, c.span); share != c.want || known != c.known {
			t.Errorf("in %v: %v of %v, want %v of %v", c.span, share, known, c.want, c.known)
		}
	}
	got := uptimeTexts(list, now)
	if want := []string{"Alive 87% of the last 24 hours", "Alive 90% of the last 30 hours"}; !slices.Equal(got, want) {
		t.Errorf("says %q, want %q", got, want)
	}
	if got := uptimeTexts(nil, now); got != nil {
		t.Errorf("of nothing it says %q", got)
	}
}

func TestShareWords_NeverRoundUpToAll(t *testing.T) {
	t.Parallel()
	for share, want := range map[float64]string{1: "100%", .99999: "99.9%", .9954: "99.5%", .5: "50%", .001: "1%", 0: "0%"} {
		if got := shareWords(share); got != want {
			t.Errorf("%v is %s, want %s", share, got, want)
		}
	}
}

func TestHistoryPicture_ShowsTheLastAndWhatFailed(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 12, 12, 0, 0, 0, time.UTC)
	states := slices.Repeat([]hub.Live{hub.Alive}, 100)
	states[99], states[0] = hub.Unreachable, hub.WrongProtocol
	p := historyPicture(contacts(now, 5*time.Minute, states...))
	if len(p.Bars) != historyBars || p.Bars[historyBars-1].State != "unreachable" || p.Bars[historyBars-1].H != strconv.Itoa(historyHeight) {
		t.Errorf("%d bars, the last %+v", len(p.Bars), p.Bars[len(p.Bars)-1])
	}
	if !strings.HasPrefix(p.Desc, "48 checks since 12 May, 08:00 UTC: 47 alive, 1 unreachable.") {
		t.Errorf("read as %q", p.Desc)
	}
	width, _ := strconv.Atoi(p.Width)
	for _, b := range p.Bars {
		x, _ := strconv.Atoi(b.X)
		w, _ := strconv.Atoi(b.W)
		y, _ := strconv.Atoi(b.Y)
		h, _ := strconv.Atoi(b.H)
		if x < 0 || x+w > width || y < 0 || y+h != historyHeight {
			t.Errorf("a bar outside of the picture: %+v", b)
		}
	}
	slow, quick := barHeight(hub.Contact{State: hub.Alive, Latency: 5 * time.Second}), barHeight(hub.Contact{State: hub.Alive, Latency: 30 * time.Millisecond})
	if slow <= quick || barHeight(hub.Contact{State: hub.Alive, Latency: time.Hour}) > historyHeight {
		t.Errorf("5 s is %d high, 30 ms %d", slow, quick)
	}
	if historyPicture(nil) != nil {
		t.Error("a picture of nothing")
	}
}

func TestSinceText_IsTheStartOfTheRun(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 12, 12, 0, 0, 0, time.UTC)
	list := contacts(now, time.Hour, hub.Alive, hub.Unreachable, hub.Alive, hub.Alive)
	line, since := sinceText(list, hub.Liveness{State: hub.Alive})
	if line != "Alive since" || since.ISO != "2026-05-12T10:00:00.000Z" {
		t.Errorf("says %q %+v", line, since)
	}
	full := contacts(now, time.Minute, slices.Repeat([]hub.Live{hub.Unreachable}, hub.MaxHistory)...)
	if line, _ := sinceText(full, hub.Liveness{State: hub.Unreachable}); line != "Does not answer since before" {
		t.Errorf("of what began before the history: %q", line)
	}
	if line, since := sinceText(nil, hub.Liveness{State: hub.Unknown}); line != "Not checked yet" || since.Text != "" {
		t.Errorf("unchecked: %q", line)
	}
}

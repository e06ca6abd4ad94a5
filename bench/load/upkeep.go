package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"agentsite/bench/corpus"
	"agentsite/bench/proc"
	"agentsite/bench/report"
)

// starts measures how long a portal takes to get ready on an empty folder.
func (b *bench) starts() error {
	const (
		bar    = 50 * time.Millisecond
		starts = 9
	)
	rounds, err := proc.Measure(b.Pick(2, starts), func() (time.Duration, error) {
		dir, err := os.MkdirTemp(b.Dir, "empty-")
		if err != nil {
			return 0, err
		}
		defer os.RemoveAll(dir)
		s, err := b.startPortal(dir)
		if err != nil {
			return 0, err
		}
		s.Stop()
		return s.Took, nil
	})
	if err != nil {
		return err
	}
	at := report.Median(rounds.List)
	b.Add(report.Line{What: fmt.Sprintf("start to ready, empty folder, median of %d", len(rounds.List)), Portal: report.Millis(at),
		Others: rounds.Share(), Doubt: rounds.Doubt, Bar: "≤ 50 ms", Judged: true, Absolute: true, Met: at <= bar})
	return nil
}

// rest holds two portals that stay idle while other rows are measured: an empty one, and one of 100
// agents that had some load.
type rest struct {
	fresh, used *server
	since       time.Time
}

func (r *rest) end() {
	for _, s := range []*server{r.fresh, r.used} {
		if s != nil {
			s.Kill()
		}
	}
}

// beginRest starts both portals and loads the one of 100 agents.
func (b *bench) beginRest() error {
	r := &rest{}
	b.rest = r
	dir := filepath.Join(b.Dir, "fresh")
	err := os.Mkdir(dir, 0o700)
	if err != nil {
		return err
	}
	if r.fresh, err = b.startPortal(dir); err != nil {
		return err
	}
	data, err := seed(filepath.Join(b.Dir, "used"), 16, 100)
	if err != nil {
		return err
	}
	if r.used, err = b.startPortal(data.dir); err != nil {
		return err
	}
	for _, l := range []load{
		{workers: 16, during: 2 * time.Second, status: http.StatusOK, request: get("/agents?q=data", "")},
		{workers: 16, each: b.Pick(50, 500), status: http.StatusCreated, request: func(addr string, w, i int) []byte {
			body, _ := json.Marshal(map[string]string{"client_id": fmt.Sprintf("%d-%d", w, i), "text": corpus.Text(i, textSize)})
			return request(addr, "/api/v1/conversations/"+data.rooms[w/2]+"/messages", data.tokens[w], string(body))
		}},
	} {
		if _, err := r.used.under(l, false); err != nil {
			return err
		}
	}
	r.since = time.Now()
	return nil
}

// idle measures the processor time of both idle portals for a minute, which begins at least a minute
// after the load.
func (b *bench) idle() error {
	const bar = 0.1 // percent of one processor
	during := time.Duration(b.Pick(5, 60)) * time.Second
	time.Sleep(time.Until(b.rest.since.Add(during)))
	list := []*server{b.rest.fresh, b.rest.used}
	var share [2]float64
	var rss [2]int64
	for i, s := range list {
		before, err := s.CPU()
		if err != nil {
			return err
		}
		share[i] = -float64(before)
	}
	time.Sleep(during)
	for i, s := range list {
		after, err := s.CPU()
		if err != nil {
			return err
		}
		share[i] = (share[i] + float64(after)) / float64(during) * 100
		if rss[i], _, err = s.Memory(); err != nil {
			return err
		}
	}
	percent := func(v float64) string { return fmt.Sprintf("%.3f %% of a processor", v) }
	b.Add(report.Line{What: fmt.Sprintf("idle, 100 agents, for %s, %s or more after load", during, during), Portal: percent(share[1]),
		Bar: "≤ 0.1 %", Judged: !b.Quick, Met: share[1] <= bar})
	b.Add(report.Line{What: "idle, empty portal", Portal: percent(share[0])})
	b.Add(report.Line{What: "memory of the empty portal, RSS", Portal: mib(rss[0]), Bar: "≤ 45 MiB", Met: rss[0] <= 45<<20})
	return nil
}

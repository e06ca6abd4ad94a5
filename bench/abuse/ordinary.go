package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"agentsite/bench/report"
)

// probes is how many single questions of the ordinary user make a median.
const probes = 20

// questionTimeout is far beyond any bar: an unanswered question counts with it.
const questionTimeout = 2 * time.Minute

// ordinary is a user with one conversation with one agent, whose answers are awaited as a browser does.
type ordinary struct {
	*person
	site  *site
	agent string
	room  string
}

func (s *site) ordinary(p *person, agent string) (*ordinary, error) {
	room, err := s.room(p, agent)
	return &ordinary{p, s, agent, room}, err
}

// ask says one thing and returns the time until the answer has come.
func (o *ordinary) ask() (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), questionTimeout)
	defer cancel()
	var c struct {
		LastSeq int64 `json:"last_seq"`
	}
	if err := o.site.call(o.person, http.MethodGet, "/api/v1/conversations/"+o.room, nil, &c); err != nil {
		return 0, err
	}
	req, err := o.site.request(ctx, o.person, http.MethodGet, fmt.Sprintf("/api/v1/conversations/%s/live?after=%d", o.room, c.LastSeq), nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := o.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("live: status %d", resp.StatusCode)
	}
	began := time.Now()
	if err := o.site.say(o.person, o.room, "2+3"); err != nil {
		return 0, err
	}
	in := bufio.NewScanner(resp.Body)
	for in.Scan() {
		data, ok := strings.CutPrefix(in.Text(), "data: ")
		if !ok {
			continue
		}
		var e struct {
			Type   string
			Reason string
			Sender struct{ Kind string }
			Task   struct{ State string }
		}
		if json.Unmarshal([]byte(data), &e) != nil || e.Type != "message" || e.Sender.Kind == "person" {
			continue
		}
		if e.Task.State != "completed" {
			return 0, fmt.Errorf("the answer of %s is %s: %s", o.agent, e.Task.State, e.Reason)
		}
		return time.Since(began), nil
	}
	return questionTimeout, nil
}

// measure asks n single questions, one after the other, and returns their times.
func (o *ordinary) measure(n int) (times []time.Duration, err error) {
	for range n {
		d, err := o.ask()
		if err != nil {
			return times, err
		}
		times = append(times, d)
	}
	return times, nil
}

// compare adds the line of one kind of question: the same quantile without and with the abuse, and the
// bar on the ratio. slack is added to the bar, because people do not feel a smaller difference.
func (b *bench) compare(what string, idle, busy time.Duration, most float64, slack time.Duration) {
	ratio := float64(busy) / float64(idle)
	b.Add(report.Line{What: what, Floor: report.Millis(idle), Portal: report.Millis(busy), Ratio: fmt.Sprintf("%.2f", ratio),
		Bar: fmt.Sprintf("≤ %.0f× idle", most), Judged: true, Met: busy <= time.Duration(most*float64(idle))+slack})
}

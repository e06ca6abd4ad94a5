package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"agentsite/bench/report"
	"agentsite/internal/linkwire"
)

// chunks a second are what an agent says.
const chunks = 50

// stream measures when readers see what an agent streams. The agent lives in
// this process and speaks the protocol of linked agents.
func (b *bench) stream(readers int) error {
	s, err := b.portal("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer s.Kill()
	var now atomic.Pointer[flight]
	up, gone := make(chan struct{}, 100), make(chan error, 1)
	agent := &linkwire.Agent{
		Hello: linkwire.Hello{Name: "speaker", Client: "bench", Description: "Speaks for a while."},
		Dial: func(ctx context.Context) (*linkwire.Socket, error) {
			return linkwire.Dial(ctx, "http://"+s.Addr, b.data.tokens[0], nil)
		},
		Work: func(ctx context.Context, _ linkwire.Task, out *linkwire.Answer) linkwire.Done {
			f, tick := now.Load(), time.NewTicker(time.Second/chunks)
			defer tick.Stop()
			for until := time.Now().Add(b.round); time.Now().Before(until); {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return linkwire.Done{State: linkwire.Failed}
				}
				out.Text(mark(f.begin(readers)) + " and some words. ")
			}
			return linkwire.Done{State: linkwire.Completed}
		},
		Connected: func(linkwire.Welcome) { up <- struct{}{} },
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() { gone <- agent.Run(ctx) }()
	defer func() { stop(); <-gone }()
	select {
	case <-up:
	case <-time.After(30 * time.Second):
		return fmt.Errorf("the agent does not get connected")
	}
	room, err := b.open(s.Addr, b.data.tokens[0], "speaker", b.data.people[1].Name)
	if err != nil {
		return err
	}
	c, err := join(s.Addr, readers, func(i int) place { return b.data.live(room, i%2) }, func(_ int, frame []byte) {
		if f := now.Load(); f != nil && bytes.Contains(frame, []byte(`"type":"delta"`)) {
			f.hear(frame)
		}
	})
	if err != nil {
		return err
	}
	defer c.leave()
	post := newPoster(s.Addr)
	var p99 []time.Duration
	var per []float64
	for i := range b.rounds + 1 {
		f := new(flight)
		now.Store(f)
		before, err := s.CPU()
		if err != nil {
			return err
		}
		if err := post.post(messages(room), b.data.tokens[0], draftOf("Speak, please.")); err != nil {
			return err
		}
		time.Sleep(b.round + 500*time.Millisecond)
		n := f.next.Load()
		if n == 0 {
			return fmt.Errorf("the agent was not asked")
		}
		for k := int64(1); k <= n; k++ {
			if err := f.await(k); err != nil {
				return err
			}
		}
		after, err := s.CPU()
		if err != nil {
			return err
		}
		if i > 0 {
			p99 = append(p99, f.times.percentile(0.99))
			per = append(per, float64((after-before).Nanoseconds())/1e3/float64(n*int64(readers)))
		}
	}
	b.Add(report.Line{What: fmt.Sprintf("streamed answer, %d chunks a second to %d readers", chunks, readers), Portal: micro(report.Median(per)), P99: ms(report.Median(p99)),
		Bar: ms(maxStream), Gated: true, Met: report.Median(p99) <= maxStream})
	return nil
}

// open makes a conversation with the named members.
func (b *bench) open(addr, token string, members ...string) (id string, err error) {
	body, err := json.Marshal(map[string]any{"title": "bench", "members": members})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequest(http.MethodPost, "http://"+addr+"/api/v1/conversations", strings.NewReader(string(body)))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{Timeout: 10 * time.Second}
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var out struct {
		ID string `json:"id"`
	}
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || out.ID == "" {
		return "", fmt.Errorf("open a conversation: %s: %w", res.Status, err)
	}
	return out.ID, nil
}

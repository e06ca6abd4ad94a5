package main

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/bench/report"
)

// pace is a load that does not wait for answers: requests at a rate, each
// timed from when it should have been sent.
type pace struct {
	rate    int // a second
	status  int
	request func(addr string, i int) []byte
}

// paceWorkers is how many requests may be under way at once.
const paceWorkers = 32

// at sends requests for a time and returns how long each took.
func (s *server) at(p pace, during time.Duration) ([]time.Duration, error) {
	n := int(during.Seconds() * float64(p.rate))
	times, fails := make([]time.Duration, n), make([]error, paceWorkers)
	conns := make([]*conn, paceWorkers)
	for w := range conns {
		c, err := dial(s.Addr)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		conns[w] = c
	}
	began := time.Now().Add(20 * time.Millisecond)
	var next atomic.Int64
	var wg sync.WaitGroup
	for w, c := range conns {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				due := began.Add(time.Duration(i) * time.Second / time.Duration(p.rate))
				req := p.request(s.Addr, i)
				time.Sleep(time.Until(due))
				status, _, err := c.do(req)
				if err == nil && status != p.status {
					err = fmt.Errorf("answered %d, want %d", status, p.status)
				}
				if err != nil {
					fails[w] = fmt.Errorf("%s, request %d: %w", s.Name, i, err)
					return
				}
				times[i] = time.Since(due)
			}
		})
	}
	wg.Wait()
	return times, errors.Join(fails...)
}

// turn is what came of some paces at once.
type turn struct {
	cpu   time.Duration
	times [][]time.Duration // of each pace
}

func (s *server) turn(during time.Duration, list ...pace) (t turn, err error) {
	before, err := s.CPU()
	if err != nil {
		return t, err
	}
	t.times = make([][]time.Duration, len(list))
	fails := make([]error, len(list))
	var wg sync.WaitGroup
	for i, p := range list {
		wg.Go(func() { t.times[i], fails[i] = s.at(p, during) })
	}
	wg.Wait()
	after, err := s.CPU()
	t.cpu = after - before
	return t, errors.Join(append(fails, err)...)
}

// paced is what a pace showed over its turns.
type paced struct {
	cpu   []float64 // µs of one operation, by turn
	p99   []float64 // ns, by turn
	times []time.Duration
}

func (p *paced) add(t turn) {
	p.cpu = append(p.cpu, us(t.cpu)/float64(len(t.times[0])))
	p.p99 = append(p.p99, float64(report.Percentile(t.times[0], 0.99)))
	p.times = append(p.times, t.times[0]...)
}

func (p *paced) worst() time.Duration { return time.Duration(report.Median(p.p99)) }

// quotients are a to b, turn by turn.
func quotients(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}

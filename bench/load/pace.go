package main

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// pace is an open loop: requests at a fixed rate, whether the earlier ones are answered or not. The
// latency of a request is measured from the moment at which it was due, so that a slow server cannot
// hide its delay.
type pace struct {
	rate    int // requests per second
	status  int
	request func(addr string, i int) []byte
}

// paceWorkers is the number of requests that may be unanswered at once.
const paceWorkers = 32

// at sends requests for the duration during and returns their latencies.
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

// together runs several paces at the same time and returns the latencies of each.
func (s *server) together(during time.Duration, list ...pace) ([][]time.Duration, error) {
	times, fails := make([][]time.Duration, len(list)), make([]error, len(list))
	var wg sync.WaitGroup
	for i, p := range list {
		wg.Go(func() { times[i], fails[i] = s.at(p, during) })
	}
	wg.Wait()
	return times, errors.Join(fails...)
}

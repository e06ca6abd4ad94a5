package main

import (
	"fmt"
	"sync"
	"time"

	"agentsite/bench/proc"
	"agentsite/bench/report"
)

// side is one of the two servers that are compared, with its load and results.
type side struct {
	*server
	load load
	rest bool         // count the work that the server does after the last answer
	end  func() error // nil, or work after each round that is not measured

	per   []float64 // µs of processor time per request, one for each round
	times []time.Duration
	size  int // body size of the last answer, in bytes
}

func (s *side) round() (outcome, error) {
	o, err := s.under(s.load, s.rest)
	if err == nil && s.end != nil {
		err = s.end()
	}
	return o, err
}

// compare runs the floor's and the portal's load in turn and adds a line with the results. bar is the
// largest permitted ratio of portal to floor; it is only printed unless judged is set.
func (b *bench) compare(name func() string, floor, portal *side, bar float64, judged bool) error {
	sides := []*side{floor, portal}
	rounds, err := proc.Measure(b.Rounds, func() (list [2]outcome, err error) {
		for i, s := range sides {
			if list[i], err = s.round(); err != nil {
				return list, err
			}
		}
		return list, nil
	})
	if err != nil {
		return err
	}
	for i, s := range sides {
		for _, r := range rounds.List {
			s.per = append(s.per, r[i].perOp())
			s.times = append(s.times, r[i].times...)
			s.size = r[i].size
		}
	}
	ratio := report.Ratios(portal.per, floor.per)
	both := func(share float64) string {
		return report.Join(report.Millis(report.Percentile(floor.times, share)), report.Millis(report.Percentile(portal.times, share)))
	}
	b.Add(report.Line{What: name(), Floor: report.Micros(report.Median(floor.per)), Portal: report.Micros(report.Median(portal.per)),
		Ratio: report.Spread(ratio), P50: both(0.5), P99: both(0.99), Others: rounds.Share(), Doubt: rounds.Doubt,
		Bar: fmt.Sprintf("≤ %.1f×", bar), Judged: judged, Met: report.Median(ratio) <= bar})
	return nil
}

// get returns a request function for a load that always sends the same request.
func get(path, cookie string) func(addr string, worker, i int) []byte {
	var once sync.Once
	var req []byte
	return func(addr string, _, _ int) []byte {
		once.Do(func() { req = visit(addr, path, cookie) })
		return req
	}
}

func short(n int) string { return fmt.Sprintf("%d,%03d", n/1000, n%1000) }

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

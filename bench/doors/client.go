package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"agentsite/bench/proc"
	"agentsite/bench/report"
)

// call is one way of asking a server.
type call struct {
	path   string
	header http.Header
	body   func(worker, i int) string
	// each, when set, gives a session headers of its own.
	each func(session int) (http.Header, error)
	// says is what every good answer holds.
	says string
}

// side is a server and what it is asked, with what came out of each round.
type side struct {
	*proc.Process
	call
	client *http.Client

	cpu   []float64 // µs a request
	speed []float64 // requests a second
	times []time.Duration
	next  int // so that no request is ever sent twice
}

// sessions is how many there are on a side, and the most connections that ask
// at once.
const sessions = 64

// newSide is a server under the name of who is asked; the caller kills it.
func newSide(p *proc.Process, c call) *side {
	return &side{Process: p, call: c, client: &http.Client{Timeout: time.Minute,
		Transport: &http.Transport{MaxIdleConns: 0, MaxIdleConnsPerHost: sessions, DisableCompression: true}}}
}

// maxAnswer bounds what is read of one answer.
const maxAnswer = 1 << 20

// ask sends one request and returns the head and text of the answer.
func (s *side) ask(h http.Header, body string) (http.Header, []byte, error) {
	req, err := http.NewRequest(http.MethodPost, "http://"+s.Addr+s.path, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header = h
	res, err := s.client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("answered %s: %.300s", res.Status, b)
	}
	return res.Header, b, err
}

// headers are what a session sends.
func (s *side) headers(session int) (http.Header, error) {
	h := s.header.Clone()
	if s.each != nil {
		more, err := s.each(session)
		if err != nil {
			return nil, err
		}
		for k, v := range more {
			h[k] = v
		}
	}
	return h, nil
}

// turn lets so many connections ask, each again once it has the answer, for a
// while, in all sessions in turn.
func (s *side) turn(atOnce int, during time.Duration) error {
	heads := make([]http.Header, sessions)
	for i := range heads {
		h, err := s.headers(i)
		if err != nil {
			return err
		}
		heads[i] = h
	}
	s.next++
	var wg sync.WaitGroup
	times, fails := make([][]time.Duration, atOnce), make([]error, atOnce)
	before, err := s.CPU()
	if err != nil {
		return err
	}
	began := time.Now()
	for w := range atOnce {
		wg.Go(func() {
			for i := 0; ; i++ {
				at := time.Now()
				if at.Sub(began) > during {
					return
				}
				_, b, err := s.ask(heads[(w+i*atOnce)%sessions], s.body(w, s.next<<24|i))
				if err == nil && !bytes.Contains(b, []byte(s.says)) {
					err = fmt.Errorf("answered without %q: %.300s", s.says, b)
				}
				if err != nil {
					fails[w] = fmt.Errorf("%s: %w", s.Name, err)
					return
				}
				times[w] = append(times[w], time.Since(at))
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	after, err := s.settled()
	for _, fail := range append(fails, err) { // one is enough to read
		if fail != nil {
			return fail
		}
	}
	n := 0
	for _, t := range times {
		n += len(t)
		s.times = append(s.times, t...)
	}
	s.cpu = append(s.cpu, float64((after-before).Nanoseconds())/1e3/float64(n))
	s.speed = append(s.speed, float64(n)/took.Seconds())
	return nil
}

const (
	// settleEvery and settleBelow say when a server has done what it put off:
	// it used less than a hundredth of a processor for so long.
	settleEvery = 100 * time.Millisecond
	settleBelow = settleEvery / 100
	// settleCalm is how often in a row: work may wait for two seconds.
	settleCalm = 25
	// settleMost bounds the wait; what comes later is some other work.
	settleMost = 30 * time.Second
)

// settled waits until a server rests, so that what it puts off is counted as
// its own and takes nothing from the other's turn, and returns the processor
// time it has used by then.
func (s *side) settled() (time.Duration, error) {
	var calm int
	last, err := s.CPU()
	for until := time.Now().Add(settleMost); err == nil && calm < settleCalm && time.Now().Before(until); {
		time.Sleep(settleEvery)
		var now time.Duration
		if now, err = s.CPU(); now-last < settleBelow {
			calm++
		} else {
			calm = 0
		}
		last = now
	}
	return last, err
}

// compare lets both sides take turns, after one of each that does not count.
func (b *bench) compare(atOnce int, sample, portal *side) error {
	for i := range b.rounds + 1 {
		for _, s := range []*side{sample, portal} {
			if i == 1 {
				s.cpu, s.speed, s.times = nil, nil, nil
			}
			if err := s.turn(atOnce, b.round); err != nil {
				return err
			}
		}
	}
	return nil
}

// figure writes what one side showed.
func (s *side) figure() string {
	return fmt.Sprintf("%.0f µs, %.0f/s", report.Median(s.cpu), report.Median(s.speed))
}

// line is the report of a comparison, without its bar.
func line(what string, sample, portal *side, ratio []float64) report.Line {
	both := func(share float64) string {
		return report.Join(report.Millis(report.Percentile(sample.times, share)), report.Millis(report.Percentile(portal.times, share)))
	}
	return report.Line{What: what, Floor: sample.figure(), Portal: portal.figure(), Ratio: report.Spread(ratio), P50: both(0.5), P99: both(0.99)}
}

// sample starts this program as a sample server.
func sample(protocol string) (*proc.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return proc.Start("sample "+protocol, self, "-sample", protocol)
}

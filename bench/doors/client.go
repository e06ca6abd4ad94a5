package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/bench/proc"
	"agentsite/bench/report"
)

// call is one kind of request that a side repeats.
type call struct {
	path   string
	header http.Header
	body   func(worker, i int) string
	// each returns further headers for one session; nil if all sessions have the same.
	each func(session int) (http.Header, error)
	// says is text that every right answer contains.
	says string
}

// side is one of the two servers that are compared, with the call that it gets.
type side struct {
	*proc.Process
	call
	client *http.Client
	rest   bool // count the work that the server does after the last answer
	turns  int  // part of each request body, so that no body repeats
}

// turn is the result of one measurement of a side.
type turn struct {
	cpu   float64 // µs of processor time per request
	speed float64 // requests per second
	times []time.Duration
}

// sessions is the number of sessions on a side, and the largest number of connections.
const sessions = 64

// newSide returns a side for a running server. The caller must end the server.
func newSide(p *proc.Process, c call) *side {
	return &side{Process: p, call: c, client: &http.Client{Timeout: time.Minute,
		Transport: &http.Transport{MaxIdleConns: 0, MaxIdleConnsPerHost: sessions, DisableCompression: true}}}
}

// maxAnswer is the number of bytes that are read of an answer at most.
const maxAnswer = 1 << 20

// ask sends one request and returns the headers and body of the answer. A status other than 2xx is an
// error.
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

// headers returns the request headers of a session. It may begin the session.
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

// turn sends requests over atOnce connections for the duration during, each when the answer to the last
// is complete, in all sessions in turn. The first wrong answer is an error.
func (s *side) turn(atOnce int, during time.Duration) (t turn, err error) {
	heads := make([]http.Header, sessions)
	for i := range heads {
		h, err := s.headers(i)
		if err != nil {
			return t, err
		}
		heads[i] = h
	}
	s.turns++
	var wg sync.WaitGroup
	times, fails := make([][]time.Duration, atOnce), make([]error, atOnce)
	before, err := s.CPU()
	if err != nil {
		return t, err
	}
	began := time.Now()
	for w := range atOnce {
		wg.Go(func() {
			for i := 0; ; i++ {
				at := time.Now()
				if at.Sub(began) > during {
					return
				}
				_, b, err := s.ask(heads[(w+i*atOnce)%sessions], s.body(w, s.turns<<24|i))
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
	after, err := s.CPU()
	if s.rest {
		after, err = s.Rest()
	}
	for _, fail := range append(fails, err) { // one error is enough to report
		if fail != nil {
			return t, fail
		}
	}
	t.times = slices.Concat(times...)
	t.cpu = float64((after - before).Nanoseconds()) / 1e3 / float64(len(t.times))
	t.speed = float64(len(t.times)) / took.Seconds()
	return t, nil
}

// compared holds the results of the sample and the portal, round by round.
type compared struct {
	cpu, speed [2][]float64 // by side (sample, portal) and round
	times      [2][]time.Duration
	others     string
	doubt      string
}

// compare measures the sample and the portal in turn.
func (b *bench) compare(atOnce int, sample, portal *side) (c compared, err error) {
	portal.rest = true
	rounds, err := proc.Measure(b.Rounds, func() (list [2]turn, err error) {
		for i, s := range []*side{sample, portal} {
			if list[i], err = s.turn(atOnce, b.Round); err != nil {
				return list, err
			}
		}
		return list, nil
	})
	for _, r := range rounds.List {
		for i, t := range r {
			c.cpu[i], c.speed[i], c.times[i] = append(c.cpu[i], t.cpu), append(c.speed[i], t.speed), append(c.times[i], t.times...)
		}
	}
	c.others, c.doubt = rounds.Share(), rounds.Doubt
	return c, err
}

// line returns the row of a comparison. The caller sets its ratio and bar.
func (c compared) line(name string) report.Line {
	figure := func(i int) string {
		return fmt.Sprintf("%s, %.0f/s", report.Micros(report.Median(c.cpu[i])), report.Median(c.speed[i]))
	}
	both := func(share float64) string {
		return report.Join(report.Millis(report.Percentile(c.times[0], share)), report.Millis(report.Percentile(c.times[1], share)))
	}
	return report.Line{What: name, Floor: figure(0), Portal: figure(1), P50: both(0.5), P99: both(0.99), Others: c.others, Doubt: c.doubt, Judged: true}
}

// sample starts this program as a sample server in a process of its own. The caller must end it.
func sample(protocol string) (*proc.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return proc.Start("sample "+protocol, self, "-sample", protocol)
}

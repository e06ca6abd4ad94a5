package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"agentsite/bench/proc"
	"agentsite/bench/report"
)

const (
	// natsRatio is the processor time of a delivery by NATS as a ratio to the floor, with 32 messages
	// under way; two measurements gave 0.99 µs to 3.2 and 1.24 to 3.6. natsAlone is the ratio with one
	// message under way: 6.5 µs to 5.2 and 7.3 to 5.8.
	natsRatio = 0.31
	natsAlone = 1.25
	// maxDelivery is the largest permitted processor time of a delivery under load, in µs.
	maxDelivery = 1.0
	maxStall    = 1.2
	maxSocket   = 40 << 10
	maxTwo      = 1.7
)

// side is one of the two servers that are compared, with its readers and its load.
type side struct {
	*server
	crowd   *crowd
	readers int
	now     atomic.Pointer[flight] // messages that the readers wait for
	send    func(worker int, k int64) error
}

func (s *side) hear(_ int, b []byte) {
	if f := s.now.Load(); f != nil {
		f.hear(b)
	}
}

// turn is the result of one measurement of a side.
type turn struct {
	per float64 // µs of processor time per delivery
	p99 time.Duration
}

func (s *side) turn(under int, during time.Duration) (turn, error) {
	f := new(flight)
	s.now.Store(f)
	o, err := s.load(f, under, during, s.readers, s.send)
	if err != nil {
		return turn{}, err
	}
	return turn{float64(o.cpu.Nanoseconds()) / 1e3 / float64(o.messages*s.readers), f.times.percentile(0.99)}, nil
}

func (s *side) end() {
	if s.crowd != nil {
		s.crowd.leave()
	}
	s.Kill()
}

// compared holds the results of the floor and the portal, round by round.
type compared struct {
	per    [2][]float64 // by side (floor, portal) and round
	p99    [2][]time.Duration
	ratio  []float64
	others string
	doubt  string
}

// compare measures both sides in turn, with the given number of messages under way.
func (b *bench) compare(under int, during time.Duration, floor, portal *side) (c compared, err error) {
	rounds, err := proc.Measure(b.Rounds, func() (list [2]turn, err error) {
		for i, s := range []*side{floor, portal} {
			if list[i], err = s.turn(under, during); err != nil {
				return list, err
			}
		}
		return list, nil
	})
	for _, r := range rounds.List {
		for i, t := range r {
			c.per[i], c.p99[i] = append(c.per[i], t.per), append(c.p99[i], t.p99)
		}
	}
	c.ratio, c.others, c.doubt = report.Ratios(c.per[1], c.per[0]), rounds.Share(), rounds.Doubt
	return c, err
}

// line returns the row of a comparison. Its bar is the largest permitted median of the ratios.
func (c compared) line(name string, bar float64) report.Line {
	return report.Line{What: name, Floor: report.Micros(report.Median(c.per[0])), Portal: report.Micros(report.Median(c.per[1])), Ratio: report.Spread(c.ratio),
		P99: report.Join(report.Millis(report.Median(c.p99[0])), report.Millis(report.Median(c.p99[1]))), Others: c.others, Doubt: c.doubt,
		Bar: fmt.Sprintf("≤ %.2f×", bar), Judged: true, Met: report.Median(c.ratio) <= bar}
}

// text returns the text of message k, 200 bytes long.
func text(k int64) string { return mark(k) + strings.Repeat(" word", 38) }

// draft returns the JSON body of the request that posts message k.
func draft(k int64) string { return draftOf(text(k)) }

func draftOf(text string) string {
	b, err := json.Marshal(map[string]string{"client_id": strconv.FormatInt(time.Now().UnixNano(), 36) + text[:10], "text": text})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// full starts a portal with that number of readers in the large room. The caller must call end.
func (b *bench) full(readers int) (*side, error) {
	s, err := b.portal()
	if err != nil {
		return nil, err
	}
	p := &side{server: s, readers: readers}
	post := newPoster(s.Addr)
	p.send = func(w int, k int64) error { return post.post(messages(b.data.big), b.data.tokens[w%crew], draft(k)) }
	if p.crowd, err = join(s.Addr, readers, func(i int) place { return b.data.live(b.data.big, i) }, p.hear); err != nil {
		s.Kill()
		return nil, err
	}
	return p, nil
}

// frame posts one message to a portal and returns the WebSocket frame that a reader receives, so that
// the floor can send the same bytes.
func (b *bench) frame(s *server) ([]byte, error) {
	got := make(chan []byte, 1)
	c, err := join(s.Addr, 1, func(int) place { return b.data.live(b.data.rooms[0], 0) }, func(_ int, b []byte) {
		if bytes.Contains(b, marker) {
			select {
			case got <- bytes.Clone(b):
			default:
			}
		}
	})
	if err != nil {
		return nil, err
	}
	defer c.leave()
	post := newPoster(s.Addr)
	defer post.close()
	if err := post.post(messages(b.data.rooms[0]), b.data.tokens[0], draft(0)); err != nil {
		return nil, err
	}
	select {
	case f := <-got:
		return f, nil
	case <-time.After(10 * time.Second):
		return nil, fmt.Errorf("the portal sends no frame")
	}
}

// fans compares the processor time of a delivery in one room, including its share of the message, with
// one and with 32 messages under way.
func (b *bench) fans() error {
	readers := b.readers()
	portal, err := b.full(readers)
	if err != nil {
		return err
	}
	defer portal.end()
	frame, err := b.frame(portal.server)
	if err != nil {
		return err
	}
	s, err := b.broadcast()
	if err != nil {
		return err
	}
	floor := &side{server: s, readers: readers}
	defer floor.end()
	post := newPoster(s.Addr)
	floor.send = func(_ int, k int64) error {
		return post.post("/room", "", strings.Replace(string(frame), mark(0), mark(k), 1))
	}
	if floor.crowd, err = join(s.Addr, readers, func(int) place { return place{path: "/room"} }, floor.hear); err != nil {
		return err
	}
	c, err := b.compare(1, b.Round, floor, portal)
	if err != nil {
		return err
	}
	b.Add(c.line(fmt.Sprintf("CPU of a delivery, %s readers, 1 message under way", short(readers)), natsAlone))
	if c, err = b.compare(32, b.Round, floor, portal); err != nil {
		return err
	}
	l := c.line("the same under load, 32 messages under way", natsRatio)
	b.Add(l)
	l.What, l.Bar, l.Absolute, l.Met = "the same in µs", fmt.Sprintf("≤ %.1f µs", maxDelivery), true, report.Median(c.per[1]) <= maxDelivery
	l.Ratio, l.P99 = "", ""
	b.Add(l)
	return nil
}

// stall compares the latency of all readers with and without a further reader that never reads from its
// socket.
func (b *bench) stall() error {
	portal, err := b.full(b.readers())
	if err != nil {
		return err
	}
	defer portal.end()
	post := newPoster(portal.Addr)
	rounds, err := proc.Measure(b.Pick(2, 2*b.Rounds), func() (p99 [2]time.Duration, err error) {
		for with := range p99 {
			if p99[with], err = b.stalled(portal, post, with == 1); err != nil {
				return p99, err
			}
		}
		return p99, nil
	})
	if err != nil {
		return err
	}
	var p99 [2][]time.Duration
	for _, r := range rounds.List {
		p99[0], p99[1] = append(p99[0], r[0]), append(p99[1], r[1])
	}
	ratio := report.Ratios(p99[1], p99[0])
	b.Add(report.Line{What: fmt.Sprintf("p99 of %s readers, without and with a stalled one", short(b.readers())),
		P99: report.Join(report.Millis(report.Median(p99[0])), report.Millis(report.Median(p99[1]))), Ratio: report.Spread(ratio),
		Others: rounds.Share(), Doubt: rounds.Doubt, Bar: fmt.Sprintf("≤ %.1f×", maxStall), Judged: true, Met: report.Median(ratio) <= maxStall})
	return nil
}

// stalled returns the 99th percentile of latencies in one turn. With with, a further reader that never
// reads is connected.
func (b *bench) stalled(portal *side, post *poster, with bool) (time.Duration, error) {
	if with {
		conn, _, err := dial(portal.Addr, b.data.live(b.data.big, 0), 4096)
		if err != nil {
			return 0, err
		}
		defer conn.Close()
	}
	say := func(f *flight, text string) error {
		portal.now.Store(f)
		k := f.begin(portal.readers)
		if err := post.post(messages(b.data.big), b.data.tokens[k%crew], draftOf(mark(k)+text)); err != nil {
			return err
		}
		return f.await(k)
	}
	// The first messages fill the kernel's buffers of the stalled reader, so that the portal then has
	// to drop or queue.
	for f := new(flight); f.next.Load() < 24; {
		if err := say(f, strings.Repeat(" word", 3200)); err != nil {
			return 0, err
		}
	}
	time.Sleep(time.Second) // let the portal finish indexing the long messages
	f, tick := new(flight), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(b.Round * 3 / 4); time.Now().Before(until); <-tick.C {
		if err := say(f, strings.Repeat(" word", 40)); err != nil {
			return 0, err
		}
	}
	return f.times.percentile(0.99), nil
}

// idle measures the memory of a WebSocket without traffic.
func (b *bench) idle() error {
	n := b.readers()
	grown := func(s *server, at func(int) place) (int64, error) {
		defer s.Kill()
		settle := time.Duration(b.Pick(1, 8)) * time.Second
		time.Sleep(settle)
		before, _, err := s.Memory()
		if err != nil {
			return 0, err
		}
		c, err := join(s.Addr, n, at, func(int, []byte) {})
		if err != nil {
			return 0, err
		}
		defer c.leave()
		time.Sleep(settle)
		after, _, err := s.Memory()
		return (after - before) / int64(n), err
	}
	s, err := b.broadcast()
	if err != nil {
		return err
	}
	floor, err := grown(s, func(int) place { return place{path: "/room"} })
	if err != nil {
		return err
	}
	if s, err = b.portal(); err != nil {
		return err
	}
	rooms := b.data.rooms
	portal, err := grown(s, func(i int) place { return b.data.live(rooms[i%len(rooms)], i%len(rooms)) })
	if err != nil {
		return err
	}
	b.Add(report.Line{What: fmt.Sprintf("memory of an idle socket, %s open", short(n)), Floor: kib(floor), Portal: kib(portal),
		Ratio: fmt.Sprintf("%.2f", float64(portal)/float64(floor)), Bar: "≤ 40 KiB", Judged: true, Met: portal <= maxSocket})
	return nil
}

// two compares the cost of a message that is on disk and delivered to the other of two members.
func (b *bench) two() error {
	s, err := b.portal()
	if err != nil {
		return err
	}
	portal := &side{server: s, readers: 1}
	defer portal.end()
	room := b.data.rooms[1]
	post := newPoster(s.Addr)
	portal.send = func(_ int, k int64) error { return post.post(messages(room), b.data.tokens[1+k%2], draft(k)) }
	if portal.crowd, err = join(s.Addr, 1, func(int) place { return b.data.live(room, 2) }, portal.hear); err != nil {
		return err
	}
	if s, err = b.durable(); err != nil {
		return err
	}
	floor := &side{server: s, readers: 1}
	defer floor.end()
	fpost := newPoster(s.Addr)
	floor.send = func(_ int, k int64) error { return fpost.post("/rooms/1/messages", "", draft(k)) }
	if floor.crowd, err = join(s.Addr, 1, func(int) place { return place{path: "/rooms/1/live"} }, floor.hear); err != nil {
		return err
	}
	// A longer round would reach the portal's limit of messages of one account.
	c, err := b.compare(1, min(b.Round, time.Second), floor, portal)
	if err != nil {
		return err
	}
	b.Add(c.line("message durable (FULL) and delivered, room of 2, one at a time: CPU", maxTwo))
	return nil
}

func short(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

func kib(n int64) string { return fmt.Sprintf("%.1f KiB", float64(n)/1024) }

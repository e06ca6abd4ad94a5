package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"agentsite/bench/report"
)

// The bars.
const (
	maxFan    = 1.3
	maxStall  = 1.05
	maxSocket = 36 << 10
	maxTwo    = 1.6
	maxStream = 250 * time.Millisecond
	maxMany   = 1.3
	maxBack   = 30 * time.Second
)

// side is a server with readers, under one load.
type side struct {
	*server
	crowd   *crowd
	readers int
	now     atomic.Pointer[flight] // what readers hear
	send    func(worker int, k int64) error
	per     []float64 // CPU of one delivery, µs, by round
	p99     []time.Duration
}

func (s *side) hear(_ int, b []byte) {
	if f := s.now.Load(); f != nil {
		f.hear(b)
	}
}

// round measures; per is of what a message costs.
func (s *side) round(under int, during time.Duration) error {
	f := new(flight)
	s.now.Store(f)
	o, err := s.load(f, under, during, s.readers, s.send)
	if err != nil {
		return err
	}
	s.per = append(s.per, float64(o.cpu.Nanoseconds())/1e3/float64(o.messages*max(1, s.readers)))
	s.p99 = append(s.p99, f.times.percentile(0.99))
	return nil
}

func (s *side) end() {
	if s.crowd != nil {
		s.crowd.leave()
	}
	s.Kill()
}

// interleave gives the sides turns, after one of each that is not counted.
func (b *bench) interleave(under int, sides ...*side) error {
	for i := range b.rounds + 1 {
		for _, s := range sides {
			if i == 1 {
				s.per, s.p99 = nil, nil
			}
			if err := s.round(under, b.round); err != nil {
				return err
			}
		}
	}
	return nil
}

// text is a message's text with its number, 200 bytes long.
func text(k int64) string { return mark(k) + strings.Repeat(" word", 38) }

// draft is the body of a request that says it.
func draft(k int64) string { return draftOf(text(k)) }

func draftOf(text string) string {
	b, err := json.Marshal(map[string]string{"client_id": strconv.FormatInt(time.Now().UnixNano(), 36) + text[:10], "text": text})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// full is a portal with readers in the big room.
func (b *bench) full(readers int) (*side, error) {
	s, err := b.portal("127.0.0.1:0")
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

// frame is what the portal sends a reader for a message.
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
		return nil, fmt.Errorf("the portal tells nothing")
	}
}

// fan compares what a delivery costs in one room, the message itself included.
func (b *bench) fan(readers, under int) error {
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
	if err := b.interleave(under, floor, portal); err != nil {
		return err
	}
	r := report.Ratios(portal.per, floor.per)
	b.Add(report.Line{What: fmt.Sprintf("one room, %d readers, %d in flight: CPU of a delivery of %d bytes", readers, under, len(frame)),
		Floor: micro(report.Median(floor.per)), Portal: micro(report.Median(portal.per)), Ratio: report.Spread(r),
		P99: ms(report.Median(floor.p99)) + ", " + ms(report.Median(portal.p99)), Bar: fmt.Sprintf("≤ %.1f×", maxFan), Gated: true, Met: report.Median(r) <= maxFan})
	return nil
}

// stall compares the others' p99 with and without a reader who takes nothing.
func (b *bench) stall(readers int) error {
	portal, err := b.full(readers)
	if err != nil {
		return err
	}
	defer portal.end()
	post := newPoster(portal.Addr)
	long := strings.Repeat(" word", 800)
	// Many short turns: a stall of the machine spoils one.
	turns, turn := 4*b.rounds, 2*b.round/3
	var p99 [2][]time.Duration
	for i := range turns + 1 {
		for with := range 2 {
			got, err := b.stalled(portal, post, with == 1, turn, long)
			if err != nil {
				return err
			}
			if i > 0 {
				p99[with] = append(p99[with], got)
			}
		}
	}
	r := float64(report.Median(p99[1])) / float64(report.Median(p99[0]))
	b.Add(report.Line{What: fmt.Sprintf("one stalled reader of %d: the others' p99, without and with it", readers), Floor: ms(report.Median(p99[0])), Portal: ms(report.Median(p99[1])), Ratio: fmt.Sprintf("%.2f", r),
		Bar: fmt.Sprintf("≤ %.2f×", maxStall), Gated: true, Met: r <= maxStall})
	return nil
}

// stalled is the p99 of a turn, beside a reader who takes nothing if so told.
func (b *bench) stalled(portal *side, post *poster, with bool, turn time.Duration, long string) (time.Duration, error) {
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
	// The first messages fill what the kernel holds for the stalled one.
	for f := new(flight); f.next.Load() < 24; {
		if err := say(f, strings.Repeat(long, 4)); err != nil {
			return 0, err
		}
	}
	time.Sleep(time.Second) // until the portal has indexed their words
	f, tick := new(flight), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(turn); time.Now().Before(until); <-tick.C {
		if err := say(f, long[:200]); err != nil {
			return 0, err
		}
	}
	return f.times.percentile(0.99), nil
}

// idle measures what a socket costs on which nothing happens.
func (b *bench) idle(n int) error {
	grown := func(s *server, at func(int) place) (int64, error) {
		defer s.Kill()
		settle := time.Duration(b.pick(2, 10)) * time.Second
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
	if s, err = b.portal("127.0.0.1:0"); err != nil {
		return err
	}
	rooms := b.data.rooms
	portal, err := grown(s, func(i int) place { return b.data.live(rooms[i%len(rooms)], i%len(rooms)) })
	if err != nil {
		return err
	}
	b.Add(report.Line{What: fmt.Sprintf("memory of an idle socket, %d held", n), Floor: kib(floor), Portal: kib(portal), Ratio: fmt.Sprintf("%.2f", float64(portal)/float64(floor)),
		Bar: kib(maxSocket), Gated: true, Met: portal <= maxSocket})
	return nil
}

// two compares a message that is on disk and seen by the other person.
func (b *bench) two() error {
	s, err := b.portal("127.0.0.1:0")
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
	// Shorter rounds: one person may say only so much in a while.
	round := b.round
	b.round = time.Second
	defer func() { b.round = round }()
	if err := b.interleave(1, floor, portal); err != nil {
		return err
	}
	r := report.Ratios(portal.per, floor.per)
	b.Add(report.Line{What: "message durable (FULL) and seen, room of 2: CPU", Floor: micro(report.Median(floor.per)), Portal: micro(report.Median(portal.per)), Ratio: report.Spread(r),
		P99: ms(report.Median(floor.p99)) + ", " + ms(report.Median(portal.p99)), Bar: fmt.Sprintf("≤ %.1f×", maxTwo), Gated: true, Met: report.Median(r) <= maxTwo})
	return nil
}

// many compares a delivery in many rooms of ten with one in a room of them
// all: what each reader costs beyond the first.
func (b *bench) many(rooms int) error {
	const each = 10
	s, err := b.portal("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer s.Kill()
	post := newPoster(s.Addr)
	list := b.data.rooms[:rooms]
	split := &side{server: s, readers: each}
	split.send = func(_ int, k int64) error {
		i := int(k) % rooms
		return post.post(messages(list[i]), b.data.tokens[i%crew], draft(k))
	}
	if split.crowd, err = join(s.Addr, rooms*each, func(i int) place { return b.data.live(list[i%rooms], i%rooms) }, split.hear); err != nil {
		return err
	}
	defer split.crowd.leave()
	one := &side{server: s, readers: rooms * each}
	one.send = func(_ int, k int64) error { return post.post(messages(b.data.big), b.data.tokens[k%crew], draft(k)) }
	if one.crowd, err = join(s.Addr, rooms*each, func(i int) place { return b.data.live(b.data.big, i) }, one.hear); err != nil {
		return err
	}
	defer one.crowd.leave()
	// What a message costs by itself: to be stored, encoded once and seen by one.
	alone := &side{server: s, readers: 1}
	from := len(b.data.rooms) - crew
	alone.send = func(_ int, k int64) error {
		i := from + int(k)%crew
		return post.post(messages(b.data.rooms[i]), b.data.tokens[i%crew], draft(k))
	}
	if alone.crowd, err = join(s.Addr, crew, func(i int) place { return b.data.live(b.data.rooms[from+i], from+i) }, alone.hear); err != nil {
		return err
	}
	defer alone.crowd.leave()
	if err := b.interleave(1, alone, split, one); err != nil {
		return err
	}
	// Of the rounds together: what is left without the message is small.
	own := report.Median(alone.per)
	few := (report.Median(split.per)*each - own) / (each - 1)
	all := (report.Median(one.per)*float64(one.readers) - own) / float64(one.readers-1)
	r := few / all
	b.Add(report.Line{What: fmt.Sprintf("one room of %d, %d rooms of %d: CPU of each delivery beyond a message's first (%s)", rooms*each, rooms, each, micro(own)), Floor: micro(all), Portal: micro(few), Ratio: fmt.Sprintf("%.2f", r),
		P99: ms(report.Median(one.p99)) + ", " + ms(report.Median(split.p99)), Bar: fmt.Sprintf("≤ %.1f×", maxMany), Gated: true, Met: r <= maxMany})
	return nil
}

func micro(us float64) string   { return fmt.Sprintf("%.2f µs", us) }
func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1e3) }
func kib(n int64) string        { return fmt.Sprintf("%.1f KiB", float64(n)/1024) }

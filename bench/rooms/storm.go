package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/bench/report"
)

// storm kills the portal under its readers and starts it again. They come back
// by themselves, as browsers do, and then all hear a message.
func (b *bench) storm(readers int) error {
	s, err := b.portal("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { s.Kill() }()
	addr := s.Addr
	var (
		wg           sync.WaitGroup
		up, over     atomic.Int64
		stop         = make(chan struct{})
		now          atomic.Pointer[flight]
		mu           sync.Mutex // guards conns, told
		conns        = make(map[net.Conn]struct{})
		told         []string // error frames and answers
		opened, back = make(chan struct{}, 2*readers), make(chan time.Time, 2*readers)
	)
	complain := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, err.Error())
	}
	live := func(i int) {
		first := true
		for wait := 100 * time.Millisecond; ; wait = min(2*wait, 4*time.Second) {
			var conn net.Conn
			var in *bufio.Reader
			conn, in, err := dial(addr, b.data.live(b.data.big, i), 0)
			if err == nil {
				wait = 100 * time.Millisecond
				mu.Lock()
				conns[conn] = struct{}{}
				mu.Unlock()
				up.Add(1)
				if first {
					opened <- struct{}{}
				}
				heard := false
				err = read(conn, in, func(frame []byte) {
					if !heard && !first { // it is served again
						back <- time.Now()
					}
					heard = true
					if f := now.Load(); f != nil && bytes.Contains(frame, marker) {
						f.hear(frame)
					}
				})
				first = false
				up.Add(-1)
				conn.Close()
				mu.Lock()
				delete(conns, conn)
				mu.Unlock()
				if errors.Is(err, errClosed) && over.Load() == 0 {
					complain(err)
				}
			} else if strings.Contains(err.Error(), "answered") {
				complain(err)
			}
			select {
			case <-stop:
				return
			case <-time.After(wait/2 + rand.N(wait)):
			}
		}
	}
	for i := range readers {
		wg.Go(func() { live(i) })
		if i%64 == 63 {
			for range 64 {
				<-opened
			}
		}
	}
	defer func() {
		over.Store(1)
		close(stop)
		mu.Lock()
		for c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	}()
	for range readers % 64 {
		<-opened
	}
	s.Kill()
	began := time.Now()
	if s, err = b.portal(addr); err != nil {
		return err
	}
	var last time.Duration
	late := time.After(3 * maxBack)
	for i := range readers {
		select {
		case at := <-back:
			last = max(last, at.Sub(began))
		case <-late:
			return fmt.Errorf("%d of %d are back after %s", i, readers, 3*maxBack)
		}
	}
	f := new(flight)
	now.Store(f)
	k := f.begin(readers)
	if err := newPoster(addr).post(messages(b.data.big), b.data.tokens[0], draft(k)); err != nil {
		return err
	}
	if err := f.await(k); err != nil {
		return fmt.Errorf("after coming back: %w", err)
	}
	mu.Lock()
	defer mu.Unlock()
	what := fmt.Sprintf("killed and started again: %d readers are back", readers)
	if len(told) > 0 {
		what += fmt.Sprintf(", %d errors, the first %q", len(told), told[0])
	}
	b.Add(report.Line{What: what, Portal: last.Round(time.Millisecond).String(), Bar: maxBack.String() + ", no error", Gated: true, Met: last <= maxBack && len(told) == 0})
	return nil
}

package main

import (
	"bytes"
	"fmt"
	"io"
	"math/bits"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// most is the largest number of messages in one measurement.
const most = 1 << 17

// flight follows numbered messages from their sending until every reader has them, and counts the
// latencies. It is safe for concurrent use.
type flight struct {
	sent  [most]atomic.Int64
	left  [most]atomic.Int32
	seen  [most]chan struct{}
	next  atomic.Int64
	times histogram
}

// begin returns the number of a new message that the given number of readers must receive. The message
// counts as sent now.
func (f *flight) begin(readers int) int64 {
	k := f.next.Add(1)
	if k >= most {
		panic("too many messages for one measurement")
	}
	f.seen[k] = make(chan struct{})
	f.left[k].Store(int32(readers))
	f.sent[k].Store(time.Now().UnixNano())
	return k
}

// await waits up to 30 s until all readers have received message k.
func (f *flight) await(k int64) error {
	select {
	case <-f.seen[k]:
		return nil
	case <-time.After(30 * time.Second):
		return fmt.Errorf("message %d was not seen by %d readers", k, f.left[k].Load())
	}
}

var marker = []byte(`m#`)

// mark returns the text that identifies message k, of 10 bytes.
func mark(k int64) string { return fmt.Sprintf("m#%08d", k) }

// hear records the arrival of all numbered messages in a frame that a reader received.
func (f *flight) hear(b []byte) {
	for {
		at := bytes.Index(b, marker)
		if at < 0 || len(b) < at+10 {
			return
		}
		k := int64(0)
		for _, c := range b[at+2 : at+10] {
			k = k*10 + int64(c-'0')
		}
		b = b[at+10:]
		if k <= 0 || k >= most || f.sent[k].Load() == 0 {
			continue // a message of an earlier measurement
		}
		f.times.add(time.Now().UnixNano() - f.sent[k].Load())
		if f.left[k].Add(-1) == 0 {
			close(f.seen[k])
		}
	}
}

// histogram counts durations with a resolution of 3 %. It is safe for concurrent use.
type histogram [64 * 32]atomic.Int64

func (h *histogram) add(ns int64) {
	ns = max(ns, 32)
	e := bits.Len64(uint64(ns)) - 6
	h[e*32+int(ns>>e)&31].Add(1)
}

func (h *histogram) percentile(p float64) time.Duration {
	var all int64
	for i := range h {
		all += h[i].Load()
	}
	want := int64(float64(all) * p)
	for i := range h {
		if want -= h[i].Load(); want < 0 {
			e := i / 32
			return time.Duration(int64(32+i%32) << e)
		}
	}
	return 0
}

// poster posts messages over keep-alive connections. It is safe for concurrent use.
type poster struct {
	client *http.Client
	base   string
}

func newPoster(addr string) *poster {
	return &poster{&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}, Timeout: 30 * time.Second}, "http://" + addr}
}

func (p *poster) post(path, token, body string) error {
	req, err := http.NewRequest(http.MethodPost, p.base+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusCreated {
		err = fmt.Errorf("%s answered %s: %.200s", path, res.Status, b)
	}
	return err
}

func (p *poster) close() { p.client.CloseIdleConnections() }

// outcome is the result of a load. cpu is the processor time of the server.
type outcome struct {
	cpu      time.Duration
	messages int
}

// load keeps the given number of messages under way for the duration: each is sent when all readers
// have received the one before it.
func (s *server) load(f *flight, under int, during time.Duration, readers int, send func(worker int, k int64) error) (outcome, error) {
	before, err := s.CPU()
	if err != nil {
		return outcome{}, err
	}
	var wg sync.WaitGroup
	first, until := f.next.Load(), time.Now().Add(during)
	errs := make(chan error, under)
	for w := range under {
		wg.Go(func() {
			for time.Now().Before(until) {
				k := f.begin(readers)
				err := send(w, k)
				if err == nil && readers > 0 {
					err = f.await(k)
				}
				if err != nil {
					errs <- fmt.Errorf("%s: %w", s.Name, err)
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	if err := <-errs; err != nil {
		return outcome{}, err
	}
	after, err := s.CPU()
	return outcome{after - before, int(f.next.Load() - first)}, err
}

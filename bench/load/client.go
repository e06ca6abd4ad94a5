package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// conn is a keep-alive connection that costs this side little: the machine is
// shared with the server under load.
type conn struct {
	net.Conn
	r *bufio.Reader
}

func dial(addr string) (*conn, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &conn{c, bufio.NewReaderSize(c, 64<<10)}, nil
}

// do sends a request and reads the answer to its end. Every answer that is
// measured has a Content-Length.
func (c *conn) do(req []byte) (status, size int, err error) {
	if _, err := c.Write(req); err != nil {
		return 0, 0, err
	}
	size = -1
	for first := true; ; first = false {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return 0, 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case first:
			if len(line) < 12 {
				return 0, 0, fmt.Errorf("status line %q", line)
			}
			status, _ = strconv.Atoi(string(line[9:12]))
		case len(line) == 0:
			if size < 0 {
				return status, 0, errors.New("an answer without Content-Length")
			}
			_, err := io.CopyN(io.Discard, c.r, int64(size))
			return status, size, err
		default:
			if k, v, ok := bytes.Cut(line, []byte(": ")); ok && bytes.EqualFold(k, []byte("Content-Length")) {
				size, _ = strconv.Atoi(string(v))
			}
		}
	}
}

// request writes one out. A body makes it a POST.
func request(addr, path, token, body string) []byte {
	var b bytes.Buffer
	method := "GET"
	if body != "" {
		method = "POST"
	}
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\nAccept: */*\r\n", method, path, addr)
	if token != "" {
		fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", token)
	}
	if body != "" {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n")
	b.WriteString(body)
	return b.Bytes()
}

// visit writes out a browser's request for a page; cookie may be empty.
func visit(addr, path, cookie string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\nAccept: text/html\r\n", path, addr)
	if cookie != "" {
		fmt.Fprintf(&b, "Cookie: %s\r\n", cookie)
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

// load is what is asked of a server by a number of connections, each asking
// again as soon as it has the answer.
type load struct {
	workers int
	each    int           // requests of each worker; 0: until during is over
	during  time.Duration // when each is 0
	status  int           // that every answer must have
	request func(addr string, worker, i int) []byte
}

// outcome is what a load showed.
type outcome struct {
	ops   int
	size  int // of the last answer
	cpu   time.Duration
	took  time.Duration
	times []time.Duration // of each request
}

func (o outcome) perOp() float64 { return float64(o.cpu.Nanoseconds()) / 1e3 / float64(o.ops) }

// settle, when given, waits for what the load causes beyond its answers.
func (s *server) under(l load, settle func() error) (outcome, error) {
	conns := make([]*conn, l.workers)
	for i := range conns {
		c, err := dial(s.Addr)
		if err != nil {
			return outcome{}, err
		}
		defer c.Close()
		conns[i] = c
		// The connection's beginning is not measured.
		if _, _, err := c.do(request(s.Addr, "/robots.txt", "", "")); err != nil {
			return outcome{}, err
		}
	}
	before, err := s.CPU()
	if err != nil {
		return outcome{}, err
	}
	var (
		wg    sync.WaitGroup
		size  atomic.Int64
		times = make([][]time.Duration, l.workers)
		fails = make([]error, l.workers)
		began = time.Now()
	)
	for w, c := range conns {
		wg.Go(func() {
			for i := 0; l.each == 0 || i < l.each; i++ {
				req := l.request(s.Addr, w, i)
				t := time.Now()
				if l.each == 0 && t.Sub(began) > l.during {
					return
				}
				status, n, err := c.do(req)
				if err == nil && status != l.status {
					err = fmt.Errorf("answered %d, want %d", status, l.status)
				}
				if err != nil {
					fails[w] = fmt.Errorf("%s, request %d: %w", s.Name, i, err)
					return
				}
				times[w] = append(times[w], time.Since(t))
				size.Store(int64(n))
			}
		})
	}
	wg.Wait()
	o := outcome{took: time.Since(began), size: int(size.Load())}
	if err := errors.Join(fails...); err != nil {
		return o, err
	}
	if settle != nil {
		if err := settle(); err != nil {
			return o, err
		}
	}
	after, err := s.CPU()
	o.cpu = after - before
	for _, t := range times {
		o.times = append(o.times, t...)
	}
	o.ops = len(o.times)
	return o, err
}

// reader follows a conversation by WebSocket and hands on every frame that
// holds a message.
type reader struct {
	conn *websocket.Conn
	got  atomic.Int64
	done chan struct{}
}

func follow(addr, path, token string, each func([]byte)) (*reader, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	opts := &websocket.DialOptions{}
	if token != "" {
		opts.HTTPHeader = http.Header{"Authorization": {"Bearer " + token}}
	}
	c, _, err := websocket.Dial(ctx, "ws://"+addr+path, opts)
	if err != nil {
		return nil, err
	}
	c.SetReadLimit(1 << 20)
	r := &reader{conn: c, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for {
			_, b, err := c.Read(context.Background())
			if err != nil {
				return
			}
			if !bytes.Contains(b, []byte(`"text":"`)) {
				continue
			}
			if each != nil {
				each(b)
			}
			r.got.Add(1)
		}
	}()
	return r, nil
}

func (r *reader) close() {
	r.conn.CloseNow()
	<-r.done
}

// await waits until all readers together have seen n messages.
func await(list []*reader, n int64) error {
	for until := time.Now().Add(15 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		var got int64
		for _, r := range list {
			got += r.got.Load()
		}
		if got >= n {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("readers saw %d messages of %d", got, n)
		}
	}
}

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// conn is a keep-alive HTTP/1.1 connection. Its client does little work, because it shares the machine
// with the server that is measured.
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

// do sends a request and reads the whole answer, which must have a
// Content-Length.
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

// request returns the bytes of an API request: a POST if body is not "", a GET otherwise. token may be
// "".
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

// visit returns the bytes of a browser's request for a page. cookie may be "".
func visit(addr, path, cookie string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\nAccept: text/html\r\n", path, addr)
	if cookie != "" {
		fmt.Fprintf(&b, "Cookie: %s\r\n", cookie)
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

// load describes a load: a number of connections, each of which sends its next request when the answer
// to the last one is complete.
type load struct {
	workers int
	each    int           // requests of each connection; 0: as many as fit into during
	during  time.Duration // used when each is 0
	status  int           // expected status; any other one fails the run
	request func(addr string, worker, i int) []byte
	after   func() error // nil, or a check of the result; it runs before the server rests
}

// outcome is the result of a load. cpu is the processor time of the server.
type outcome struct {
	ops   int
	size  int // body size of the last answer, in bytes
	cpu   time.Duration
	took  time.Duration
	times []time.Duration // latency of each request
}

func (o outcome) perOp() float64 { return float64(o.cpu.Nanoseconds()) / 1e3 / float64(o.ops) }

// under runs a load on the server and measures its processor time. With rest it also counts the work
// that the server does after the last answer.
func (s *server) under(l load, rest bool) (outcome, error) {
	conns := make([]*conn, l.workers)
	for i := range conns {
		c, err := dial(s.Addr)
		if err != nil {
			return outcome{}, err
		}
		defer c.Close()
		conns[i] = c
		// Open the connection with a request that is not measured.
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
	after, err := s.CPU()
	if err == nil && l.after != nil {
		err = l.after()
	}
	if err == nil && rest {
		after, err = s.Rest()
	}
	o.cpu = after - before
	for _, t := range times {
		o.times = append(o.times, t...)
	}
	o.ops = len(o.times)
	return o, err
}

package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// crowd is a group of WebSocket readers. They do little work for a frame, because they share the
// machine with the server that is measured.
type crowd struct {
	wg    sync.WaitGroup
	mu    sync.Mutex // guards conns
	conns []net.Conn
}

// place is the path and the token with which a reader connects.
type place struct{ path, token string }

// join connects n readers; at gives the place of each. hear is called with every text frame, by one
// goroutine for each reader; b is valid only until hear returns. If one fails, all are disconnected.
func join(addr string, n int, at func(i int) place, hear func(i int, b []byte)) (*crowd, error) {
	c := &crowd{}
	var wg sync.WaitGroup
	next, errs := make(chan int), make(chan error, n)
	for range 16 {
		wg.Go(func() {
			for i := range next {
				conn, in, err := dial(addr, at(i), 0)
				if err != nil {
					errs <- err
					continue
				}
				c.mu.Lock()
				c.conns = append(c.conns, conn)
				c.mu.Unlock()
				c.wg.Go(func() { read(conn, in, func(b []byte) { hear(i, b) }) })
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	close(errs)
	if err := <-errs; err != nil {
		c.leave()
		return nil, err
	}
	return c, nil
}

func (c *crowd) leave() {
	for _, conn := range c.conns {
		conn.Close()
	}
	c.wg.Wait()
}

// dial opens a WebSocket. buffer limits the kernel's receive buffer in bytes; 0 leaves its default.
func dial(addr string, p place, buffer int) (net.Conn, *bufio.Reader, error) {
	conn, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return nil, nil, err
	}
	if buffer > 0 {
		conn.(*net.TCPConn).SetReadBuffer(buffer)
	}
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	auth := ""
	if p.token != "" {
		auth = "Authorization: Bearer " + p.token + "\r\n"
	}
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n%sConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", p.path, addr, auth)
	in := bufio.NewReaderSize(conn, 2048)
	res, err := http.ReadResponse(in, nil)
	if err == nil && res.StatusCode != http.StatusSwitchingProtocols {
		err = fmt.Errorf("%s answered %s", p.path, res.Status)
	}
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	conn.SetDeadline(time.Time{})
	return conn, in, nil
}

// errClosed means that the server sent a close frame.
var errClosed = errors.New("the server closed the socket")

// read calls hear with each text frame until the connection ends, and answers pings.
func read(conn net.Conn, in *bufio.Reader, hear func([]byte)) error {
	var buf []byte
	for {
		var h [2]byte
		if _, err := io.ReadFull(in, h[:]); err != nil {
			return err
		}
		n := int(h[1] & 0x7f)
		if n >= 126 {
			ext := make([]byte, 2+6*(n-126))
			if _, err := io.ReadFull(in, ext); err != nil {
				return err
			}
			if n == 126 {
				n = int(binary.BigEndian.Uint16(ext))
			} else {
				n = int(binary.BigEndian.Uint64(ext))
			}
		}
		if cap(buf) < n {
			buf = make([]byte, n+n/4)
		}
		if _, err := io.ReadFull(in, buf[:n]); err != nil {
			return err
		}
		switch h[0] & 0x0f {
		case 0x1:
			hear(buf[:n])
		case 0x8:
			return errClosed
		case 0x9:
			if _, err := conn.Write([]byte{0x8a, 0x80, 0, 0, 0, 0}); err != nil {
				return err
			}
		}
	}
}

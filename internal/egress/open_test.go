package egress

import (
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
)

func TestCloseDenied_EndsWhatGoesOn(t *testing.T) {
	t.Parallel()
	served := make(chan struct{})
	w := listen(t, "127.0.0.1:0", func(conn net.Conn) {
		conn.Read(make([]byte, 4096))
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome")
		conn.Read(make([]byte, 1)) // until the other side has enough
		close(served)
	})
	var deny atomic.Bool
	c := client(t, Config{AllowCIDR: loopback(t), Deny: func(netip.Addr) string {
		if deny.Load() {
			return "shut out"
		}
		return ""
	}})
	resp, err := get(t, c, "http://127.0.0.1:"+w.port())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	c.CloseDenied()
	b := make([]byte, 4)
	if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != "some" {
		t.Fatalf("%q, %v: nothing is denied yet", b, err)
	}
	deny.Store(true)
	c.CloseDenied()
	if _, err := resp.Body.Read(b); err == nil || err == io.EOF {
		t.Errorf("it goes on: %v", err)
	}
	<-served
	c.open.mu.Lock()
	defer c.open.mu.Unlock()
	if n := len(c.open.conns); n != 0 {
		t.Errorf("%d connections are remembered", n)
	}
}

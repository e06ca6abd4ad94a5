package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/limit"
)

// from is a connection with the address of a client.
type from struct {
	net.Conn
	addr string
}

func (c from) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(c.addr), 4000))
}

// operatorHeader recognizes operators by a header.
type operatorHeader struct{}

func (operatorHeader) IsOperator(r *http.Request) bool { return r.Header.Get("Operator") != "" }

// limited runs use with a server of these limits. A request for /wait is answered when the test sends to
// proceed, another at once.
func limited(t *testing.T, limits ConnectionLimits, use func(t *testing.T, dial func(addr string) net.Conn, proceed chan<- bool)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		l := pipes{make(chan net.Conn), make(chan struct{})}
		done, proceed := make(chan error), make(chan bool)
		go func() {
			done <- Serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/wait" {
					<-proceed
				}
				io.WriteString(w, "served")
			}), ServerConfig{Penalized: limit.NewPenaltyBox(), Connections: limits, Operators: operatorHeader{},
				Log: slog.New(slog.DiscardHandler)})
		}()
		var all []net.Conn
		use(t, func(addr string) net.Conn {
			near, far := net.Pipe()
			l.come <- from{far, addr}
			all = append(all, near)
			return near
		}, proceed)
		for _, c := range all {
			c.Close()
		}
		synctest.Wait()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// ask sends a request and returns the answer with its body; status 0 if the connection was closed.
func ask(t *testing.T, c net.Conn, path, header string) (resp *http.Response, body string) {
	t.Helper()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: x\r\n"+header+"\r\n") // a refused connection reads nothing
	}()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		c.Close()
		<-sent
		return &http.Response{}, ""
	}
	b, _ := io.ReadAll(resp.Body)
	if resp.Close {
		c.Close()
	}
	<-sent
	return resp, string(b)
}

func TestServe_BoundsTheConnectionsOfAnAddress(t *testing.T) {
	t.Parallel()
	limited(t, ConnectionLimits{All: 100, PerAddress: 2, Exempt: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		func(t *testing.T, dial func(string) net.Conn, _ chan<- bool) {
			first := dial("192.0.2.1")
			dial("192.0.2.1")
			resp, body := ask(t, dial("192.0.2.1"), "/", "")
			if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" ||
				!strings.Contains(body, "Close some") {
				t.Errorf("a third connection: %d %v %q", resp.StatusCode, resp.Header, body)
			}
			for _, addr := range []string{"192.0.2.2", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1", "127.0.0.1",
				"127.0.0.1", "127.0.0.1", "::ffff:127.0.0.1"} {
				if resp, _ := ask(t, dial(addr), "/", ""); resp.StatusCode != http.StatusOK {
					t.Errorf("a connection of %s: %d", addr, resp.StatusCode)
				}
			}
			if resp, _ := ask(t, dial("2001:db8::3"), "/", ""); resp.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("a third connection of a /64: %d", resp.StatusCode)
			}
			first.Close()
			synctest.Wait()
			if resp, _ := ask(t, dial("192.0.2.1"), "/", ""); resp.StatusCode != http.StatusOK {
				t.Errorf("after one was closed: %d", resp.StatusCode)
			}
		})
}

// A holder of a network of addresses cannot take the connections of others.
func TestServe_BoundsTheConnectionsOfANetwork(t *testing.T) {
	t.Parallel()
	limited(t, ConnectionLimits{All: 40, PerAddress: 5}, func(t *testing.T, dial func(string) net.Conn, _ chan<- bool) {
		for i := range 10 {
			dial(fmt.Sprintf("192.0.2.%d", i))
			dial(fmt.Sprintf("2001:db8:0:%d::1", i))
		}
		for addr, want := range map[string]int{"192.0.2.200": http.StatusServiceUnavailable, "192.0.3.1": http.StatusOK,
			"2001:db8:0:ffff::1": http.StatusServiceUnavailable, "2001:db8:1::1": http.StatusOK} {
			if resp, _ := ask(t, dial(addr), "/", ""); resp.StatusCode != want {
				t.Errorf("a connection of %s: %d, want %d", addr, resp.StatusCode, want)
			}
		}
	})
}

func TestServe_IdleConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	limited(t, ConnectionLimits{All: 3, PerAddress: 100},
		func(t *testing.T, dial func(string) net.Conn, proceed chan<- bool) {
			busy, used, silent := dial("192.0.2.1"), dial("192.0.2.1"), dial("192.0.2.1")
			waiting := make(chan int)
			go func() {
				resp, _ := ask(t, busy, "/wait", "")
				waiting <- resp.StatusCode
			}()
			synctest.Wait()
			time.Sleep(time.Second)
			ask(t, used, "/", "") // so that silent has been idle longest
			for range 50 {
				synctest.Wait() // until the connection before is idle
				if resp, _ := ask(t, dial("192.0.2.2"), "/", ""); resp.StatusCode != http.StatusOK {
					t.Fatalf("a new connection: %d", resp.StatusCode)
				}
			}
			for name, c := range map[string]net.Conn{"silent": silent, "used": used} {
				if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
					t.Errorf("the %s connection is open: %v", name, err)
				}
			}
			proceed <- true
			if status := <-waiting; status != http.StatusOK {
				t.Errorf("the busy connection: %d", status)
			}
		})
}

func TestServe_AnswersOperatorsWhenFull(t *testing.T) {
	t.Parallel()
	const all = 4
	limited(t, ConnectionLimits{All: all, PerAddress: 1000},
		func(t *testing.T, dial func(string) net.Conn, proceed chan<- bool) {
			waiting := make(chan int)
			for range all {
				c := dial("192.0.2.1")
				go func() {
					resp, _ := ask(t, c, "/wait", "")
					waiting <- resp.StatusCode
				}()
			}
			synctest.Wait()
			for range 10 * maxReserved { // silent ones do not keep an operator out
				dial("192.0.2.2")
			}
			resp, body := ask(t, dial("192.0.2.3"), "/", "")
			if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || !resp.Close ||
				!strings.Contains(body, "Try again") {
				t.Errorf("a request when all are busy: %d %v %q", resp.StatusCode, resp.Header, body)
			}
			if resp, _ := ask(t, dial("192.0.2.4"), "/", "Operator: yes\r\n"); resp.StatusCode != http.StatusOK {
				t.Errorf("a request of an operator: %d", resp.StatusCode)
			}
			for range all {
				proceed <- true
				<-waiting
			}
			if resp, _ := ask(t, dial("192.0.2.3"), "/", ""); resp.StatusCode != http.StatusOK {
				t.Errorf("when there is room again: %d", resp.StatusCode)
			}
		})
}

// An operator far away is answered although others connect before the request arrives.
func TestServe_WaitsForTheRequestOfAnOperator(t *testing.T) {
	t.Parallel()
	limited(t, ConnectionLimits{All: 1, PerAddress: 1000},
		func(t *testing.T, dial func(string) net.Conn, proceed chan<- bool) {
			busy, ended := dial("192.0.2.1"), make(chan struct{})
			go func() {
				defer close(ended)
				ask(t, busy, "/wait", "")
			}()
			synctest.Wait()
			operator := dial("192.0.2.4")
			for range maxReserved - 1 {
				dial("192.0.2.2")
			}
			synctest.Wait()
			if resp, _ := ask(t, operator, "/", "Operator: yes\r\n"); resp.StatusCode != http.StatusOK {
				t.Errorf("a request of an operator: %d", resp.StatusCode)
			}
			proceed <- true
			<-ended
		})
}

// Connections come, change their state and go in any order. The counts always equal those of the open
// connections, stay within the limits, and return to zero.
func TestConnections_CountWhatIsOpen(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		limits := ConnectionLimits{All: 5, PerAddress: 3, Exempt: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
		table := newConnections(limits, new(ConnectionCount), slog.New(slog.DiscardHandler))
		addrs := []string{"192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2", "127.0.0.1"}
		states := []http.ConnState{http.StateNew, http.StateActive, http.StateIdle, http.StateHijacked, http.StateClosed}
		var admitted []*countedConn
		check := func() {
			open, byAddress, idle := 0, map[netip.Prefix]int{}, 0
			for _, c := range admitted {
				if c.gone {
					continue
				}
				open++
				if c.address.IsValid() {
					byAddress[c.address]++
				}
				if c.element != nil {
					idle++
				}
			}
			if table.open != open || table.idle.Len() != idle || len(table.byAddress) != len(byAddress) ||
				open > limits.All+maxReserved {
				t.Fatalf("seed %d: counted %d open, %d idle, %v; are %d, %d, %v", seed, table.open, table.idle.Len(),
					table.byAddress, open, idle, byAddress)
			}
			for a, n := range byAddress {
				if table.byAddress[a] != n || n > limits.PerAddress {
					t.Fatalf("seed %d: %s has %d counted, %d open", seed, a, table.byAddress[a], n)
				}
			}
		}
		for range 400 {
			switch n := len(admitted); {
			case n == 0 || rnd.IntN(3) == 0:
				near, far := net.Pipe()
				defer near.Close()
				if c, ok := table.admit(from{far, addrs[rnd.IntN(len(addrs))]}); ok {
					admitted = append(admitted, c)
				}
			case rnd.IntN(2) == 0:
				table.noteState(&spareConn{Conn: admitted[rnd.IntN(n)]}, states[rnd.IntN(len(states))])
			default:
				admitted[rnd.IntN(n)].Close() // many are closed twice
			}
			check()
		}
		for _, c := range admitted {
			c.Close()
		}
		if table.open != 0 || len(table.byAddress)+len(table.byNetwork) != 0 || table.idle.Len() != 0 {
			t.Fatalf("seed %d: %d open, %v, %v and %d idle are counted at the end", seed, table.open, table.byAddress,
				table.byNetwork, table.idle.Len())
		}
	}
}

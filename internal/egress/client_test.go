package egress

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func newReader(c net.Conn) *bufio.Reader { return bufio.NewReader(c) }

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func TestDo_FollowsNoRedirect(t *testing.T) {
	target := listen(t, "127.0.0.1:0", nil)
	for _, code := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{"http://127.0.0.1:" + target.port() + "/", "//127.0.0.1:" + target.port(), "file:///etc/passwd", "http://169.254.169.254/", "/other"} {
			hops := 0
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				hops++
				w.Header().Set("Location", to)
				w.WriteHeader(code)
			})
			c := client(t, Config{AllowCIDR: loopback(t)})
			_, err := get(t, c, url)
			if CodeOf(err) != Redirect {
				t.Errorf("%d to %s: %v", code, to, err)
			}
			if strings.HasPrefix(to, "http://1") && !strings.Contains(Reason(err), strings.Split(to, "/")[2]) {
				t.Errorf("reason does not name the target: %q", Reason(err))
			}
			// A library that follows redirects by itself gets no chance to.
			hc := &http.Client{Transport: c.RoundTripper()}
			if _, err := hc.Get(url); CodeOf(err) != Redirect {
				t.Errorf("library: %v", err)
			}
			if hops != 2 {
				t.Errorf("%d requests", hops)
			}
		}
	}
	if len(target.seen) != 0 {
		t.Error("a redirect was followed")
	}
}

func TestDo_AllowCIDROpensExactlyThat(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.UserAgent()) })
	c := client(t, Config{AllowCIDR: parsePrefixes("127.0.0.1/32"), UserAgent: "kit"})
	resp, err := get(t, c, url)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || string(b) != "kit" {
		t.Errorf("%q %v", b, err)
	}
	if _, err := get(t, client(t, Config{AllowCIDR: parsePrefixes("127.0.0.2/32")}), url); CodeOf(err) != Private {
		t.Errorf("neighbour: %v", err)
	}
}

func TestDo_IgnoresProxyVariables(t *testing.T) {
	proxy := listen(t, "127.0.0.1:0", nil)
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:"+proxy.port())
	t.Setenv("http_proxy", "http://127.0.0.1:"+proxy.port())
	if _, err := get(t, client(t, Config{}), "http://192.0.2.1/"); CodeOf(err) != Private {
		t.Errorf("%v", err)
	}
	if len(proxy.seen) != 0 {
		t.Error("the proxy was asked")
	}
}

func TestDo_BoundsTheBody(t *testing.T) {
	chunk := strings.Repeat("x", 64<<10)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/declared" {
			w.Header().Set("Content-Length", "1000000000")
		}
		for range 1000 {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	})
	c := client(t, Config{AllowCIDR: loopback(t), MaxBody: 1 << 20})
	if _, err := get(t, c, url+"/declared"); CodeOf(err) != TooLarge {
		t.Errorf("declared: %v", err)
	}
	resp, err := get(t, c, url)
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	if n != 1<<20 || CodeOf(err) != TooLarge || Reason(err) != "the answer is larger than 1 MiB" {
		t.Errorf("read %d, %v", n, err)
	}
	if _, again := resp.Body.Read(make([]byte, 1)); again != err {
		t.Errorf("reading on gives %v", again)
	}
	resp.Body.Close()
}

func TestDo_FullBodyIsNoError(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, strings.Repeat("x", 1024)) })
	resp, err := get(t, client(t, Config{AllowCIDR: loopback(t), MaxBody: 1024}), url)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if len(b) != 1024 || err != nil {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	resp.Body.Close()
}

func TestDo_TimesOut(t *testing.T) { synctest.Test(t, timesOut) }

func timesOut(t *testing.T) {
	server := serveInMemory(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/never":
		case "/silent":
			io.WriteString(w, "first")
			http.NewResponseController(w).Flush()
		case "/drip":
			for {
				select {
				case <-time.After(time.Second):
				case <-r.Context().Done():
					return
				}
				if _, err := io.WriteString(w, "x"); err != nil {
					return
				}
				if http.NewResponseController(w).Flush() != nil {
					return
				}
			}
		}
		<-r.Context().Done()
	})
	const short, long = 5 * time.Second, 20 * time.Minute
	open := func(firstByte, idle, total time.Duration) *Client {
		return client(t, Config{AllowCIDR: loopback(t), Dial: server.dial, FirstByte: firstByte, Idle: idle, Total: total})
	}
	ask := func(c *Client, path string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+path, nil)
		if err != nil {
			return nil, err
		}
		return c.Do(t.Context(), req)
	}
	if _, err := ask(open(short, long, long), "/never"); CodeOf(err) != Timeout || Reason(err) != "timed out after 5s waiting for an answer" {
		t.Errorf("never: %v", err)
	}
	resp, err := ask(open(long, short, long), "/silent")
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if string(b) != "first" || CodeOf(err) != Timeout || Reason(err) != "timed out after 5s of silence" {
		t.Errorf("silent: %q %v", b, err)
	}
	if resp, err = ask(open(long, short, 4*short), "/drip"); err != nil {
		t.Fatal(err)
	}
	b, err = io.ReadAll(resp.Body)
	if len(b) < 19 || CodeOf(err) != Timeout || Reason(err) != "timed out after 20s in all" {
		t.Errorf("drip: %q %v", b, err)
	}
	// Nobody reads or closes this one: the total timeout frees its place.
	if _, err := ask(open(long, long, 4*short), "/silent"); err != nil {
		t.Error(err)
	}
}

func TestPatient_WaitsLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := serveInMemory(t, func(w http.ResponseWriter, r *http.Request) { time.Sleep(5 * time.Second) })
		c := client(t, Config{AllowCIDR: loopback(t), Dial: server.dial, FirstByte: time.Second})
		resp, err := (&http.Client{Transport: c.Patient(10 * time.Second)}).Get("http://127.0.0.1/")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	})
}

func TestDo_RefusesEndlessHeader(t *testing.T) {
	w := listen(t, "127.0.0.1:0", func(c net.Conn) {
		http.ReadRequest(newReader(c))
		io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		for i := 0; ; i++ {
			if _, err := fmt.Fprintf(c, "X-%d: %s\r\n", i, strings.Repeat("y", 1000)); err != nil {
				return
			}
		}
	})
	_, err := get(t, client(t, Config{AllowCIDR: loopback(t)}), "http://127.0.0.1:"+w.port())
	if CodeOf(err) != TooLarge && CodeOf(err) != Cut {
		t.Errorf("%v (%s)", err, CodeOf(err))
	}
}

func TestDo_RefusesGzipThatWasNotAskedFor(t *testing.T) {
	asked := ""
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Get("Accept-Encoding")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		z.Write(make([]byte, 1<<20))
		z.Close()
	})
	_, err := get(t, client(t, Config{AllowCIDR: loopback(t)}), url)
	if CodeOf(err) != Encoded || asked != "" {
		t.Errorf("%v, asked %q", err, asked)
	}
}

func TestReason_SaysWhatHappened(t *testing.T) {
	ln := listen(t, "127.0.0.1:0", nil)
	port := ln.port()
	ln.Close()
	tlsServer := httptest.NewTLSServer(http.NotFoundHandler())
	defer tlsServer.Close()
	tlsServer.Config.ErrorLog = nil
	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	garbage := listen(t, "127.0.0.1:0", func(c net.Conn) {
		http.ReadRequest(newReader(c))
		io.WriteString(c, "SSH-2.0-OpenSSH_9.9\r\n\r\n")
	})
	closing := listen(t, "127.0.0.1:0", func(c net.Conn) { http.ReadRequest(newReader(c)) })

	c := client(t, Config{AllowCIDR: loopback(t)})
	for _, tt := range []struct{ url, want string }{
		{"http://127.0.0.1:" + port, "connection refused"},
		{tlsServer.URL, "TLS certificate is signed by an unknown authority"},
		{strings.Replace(plain, "http:", "https:", 1), "the host does not speak TLS on that port"},
		{"http://127.0.0.1:" + garbage.port(), "the answer is not HTTP"},
		{"http://127.0.0.1:" + closing.port(), "the connection was closed before the answer was complete"},
		{"ftp://example.com/", "only http and https addresses are called, not ftp"},
		{"http://10.0.0.1/", "refused to connect to a private address"},
		{"http://example.com:22/", "port 22 belongs to another protocol than HTTP"},
		{"http://a:b@example.com/", "the address holds a user name or password; give credentials in their own field"},
	} {
		_, err := get(t, c, tt.url)
		if got := Reason(err); got != tt.want {
			t.Errorf("%s: %q, want %q (%v)", tt.url, got, tt.want, err)
		}
	}
	pool := x509.NewCertPool()
	pool.AddCert(tlsServer.Certificate())
	c2 := client(t, Config{AllowCIDR: parsePrefixes("127.0.0.0/8"), RootCAs: pool})
	resp, err := get(t, c2, tlsServer.URL)
	if err != nil {
		t.Fatalf("trusted: %v", err)
	}
	resp.Body.Close()
	_, err = get(t, c2, strings.Replace(tlsServer.URL, "127.0.0.1", "127.0.0.2", 1))
	if got := Reason(err); got != "TLS certificate is not valid for 127.0.0.2" && got != "connection refused" {
		t.Errorf("other name: %q", got)
	}
	if Reason(nil) != "" || Reason(errors.New("x")) != "the request failed" || Reason(context.Canceled) != "the request was stopped" {
		t.Error("plain errors")
	}
}

func TestDo_RefusesForeignHostHeader(t *testing.T) {
	req, _ := http.NewRequest("GET", "http://8.8.8.8/", nil)
	req.Host = "internal.example"
	if _, err := client(t, Config{}).Do(t.Context(), req); CodeOf(err) != BadURL {
		t.Errorf("%v", err)
	}
}

func TestDo_CancelEndsAtOnce(t *testing.T) {
	entered := make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }()
	req, _ := http.NewRequest("GET", url, nil)
	c := client(t, Config{AllowCIDR: loopback(t)})
	if _, err := c.Do(ctx, req); CodeOf(err) != Canceled {
		t.Errorf("%v", err)
	}
	if len(c.gate.hosts) != 0 {
		t.Errorf("%d hosts remembered", len(c.gate.hosts))
	}
}

func TestClient_KeepsFewIdleConnections(t *testing.T) {
	const hosts, kept = 5, 2
	c := client(t, Config{AllowCIDR: loopback(t), MaxIdle: kept})
	var left atomic.Int32
	closed := make(chan struct{}, hosts)
	for range hosts {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				left.Add(1)
			case http.StateClosed:
				left.Add(-1)
				closed <- struct{}{}
			}
		}
		s.Start()
		t.Cleanup(s.Close)
		resp, err := get(t, c, s.URL)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	for range hosts - kept {
		<-closed
	}
	if n := left.Load(); n != kept {
		t.Errorf("%d connections are kept, want %d", n, kept)
	}
}

func TestClient_KeepsIdleConnectionsNotForLong(t *testing.T) {
	closed := make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(closed)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	resp, err := get(t, client(t, Config{AllowCIDR: loopback(t), KeepIdle: time.Millisecond}), s.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	<-closed
}

// The answer to a redirected request says whether it was carried out.
func TestDo_SaysThatARedirectedRequestDidNothing(t *testing.T) {
	for code, undone := range map[int]bool{301: true, 302: true, 303: false, 307: true, 308: true} {
		at := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "https://other.example/")
			w.WriteHeader(code)
		})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = client(t, Config{AllowCIDR: loopback(t)}).Do(t.Context(), req)
		if NeverSent(err) != undone || strings.Contains(Reason(err), "nothing was done") != undone ||
			!strings.Contains(Reason(err), "other.example") {
			t.Errorf("%d: %v %q", code, NeverSent(err), Reason(err))
		}
	}
}

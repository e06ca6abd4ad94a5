package app_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/ident"
	"agentsite/internal/testing/apptest"
)

func setHeader(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func setHost(host string) func(*http.Request) { return func(r *http.Request) { r.Host = host } }

// somewhere is a path that matches the pattern.
func somewhere(pattern string) string {
	return strings.NewReplacer("{name}", "calc", "{id}", ident.NewID(), "{handle}", "calc", "{page}", "start", "*", "x").Replace(pattern)
}

func TestUnsafeRoutes_RefuseOtherSites(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.User(t, "olga")
	routes, err := p.Routes()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, r := range routes {
		if r.Method != http.MethodPost && r.Method != http.MethodPut && r.Method != http.MethodPatch && r.Method != http.MethodDelete || strings.HasPrefix(r.Pattern, "/static/") {
			continue
		}
		n++
		for what, edit := range map[string]func(*http.Request){
			"cross-site":        setHeader("Sec-Fetch-Site", "cross-site"),
			"same-site":         setHeader("Sec-Fetch-Site", "same-site"),
			"foreign origin":    setHeader("Origin", "http://evil.example"),
			"null origin":       setHeader("Origin", "null"),
			"other port":        setHeader("Origin", "http://127.0.0.1:1"),
			"suffixed origin":   setHeader("Origin", p.Base+".evil.example"),
			"unreadable origin": setHeader("Origin", "%%%"),
		} {
			a := c.Do(r.Method, somewhere(r.Pattern), form(), edit)
			if a.Status != http.StatusForbidden {
				t.Errorf("%s %s from %s: %d", r.Method, r.Pattern, what, a.Status)
			}
			shape := ""
			switch p := r.Pattern; {
			case p == "/a2a", p == "/agents/{name}/a2a", p == "/mcp", p == "/agents/{name}/mcp":
				shape = `"jsonrpc":"2.0"`
			case strings.HasPrefix(p, "/ard/"):
				shape = `"errorCode":"`
			case strings.HasPrefix(p, "/api/"), strings.HasPrefix(p, "/v1"), strings.HasPrefix(p, "/v0"), strings.Contains(p, "/a2a/"):
				shape = `"kind":"forbidden"`
			}
			if shape != "" && (!strings.Contains(a.Body, shape) || !strings.HasPrefix(a.Header.Get("Content-Type"), "application/json")) {
				t.Errorf("%s %s: an error in another shape: %.100s", r.Method, r.Pattern, a.Body)
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d unsafe routes", n)
	}
	c.Must(http.MethodGet, "/account", nil, http.StatusOK) // nothing happened to the session
}

func TestAllRoutes_RefuseOtherHosts(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	public := apptest.Start(t, func(c *app.Config) { c.URL = "http://portal.example" })
	_, port, _ := net.SplitHostPort(p.Addr().String())
	routes, err := p.Routes()
	if err != nil {
		t.Fatal(err)
	}
	here, there := p.Guest(t), public.Guest(t)
	for i, r := range routes {
		hosts := []string{"evil.example", "evil.example:" + port}
		if i == 0 {
			hosts = append(hosts, "127.0.0.1.evil.example", "localhost.evil.example", "evillocalhost", "10.0.0.1", "0.0.0.0", "[::]", "portal.example", "user@127.0.0.1:"+port, "127.1", "2130706433")
		}
		for _, h := range hosts {
			if a, err := here.Try(r.Method, somewhere(r.Pattern), nil, setHost(h)); err == nil && a.Status != http.StatusMisdirectedRequest && a.Status != http.StatusBadRequest {
				t.Errorf("%s %s for host %s: %d", r.Method, r.Pattern, h, a.Status)
			}
		}
		// A portal with a public name answers for no loopback name.
		for _, h := range []string{"127.0.0.1", "localhost", "portal.example.evil.example", "www.portal.example", "portal.example:8080"} {
			if a := there.Do(r.Method, somewhere(r.Pattern), nil, setHost(h)); a.Status != http.StatusMisdirectedRequest {
				t.Errorf("%s %s of portal.example for host %s: %d", r.Method, r.Pattern, h, a.Status)
			}
		}
	}
	for _, h := range []string{"localhost", "localhost:" + port, "LOCALHOST:" + port, "[::1]:" + port, "a.localhost:" + port, "127.0.0.1:" + port, "127.9.9.9"} {
		here.Must(http.MethodGet, "/healthz", nil, http.StatusOK, setHost(h))
	}
	for _, h := range []string{"portal.example", "PORTAL.example", "portal.example:80"} {
		there.Must(http.MethodGet, "/healthz", nil, http.StatusOK, setHost(h))
	}
}

// handshake opens a raw WebSocket as c and returns the connection and the
// status line's code.
func handshake(t *testing.T, p *apptest.Portal, c *apptest.Client, room, origin string) (net.Conn, *bufio.Reader, int) {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	u, _ := url.Parse(p.Base)
	var b strings.Builder
	fmt.Fprintf(&b, "GET /api/v1/conversations/%s/live HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", room, p.Host)
	for _, k := range c.HTTP.Jar.Cookies(u) {
		fmt.Fprintf(&b, "Cookie: %s=%s\r\n", k.Name, k.Value)
	}
	if origin != "" {
		fmt.Fprintf(&b, "Origin: %s\r\n", origin)
	}
	b.WriteString("\r\n")
	if _, err := conn.Write([]byte(b.String())); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return conn, in, resp.StatusCode
}

func TestSocket_RefusesForeignOrigin(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.User(t, "olga")
	room := c.Conversation()
	_, port, _ := net.SplitHostPort(p.Addr().String())
	for _, origin := range []string{"http://evil.example", "null", "http://127.0.0.1:1", "http://127.0.0.1", "http://sub." + p.Host, "http://localhost:" + port,
		"http://" + p.Host + ".evil.example", "file://", "http://evil.example#" + p.Host, "http://" + p.Host + "@evil.example"} {
		if _, _, code := handshake(t, p, c, room, origin); code != http.StatusForbidden {
			t.Errorf("origin %s: %d", origin, code)
		}
	}
	for _, origin := range []string{"", p.Base} {
		if _, _, code := handshake(t, p, c, room, origin); code != http.StatusSwitchingProtocols {
			t.Errorf("origin %q: %d", origin, code)
		}
	}
	// Before any upgrade: who has no right gets no socket, whatever the origin.
	if _, _, code := handshake(t, p, p.Guest(t), room, p.Base); code != http.StatusUnauthorized {
		t.Errorf("without a session: %d", code)
	}
	if _, _, code := handshake(t, p, p.User(t, "otto"), room, p.Base); code != http.StatusNotFound {
		t.Errorf("as somebody else: %d", code)
	}
}

// badLogins tries wrong passwords and returns the last answer.
func badLogins(c *apptest.Client, n int, edit func(i int) func(*http.Request)) (a apptest.Answer) {
	for i := range n {
		a = c.Do(http.MethodPost, "/login", form("name", "olga", "password", "wrong wrong wrong"), edit(i))
		if a.Status == http.StatusTooManyRequests {
			return a
		}
	}
	return a
}

func TestForwardedAddress_CountsOnlyFromTrustedProxies(t *testing.T) {
	t.Parallel()
	headers := func(i int) func(*http.Request) {
		return func(r *http.Request) {
			ip := fmt.Sprintf("198.51.100.%d", i+1)
			for _, h := range []string{"X-Forwarded-For", "X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Forwarded", "X-Client-Ip"} {
				r.Header.Set(h, ip)
			}
		}
	}
	p := apptest.Start(t)
	if a := badLogins(p.Guest(t), 12, headers); a.Status != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
		t.Errorf("a forged address escapes the limit: %d, Retry-After %q", a.Status, a.Header.Get("Retry-After"))
	}
	if a := badLogins(p.Guest(t), 1, headers); a.Status != http.StatusUnauthorized {
		t.Errorf("another address is limited too: %d", a.Status)
	}
	if strings.Contains(p.Log(), "198.51.100.") {
		t.Error("a forged address is in the log")
	}
	behind := apptest.Start(t, func(c *app.Config) { c.TrustedProxies = "127.0.0.0/8" })
	if a := badLogins(behind.Guest(t), 12, headers); a.Status != http.StatusUnauthorized {
		t.Errorf("behind a trusted proxy: %d", a.Status)
	}
}

func TestNext_StaysOnThePortal(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	in := p.User(t, "olga")
	for next, want := range map[string]string{
		"": "/", "/account": "/account", "/agents?q=x&y=//z": "/agents?q=x&y=//z",
		"//evil.example": "/", "///evil.example": "/", "/\\evil.example": "/", "\\\\evil.example": "/", "https://evil.example": "/", "http:evil.example": "/",
		"javascript:alert(1)": "/", "evil.example": "/", "/%2f%2fevil.example": "/", "/%5cevil.example": "/", "/\t/evil.example": "/", "/\n/evil.example": "/",
		" //evil.example": "/", "/\x00/evil.example": "/", "?x": "/", "data:text/html,x": "/", "%2f%2fevil.example": "/", "//evil.example/%2f..": "/", "////evil": "/",
		"/.//evil.example": "*", "/..//evil.example": "*", "/x/../..//evil.example": "*", "/;@evil.example": "*", "/@evil.example": "*",
	} {
		check := func(how, to string) {
			u, err := url.Parse(to)
			if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.HasPrefix(to, "/\\") {
				t.Errorf("%s next=%q leads to %q", how, next, to)
			}
		}
		a := p.LogInNext(t, "olga", next)
		if got := a.Header.Get("Location"); a.Status != http.StatusSeeOther || want != "*" && got != want {
			t.Errorf("next=%q: %d to %q, want %q", next, a.Status, got, want)
		} else {
			check("login", got)
		}
		a = in.Must(http.MethodGet, "/login?"+url.Values{"next": {next}}.Encode(), nil, http.StatusSeeOther)
		check("login while logged in", a.Header.Get("Location"))
		a = p.Guest(t).Must(http.MethodGet, "/login?"+url.Values{"next": {next}}.Encode(), nil, http.StatusOK)
		for _, v := range between(a.Body, `name="next" value="`, `"`) {
			if v != "" {
				check("form", v)
			}
		}
	}
}

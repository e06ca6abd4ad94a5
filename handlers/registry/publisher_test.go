package registry_test

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// publisher is the official client, unmodified, with a home of its own.
type publisher struct {
	t          *testing.T
	tool, home string
}

func newPublisher(t *testing.T) *publisher {
	tool := os.Getenv("AGENTSITE_TEST_MCP_PUBLISHER")
	if tool == "" {
		if strings.Contains(os.Getenv("AGENTSITE_TEST_REQUIRE"), "mcp-publisher") {
			t.Fatal("AGENTSITE_TEST_MCP_PUBLISHER names no mcp-publisher")
		}
		t.Skip("set AGENTSITE_TEST_MCP_PUBLISHER to the official publisher to run this")
	}
	return &publisher{t, tool, t.TempDir()}
}

func (p *publisher) run(args ...string) (string, error) {
	cmd := exec.CommandContext(p.t.Context(), p.tool, args...)
	cmd.Dir, cmd.Env = p.home, append(os.Environ(), "HOME="+p.home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (p *publisher) must(says string, args ...string) string {
	p.t.Helper()
	out, err := p.run(args...)
	if err != nil || !strings.Contains(out, says) {
		p.t.Fatalf("mcp-publisher %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (p *publisher) fails(says string, args ...string) {
	p.t.Helper()
	if out, err := p.run(args...); err == nil || !strings.Contains(out, says) {
		p.t.Errorf("mcp-publisher %s: %v, want %q\n%s", strings.Join(args, " "), err, says, out)
	}
}

func (p *publisher) write(s map[string]any) {
	p.t.Helper()
	b, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(filepath.Join(p.home, "server.json"), b, 0o600)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// The official publisher proves a domain, publishes and sets the status; the
// domain is a server on this machine, which a portal on loopback may ask.
func TestPublisher_Official(t *testing.T) {
	t.Parallel()
	pub := newPublisher(t)
	var mu sync.Mutex // guards record
	record := ""
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path != "/.well-known/mcp-registry-auth" || record == "" {
			http.NotFound(w, r)
			return
		}
		w.Write([]byte(record))
	}))
	defer keys.Close()
	tools := agenttest.NewMCPServer(t, true)
	p := apptest.Start(t)
	address := strings.TrimPrefix(keys.URL, "http://")
	domain := strings.Replace(address, "127.0.0.1", "localhost", 1)
	login := func(method, domain, algorithm string, size int) []string {
		seed := make([]byte, size)
		rand.Read(seed)
		seed[0] = 0 // a scalar of P-384 is below its order
		return []string{"login", method, "--registry", p.URL(), "--domain", domain, "--algorithm", algorithm, "--private-key", hex.EncodeToString(seed)}
	}
	for _, args := range [][]string{login("http", address, "ecdsap384", 48), login("http", domain, "ed25519", 32)} {
		mu.Lock()
		record = ""
		mu.Unlock()
		out, err := pub.run(args...)
		if err == nil || !strings.Contains(out, "HTTP authentication failed") {
			t.Fatalf("without a key: %v\n%s", err, out)
		}
		_, rest, _ := strings.Cut(out, "Expected proof record:\n")
		mu.Lock()
		record, _, _ = strings.Cut(rest, "\n")
		mu.Unlock()
		pub.must("Successfully logged in", args...)
	}
	pub.fails("has no public DNS records", login("dns", domain, "ed25519", 32)...)

	const name = "localhost/rain"
	pub.write(serverJSON(name, "1.0.0", tools.URL))
	pub.must("server.json is valid", "validate")
	pub.must("Successfully published", "publish")
	pub.fails("cannot publish duplicate version", "publish")
	pub.write(serverJSON(name, "1.x", tools.URL))
	pub.fails("version must be a specific version", "publish")
	pub.write(serverJSON("com.example/rain", "1.0.0", tools.URL+"/other"))
	pub.fails("You have permission to publish: localhost/*", "publish")
	pub.write(serverJSON(name, "1.1.0", tools.URL))
	pub.must("Server localhost/rain version 1.1.0", "publish")
	pub.must("active → deprecated", "status", "--status", "deprecated", "--message", "Use 1.1.0.", name, "1.0.0")
	c := p.Guest(t)
	if l := get(t, c, "/v0.1/servers"); l.String() != name+" 1.0.0 deprecated, "+name+" 1.1.0 active latest" {
		t.Errorf("%s", l)
	}
	foundEverywhere(t, p, name, "rain-localhost")
	pub.must("Successfully updated 2 version(s)", "status", "--status", "deleted", "--all-versions", "--yes", name)
	if l := get(t, c, "/v0.1/servers"); len(l.Servers) != 0 {
		t.Errorf("%s", l)
	}
	pub.must("deleted → active", "status", "--status", "active", name, "1.1.0")
	if l := get(t, c, "/v0.1/servers"); l.String() != name+" 1.1.0 active latest" {
		t.Errorf("%s", l)
	}
	if b := c.Must(http.MethodGet, "/agents/rain-localhost", nil, http.StatusOK).Body; !strings.Contains(b, "Forecasts of rain.") {
		t.Error("its page does not show it")
	}

	// For tests there is a namespace for everybody, and an account publishes
	// with its API token in the place of the registry's.
	pub.must("Successfully logged in", "login", "none", "--registry", p.URL())
	pub.write(serverJSON(anonymousSpace+"pack", "1.0.0", ""))
	pub.must("Successfully published", "publish")
	token, err := json.Marshal(map[string]string{"registry": p.URL(), "token": p.User(t, "ada").NewToken("agents:write").Token})
	if err == nil {
		err = os.WriteFile(filepath.Join(pub.home, ".config", "mcp-publisher", "token.json"), token, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	pub.write(serverJSON(own+"/adas-rain", "1.0.0", tools.URL))
	out, _ := pub.run("publish")
	if !strings.Contains(out, "is already used by server localhost/rain") {
		t.Errorf("an address of another server: %s", out)
	}
	pub.write(serverJSON(own+"/adas-rain", "1.0.0", tools.URL+"/mcp"))
	pub.must("Successfully published", "publish")
}

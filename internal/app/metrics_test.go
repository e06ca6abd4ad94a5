package app_test

import (
	"context"
	_ "embed"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentsite/internal/app"
	"agentsite/internal/federation"
	"agentsite/internal/testing/apptest"
)

// TestMetrics_TellOfTheFederation has two portals meet, and reads what both
// addresses of one tell.
func TestMetrics_TellOfTheFederation(t *testing.T) {
	t.Parallel()
	b := apptest.Start(t)
	a := apptest.Start(t, func(c *app.Config) { c.MetricsListen = "127.0.0.1:0" })
	olga := a.Operator(t, "olga")
	b.User(t, "bob").Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "far", "description": "An agent of a test.", "kind": "link", "visibility": "public"}, http.StatusCreated)
	if err := a.Greet(t.Context(), b.URL()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := a.Until(ctx, b.NetworkID(), func(p federation.Peer) bool { return p.Listed > 0 && p.Agents == p.Listed }); err != nil {
		t.Fatal(err, a.Log())
	}
	a.Guest(t).Must(http.MethodGet, "/metrics", nil, http.StatusUnauthorized)
	a.User(t, "ada").NewToken("admin").Must(http.MethodGet, "/metrics", nil, http.StatusForbidden)
	olga.NewToken("agents:read").Must(http.MethodGet, "/metrics", nil, http.StatusForbidden)
	own := olga.NewToken("admin").Must(http.MethodGet, "/metrics", nil, http.StatusOK).Body
	scraped := scrape(t, a.MetricsAddr(), "localhost")
	if diff := cmp.Diff(listed, listFamilies(scraped)); diff != "" {
		t.Errorf("other families than testdata/metrics.txt:\n%s", diff)
	}
	for _, text := range []string{own, scraped} {
		for _, want := range []string{
			`agentsite_peers{state="active"} 1`, `agentsite_peers{state="quarantined"} 0`, `agentsite_peer_heads{state="current"} 1`, `agentsite_records_total{outcome="admitted"} `,
			`agentsite_peer_asked_total{outcome="ok"} `, `agentsite_peer_rtt_seconds{portal="` + b.Host + `"} 0.`, "agentsite_nonces_max 1", `agentsite_connections_held{kind="sockets"} 0`, "agentsite_connections_open ", `agentsite_clock_wrong 0`, "go_goroutines ", `agentsite_calls_out_total{outcome="reached"} 0`,
		} {
			if !strings.Contains(text, "\n"+want) {
				t.Errorf("it lacks %q", want)
			}
		}
		if strings.Contains(text, "agentsite_peer_received_bytes_total 0\n") || strings.Contains(text, "agentsite_records_total{outcome=\"admitted\"} 0\n") {
			t.Error("what was synced is not counted")
		}
	}
	if got := scrape(t, a.MetricsAddr(), "evil.example"); !strings.Contains(got, "--metrics-listen") {
		t.Errorf("a foreign name gets %.200q", got)
	}
}

// listed are the families that programs of operators read: help, type and labels.
//
//go:embed testdata/metrics.txt
var listed string

// listFamilies returns the help, the type and the labels of each family of a text for scrapers.
func listFamilies(text string) string {
	var out strings.Builder
	last := ""
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			out.WriteString(line)
			continue
		}
		family := labelValue.ReplaceAllString(line[:strings.LastIndex(line, " ")], "$1")
		if family != last {
			out.WriteString(family + "\n")
			last = family
		}
	}
	return out.String()
}

var labelValue = regexp.MustCompile(`([a-z]+)="[^"]*"`)

func scrape(t *testing.T, addr, host string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

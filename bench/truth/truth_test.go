package main

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/hub"
)

// TestVerdicts_AreTrueAndNobodyWorks is what SEEDS.md A7 asks for.
func TestVerdicts_AreTrueAndNobodyWorks(t *testing.T) {
	rows := judge(t)
	bad, reasons := 0, make(map[string]bool)
	for _, r := range rows {
		if !r.right() {
			t.Errorf("%s (%s): said %s when registered and %s when checked, %q; it is %s, because it %s (%v)", r.name, r.kind, r.first.State, r.got.State, r.got.Reason, r.want, r.what, r.err)
		}
		if r.labour != 0 {
			t.Errorf("%s was made to work %d times", r.name, r.labour)
		}
		if len(r.got.Reason) > 300 {
			t.Errorf("%s: a reason of %d bytes", r.name, len(r.got.Reason))
		}
		if r.want != hub.Alive {
			bad++
			reasons[r.got.Reason] = true
		}
		if r.asks == 0 && r.name != "refused" && r.name != "foreign-certificate" {
			t.Errorf("%s was never asked", r.name)
		}
	}
	if len(rows) < 50 || bad*2 < len(rows) || len(reasons) < 12 {
		t.Errorf("%d agents, %d broken, in %d ways", len(rows), bad, len(reasons))
	}
}

// TestCounter_SeesWork shows that the counters are not blind.
func TestCounter_SeesWork(t *testing.T) {
	d := newDock(t)
	s, c := d.serve(says(200, "text/plain", ""))
	for _, req := range []struct{ path, body string }{
		{"/v1/chat/completions", "{}"}, {"/message:send", "{}"}, {"/", `{"jsonrpc":"2.0","method":"tools/call"}`}, {"/", `{"method":"SendMessage"}`},
		{"/", `{"method":"GetTask"}`}, {"/v1/models", ""},
	} {
		resp, err := s.Client().Post(s.URL+req.path, "application/json", strings.NewReader(req.body))
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
		resp.Body.Close()
	}
	if c.asked() != 6 || c.worked() != 4 {
		t.Errorf("%d asked, %d worked", c.asked(), c.worked())
	}
}

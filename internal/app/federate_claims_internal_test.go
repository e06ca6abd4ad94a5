package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record/recordtest"
)

// lets is a guard that believes everybody, and what is known of one portal.
type lets struct {
	standing
	asker federation.Asker
	peer  federation.Peer
}

func (l *lets) Arrive(string) error { return nil }

func (l *lets) Verify(*http.Request, []byte) (federation.Asker, func(), error) {
	return l.asker, func() {}, nil
}

func (l *lets) Portal(context.Context, string) (federation.Peer, bool) { return l.peer, true }

// Owners let people in by what their handles end in, so a host in a handle is
// one where the portal was seen of late.
func TestAsking_AHostIsProvedOfLate(t *testing.T) {
	t.Parallel()
	p := recordtest.NewPortal("a")
	card := p.Card()
	for name, c := range map[string]struct {
		proved time.Time
		url    string
		host   string
	}{
		"just now":     {clock.Now(), "https://a.example", "a.example"},
		"never":        {time.Time{}, "https://a.example", string(p.ID)},
		"a week ago":   {clock.Now().Add(-7 * 24 * time.Hour), "https://a.example", string(p.ID)},
		"at elsewhere": {clock.Now(), "https://b.example", string(p.ID)},
	} {
		l := &lets{asker: federation.Asker{Portal: p.ID, Card: card, For: `kind=person, id="x", handle="ada@bank.example"`, Decision: federation.Decision{In: true, Call: true}},
			peer: federation.Peer{ID: p.ID, URL: c.url, Proved: c.proved}}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a2a", strings.NewReader("{}"))
		actor, err := (&crossing{guard: l, peers: l}).Asking(httptest.NewRecorder(), r)
		if err != nil || actor.Name != "ada@"+c.host {
			t.Errorf("proved %s: %q %v", name, actor.Name, err)
		}
	}
}

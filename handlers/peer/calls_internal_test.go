package peer

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/internal/testing/recordtest"
)

// lets is a guard that believes everybody, and what is known of one portal.
type lets struct {
	Standing
	asker guard.Asker
	peer  federation.Peer
}

func (l *lets) Arrive(string) error { return nil }

func (l *lets) Strike(string, federation.Reason) {}

func (l *lets) Verify(_ *http.Request, _ string, read guard.ReadBody) (guard.Asker, []byte, func(), error) {
	body, err := read(l.asker)
	return l.asker, body, func() {}, err
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
		l := &lets{asker: guard.Asker{Portal: p.ID, Card: card, For: `kind=person, id="x", handle="ada@bank.example"`, Decision: federation.Decision{In: true, Call: true}},
			peer: federation.Peer{ID: p.ID, URL: c.url, Proved: c.proved}}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a2a", strings.NewReader("{}"))
		actor, err := NewCalls(CallsConfig{Guard: l, Peers: l}).Asking(httptest.NewRecorder(), r)
		if err != nil || actor.Name != "ada@"+c.host {
			t.Errorf("proved %s: %q %v", name, actor.Name, err)
		}
	}
}

// counted is a body of spaces that counts what is read of it.
type counted struct{ left, read int64 }

func (c *counted) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), c.left)
	for i := range n {
		p[i] = ' '
	}
	c.left, c.read = c.left-n, c.read+n
	return int(n), nil
}

// How much is read of a message is by who asks.
func TestAsking_ReadsLittleOfStrangers(t *testing.T) {
	t.Parallel()
	p := recordtest.NewPortal("a")
	proved := federation.Decision{In: true, Call: true}
	stranger := federation.Decision{In: true, Call: true, Unproved: true}
	for name, c := range map[string]struct {
		decision federation.Decision
		who      string
		header   string
		size     int64
		most     int64 // that may be read
		reason   federation.Reason
	}{
		"a proved portal":        {proved, `kind=person, id="x", handle="ada@a.example"`, "", 4 << 20, 4 << 20, ""},
		"one that is not":        {stranger, `kind=person, id="x", handle="ada@a.example"`, "", 256 << 10, 256 << 10, ""},
		"more of a proved one":   {proved, `kind=person, id="x", handle="ada@a.example"`, "", 4<<20 + 1, 4<<20 + 1, federation.ReasonSize},
		"more of one not proved": {stranger, `kind=person, id="x", handle="ada@a.example"`, "", 256<<10 + 1, 256<<10 + 1, federation.ReasonSize},
		"one that may not call":  {federation.Decision{In: true}, `kind=person, id="x", handle="ada@a.example"`, "", 10, 0, federation.ReasonDenied},
		"for nobody":             {proved, `kind`, "", 10, 0, federation.ReasonMalformed},
		"with a credential":      {proved, `kind=person, id="x", handle="ada@a.example"`, "Bearer x", 10, 0, federation.ReasonMalformed},
	} {
		for _, told := range []bool{true, false} {
			l := &lets{asker: guard.Asker{Portal: p.ID, Card: p.Card(), For: c.who, Decision: c.decision}, peer: federation.Peer{ID: p.ID}}
			body := &counted{left: c.size}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a2a", body)
			if r.ContentLength = -1; told {
				r.ContentLength = c.size
			}
			if c.header != "" {
				r.Header.Set("Authorization", c.header)
			}
			_, err := NewCalls(CallsConfig{Guard: l, Peers: l}).Asking(httptest.NewRecorder(), r)
			if (err == nil) != (c.reason == "") || err != nil && federation.RefusalOf(err).Reason != c.reason {
				t.Errorf("%s: %v", name, err)
			}
			if most := c.most; body.read > most || told && c.reason == federation.ReasonSize && body.read > 0 {
				t.Errorf("%s: %d bytes are read", name, body.read)
			}
		}
	}
}

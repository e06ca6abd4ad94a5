package app

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/ident/httpsig"
	"agentsite/internal/task"
)

// Found makes a portal know agents of others by a network of the test's own.
func Found(c *Config, n hub.Network) { c.RemoteAgents = n }

// NetworkID is the portal's id in its network.
func (p *Portal) NetworkID() string { return string(p.node.ID) }

// Rule says of another portal what an operator says: allow, pin, deny or "".
func (p *Portal) Rule(ctx context.Context, portal, stand string) error {
	_, err := p.node.Peers.SetRule(ctx, ident.Actor{Kind: ident.Operator, ID: "op", Name: "op"}, portal, federation.RuleChange{Stand: &stand})
	return err
}

// State is how another portal is doing, seen from here.
func (p *Portal) State(ctx context.Context, portal string) federation.State {
	peer, _ := p.node.Peers.Portal(ctx, portal)
	return peer.State
}

// Greet says hello to the portal at an origin.
func (p *Portal) Greet(ctx context.Context, origin string) error {
	_, err := p.node.Client.Greet(ctx, origin)
	return err
}

// ToPortal signs what is sent to another portal.
func (p *Portal) ToPortal(portal, origin string) http.RoundTripper {
	return callerPortals{p}.Transport(portal, origin)
}

// Running is what is worked on for people of other portals.
func (p *Portal) Running(t testing.TB) []task.Task {
	t.Helper()
	asking, _, err := p.db.Tasks.ActivePortals(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var out []task.Task
	for _, id := range asking {
		list, err := p.db.Tasks.TasksFor(context.Background(), id)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, list...)
	}
	return out
}

// AwaitRunning waits until people of other portals have n tasks here that have not ended.
func (p *Portal) AwaitRunning(t testing.TB, n int) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(2 * time.Minute); ; {
		have := len(p.Running(t))
		if have == n {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%d tasks of other portals, want %d", have, n)
		}
	}
}

// Ended waits until a task has ended, and demands a state.
func (p *Portal) Ended(t testing.TB, id, state string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(2 * time.Minute); ; {
		k, err := p.db.Tasks.TaskByID(context.Background(), id)
		if err != nil {
			t.Fatal(err)
		}
		if k.State.Terminal() {
			if string(k.State) != state {
				t.Errorf("it ended as %s: %s", k.State, k.Reason)
			}
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("the task is %s", k.State)
		}
	}
}

// Sign signs a request of this portal for somebody, which can be sent then.
func (p *Portal) Sign(t testing.TB, r *http.Request, who string) {
	t.Helper()
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Digest", httpsig.DigestOf(sha256.Sum256(body)))
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	r.Header.Set(guard.ForField, who)
	if err := guard.SignRequest(r, p.node.Self, rand.Text()[:22], time.Now()); err != nil {
		t.Fatal(err)
	}
}

// Signed is a request as it is signed for another portal.
type Signed struct {
	Header http.Header
	Body   []byte
}

// Signed signs a request, whose body is lost, and does not send it.
func (p *Portal) Signed(t testing.TB, r *http.Request) Signed {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(body)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Content-Digest", httpsig.DigestOf(sum))
	r.Header.Set(guard.ForField, `kind=person, id="ada", handle="ada@a.example"`)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	if err := guard.SignRequest(r, p.node.Self, strings.Repeat("n", 22), time.Now()); err != nil {
		t.Fatal(err)
	}
	return Signed{r.Header, body}
}

// Until waits until a portal is as it should be, and is shown so. Nobody is told
// of how a sync goes, so it looks again and again.
func (p *Portal) Until(ctx context.Context, portal string, ok func(federation.Peer) bool) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		for _, peer := range p.node.Peers.Portals(ctx) {
			if string(peer.ID) == portal && ok(peer) {
				p.node.Catalog.Reconcile(ctx)
				return nil
			}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// AskedBy returns what sends a signed request of another portal to this one.
func (p *Portal) AskedBy(by *Portal, method, path string, body []byte) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		a, err := by.node.Client.Do(ctx, p.url.String(), p.node.ID, method, path, body, 1<<20)
		if err != nil {
			return 0, err
		}
		return a.Status, nil
	}
}

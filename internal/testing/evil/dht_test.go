package evil_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/internal/app"
	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/internal/ident/httpsig"
	"agentsite/internal/record"
	"agentsite/internal/testing/evil"
	"agentsite/peering/kademlia"
	"agentsite/peering/kademlia/wire"
)

// nodeID is where a portal is in the DHT.
func nodeID(t *testing.T, id record.PortalID) kademlia.ID {
	t.Helper()
	d, ok := id.Digest()
	if !ok {
		t.Fatalf("%s is no id", id)
	}
	return kademlia.ID(d)
}

// contact is what a portal says of where a portal is; by signs it.
func contact(t *testing.T, by *evil.Portal, of record.PortalID, origin string, issued, expires time.Duration) []byte {
	t.Helper()
	u, err := url.Parse(origin)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	h := by.Header(0)
	now := clock.Now()
	h.Portal, h.Issued, h.Expires = of, now.Add(issued).UnixMilli(), now.Add(expires).UnixMilli()
	r, err := record.Sign(by.Network, &record.Contact{Header: h, CardSeq: 1, Host: u.Hostname(), Port: uint16(port)}, by.Op)
	if err != nil {
		t.Fatal(err)
	}
	return r.Wire
}

// own is a portal's true contact.
func own(t *testing.T, p *evil.Portal) []byte {
	return contact(t, p, p.ID, p.Origin, 0, time.Hour)
}

// inDHT has a portal answer as a node of the DHT that names these, and returns
// how often it was asked by whom.
func inDHT(t *testing.T, p *evil.Portal, names func() []wire.Node) (by func(record.PortalID) int) {
	t.Helper()
	self := own(t, p)
	var mu sync.Mutex
	asked := make(map[record.PortalID]int)
	for _, route := range []string{"ping", "find_node", "get", "store"} {
		h := answer(self, names)
		if route == "ping" {
			h = answer(self, nil)
		}
		p.On("/peering/v1/dht/"+route, func(w http.ResponseWriter, r *http.Request) {
			_, id, _ := strings.Cut(r.Header.Get("Signature-Input"), `keyid="`)
			id, _, _ = strings.Cut(id, "/")
			mu.Lock()
			asked[record.PortalID(id)]++
			mu.Unlock()
			h(w, r)
		})
	}
	return func(id record.PortalID) int {
		mu.Lock()
		defer mu.Unlock()
		return asked[id]
	}
}

func answer(self []byte, names func() []wire.Node) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(io.LimitReader(r.Body, wire.MaxBytes))
		q, err := wire.DecodeRequest(b)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out := &wire.Response{Self: self, Found: make([][][]byte, len(q.Targets)), Codes: make([]wire.Code, len(q.Records))}
		if q.Kind != wire.Get {
			out.Found = nil
		}
		for i := range out.Codes {
			out.Codes[i] = wire.Stored
		}
		if names != nil {
			out.Nodes = names()
		}
		w.Write(wire.AppendResponse(nil, out))
	}
}

// ping is an honest request of the DHT.
func ping(t *testing.T, p *evil.Portal) evil.Request {
	return evil.Request{Path: "/peering/v1/dht/ping", Body: wire.AppendRequest(nil, &wire.Request{Kind: wire.Ping, From: own(t, p)})}
}

func (h *honest) dht() (s federation.DHTStanding) {
	h.t.Helper()
	h.op.Get(http.MethodGet, "/api/v1/peers/dht", nil, http.StatusOK, &s)
	return s
}

// unknown starts a portal that nobody knows, meet has it say hello.
func unknown(t *testing.T, network string) *evil.Portal {
	t.Helper()
	p, err := evil.New(network)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func meet(t *testing.T, p *evil.Portal, to *honest) {
	t.Helper()
	if a, err := p.Hello(t.Context(), to.Origin()); err != nil || a.Status != http.StatusOK {
		t.Fatalf("no hello: %d %s %v", a.Status, a.Body, err)
	}
}

// TestDHT_RefusesRequestsThatAreNotForItNow asks a portal's node for what it does
// for everybody, by requests that are not what they seem.
func TestDHT_RefusesRequestsThatAreNotForItNow(t *testing.T) {
	t.Parallel()
	victim := start(t)
	shift := func(d time.Duration) func(*http.Request, *httpsig.Params) {
		return func(_ *http.Request, p *httpsig.Params) { p.Created, p.Expires = p.Created.Add(d), p.Expires.Add(d) }
	}
	for _, c := range []struct {
		name, want string
		do         func(context.Context, *evil.Portal, evil.Request) (evil.Answer, error)
	}{
		{"honest", "", func(ctx context.Context, p *evil.Portal, q evil.Request) (evil.Answer, error) {
			return p.Ask(ctx, victim.Origin(), q)
		}},
		{"clock ten minutes ahead", "clock", func(ctx context.Context, p *evil.Portal, q evil.Request) (evil.Answer, error) {
			q.Before = shift(10 * time.Minute)
			return p.Ask(ctx, victim.Origin(), q)
		}},
		{"clock ten minutes behind", "clock", func(ctx context.Context, p *evil.Portal, q evil.Request) (evil.Answer, error) {
			q.Before = shift(-10 * time.Minute)
			return p.Ask(ctx, victim.Origin(), q)
		}},
		{"replayed", "replayed", func(ctx context.Context, p *evil.Portal, q evil.Request) (evil.Answer, error) {
			r, err := p.Make(ctx, victim.Origin(), q)
			if err != nil {
				return evil.Answer{}, err
			}
			if a, err := evil.Send(r); err != nil || a.Status != http.StatusOK {
				t.Errorf("the first time: %d %s %v", a.Status, a.Body, err)
			}
			again, err := http.NewRequestWithContext(ctx, r.Method, r.URL.String(), bytes.NewReader(q.Body))
			if err != nil {
				return evil.Answer{}, err
			}
			again.Header = r.Header
			return evil.Send(again)
		}},
		{"of another network", "network", func(ctx context.Context, p *evil.Portal, q evil.Request) (evil.Answer, error) {
			q.Before = func(r *http.Request, _ *httpsig.Params) { r.Header.Set(guard.NetworkField, "agentsite-other") }
			return p.Ask(ctx, victim.Origin(), q)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := unknown(t, app.DefaultNetwork)
			meet(t, p, victim)
			a, err := c.do(t.Context(), p, ping(t, p))
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				if r, err := wire.DecodeResponse(a.Body); a.Status != http.StatusOK || err != nil || len(r.Self) == 0 {
					t.Errorf("%d %q: %v", a.Status, a.Body, err)
				}
			} else if a.Status == http.StatusOK || a.Reason != c.want {
				t.Errorf("%d %s %.200q, want %s", a.Status, a.Reason, a.Body, c.want)
			}
		})
	}
}

// TestDHT_BelievesNoContactThatDoesNotHold has a node of the DHT name others that
// are not there, not in the network, not wanted, or not who they are said to be:
// whom the victim knows stays as it was.
func TestDHT_BelievesNoContactThatDoesNotHold(t *testing.T) {
	t.Parallel()
	neighbour, victim := pair(t)
	thief, robbed, foreign, denied, liar := unknown(t, app.DefaultNetwork), unknown(t, app.DefaultNetwork), unknown(t, "agentsite-other"), unknown(t, app.DefaultNetwork), unknown(t, app.DefaultNetwork)
	asked := make(map[string]func(record.PortalID) int)
	for name, p := range map[string]*evil.Portal{"thief": thief, "denied": denied, "robbed": robbed, "foreign": foreign} {
		asked[name] = inDHT(t, p, nil)
	}
	meet(t, denied, victim)
	meet(t, liar, victim)
	if err := wait("the two are in each other's DHT", func() bool { return victim.dht().Nodes >= 1 && neighbour.dht().Nodes >= 1 }); err != nil {
		t.Fatal(err)
	}
	if err := wait("the one that is to be denied is a node", func() bool { return asked["denied"](victim.id) > 0 }); err != nil {
		t.Fatal(err)
	}
	victim.op.Must(http.MethodPatch, "/api/v1/peers/"+string(denied.ID), map[string]any{"policy": "deny"}, http.StatusOK)
	before := asked["denied"](victim.id)

	private := evil.Unheard()
	inDHT(t, liar, func() []wire.Node {
		return []wire.Node{
			{ID: nodeID(t, robbed.ID), Node: contact(t, thief, robbed.ID, thief.Origin, 0, time.Hour)}, // its id, the thief's address
			{ID: nodeID(t, private), Node: contact(t, liar, private, "https://10.1.2.3:443", 0, time.Hour)},
			{ID: nodeID(t, foreign.ID), Node: own(t, foreign)},
			{ID: nodeID(t, denied.ID), Node: own(t, denied)},
			{ID: nodeID(t, victim.id), Node: own(t, liar)},                                                        // the victim itself
			{ID: nodeID(t, evil.Unheard()), Node: contact(t, liar, liar.ID, liar.Origin, 0, time.Hour)},           // an id that it made up
			{ID: nodeID(t, thief.ID), Node: contact(t, thief, thief.ID, thief.Origin, -2*time.Hour, -time.Hour)},  // over
			{ID: nodeID(t, thief.ID), Node: contact(t, thief, thief.ID, thief.Origin, 10*time.Minute, time.Hour)}, // a clock ten minutes ahead
		}
	})
	was := victim.dht()
	if a, err := liar.Ask(t.Context(), victim.Origin(), ping(t, liar)); err != nil || a.Status != http.StatusOK {
		t.Fatalf("%d %s %v", a.Status, a.Body, err)
	}
	if err := wait("the liar is in the victim's DHT", func() bool { return liar.Asked("/peering/v1/dht/ping") > 0 && victim.dht().Nodes > was.Nodes }); err != nil {
		t.Fatal(err)
	}
	victim.op.Must(http.MethodGet, "/api/v1/peers/dht/lookup?q=zqnothing", nil, http.StatusOK)
	known := victim.dht().Nodes
	for _, end := range []func() bool{
		func() bool { return liar.Asked("/peering/v1/dht/get") > 0 },
		func() bool { return victim.dht().Refused["contact"] >= was.Refused["contact"]+5 },
		// It looked who is at the address that is said to be the robbed one's, and at the private one.
		func() bool { return victim.dht().Failed >= was.Failed+2 },
	} {
		if err := wait("the victim looked into what it was told", end); err != nil {
			t.Fatal(err)
		}
	}
	s := victim.dht()
	if s.Nodes != known {
		t.Errorf("SUCCEEDED: it knows %d nodes, before it was told of them %d", s.Nodes, known)
	}
	for name, by := range asked {
		if got := by(victim.id); got != 0 && (name != "denied" || got != before) {
			t.Errorf("SUCCEEDED: the %s one is asked as a node", name)
		}
	}
	var a federation.DHTAnswer
	victim.op.Get(http.MethodGet, "/api/v1/peers/dht/lookup?q="+string(robbed.ID), nil, http.StatusOK, &a)
	for _, n := range a.Nearest {
		if n != neighbour.id && n != liar.ID {
			t.Errorf("SUCCEEDED: %s is a node", n)
		}
	}
}

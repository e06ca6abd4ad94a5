package overlay

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/internal/record"
	"agentsite/internal/testing/federationtest"
	"agentsite/internal/testing/recordtest"
	"agentsite/peering/kademlia"
	"agentsite/peering/kademlia/wire"
)

// signer speaks for a portal of the tests.
type signer struct {
	p      *recordtest.Portal
	card   []byte
	origin string
}

func (s signer) ID() record.PortalID { return s.p.ID }
func (s signer) Network() string     { return recordtest.Network }
func (s signer) Origin() string      { return s.origin }
func (s signer) Card() []byte        { return s.card }
func (s signer) Key(now time.Time) (record.KeyID, ed25519.PrivateKey, time.Time, error) {
	return record.KeyIDOf(record.PublicOf(s.p.Op)), s.p.Op, now.Add(72 * time.Hour), nil
}

// registry lets everybody in but those named.
type registry struct {
	federation.Registry
	out map[record.PortalID]bool
}

func (r registry) Decide(_ context.Context, p record.PortalID, _ string) federation.Decision {
	if r.out[p] {
		return federation.Decision{State: federation.Denied, Reason: "spam"}
	}
	return federation.Decision{State: federation.Active, In: true, Show: true, Take: true}
}

func (registry) Portals(context.Context) []federation.Peer { return nil }

// caller answers as the test says.
type caller func(path string, r *wire.Request) (*wire.Response, error)

func (c caller) Do(_ context.Context, _ string, _ record.PortalID, _, path string, body []byte, _ int64) (*federation.Answer, error) {
	r, err := wire.DecodeRequest(body)
	if err != nil {
		return nil, err
	}
	out, err := c(path, r)
	if err != nil {
		return nil, err
	}
	return &federation.Answer{Status: http.StatusOK, Body: wire.AppendResponse(nil, out)}, nil
}

// store keeps nothing.
type store struct{ federation.DHTStore }

type bench struct {
	*Overlay
	self, other, third *recordtest.Portal
	out                map[record.PortalID]bool
	answer             caller
}

func now(p *recordtest.Portal) *recordtest.Portal {
	p.Now = time.Now().UnixMilli()
	return p
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{self: now(recordtest.NewPortal("self")), other: now(recordtest.NewPortal("other")), third: now(recordtest.NewPortal("third")), out: make(map[record.PortalID]bool)}
	gate, _ := recordtest.Gate(t, b.self)
	var err error
	b.Overlay, err = New(Config{
		Self: signer{b.self, b.self.Sign(t, b.self.Card()).Wire, "https://self.example"}, Gate: gate, Registry: registry{out: b.out}, Store: store{},
		Caller: caller(func(path string, r *wire.Request) (*wire.Response, error) { return b.answer(path, r) }),
		Where: func(_ context.Context, p record.PortalID) string {
			if p == b.other.ID {
				return "https://other.example"
			}
			return ""
		},
		Records:   new(federationtest.Replica),
		Uncounted: func(string) bool { return false }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func idOf(p *recordtest.Portal) kademlia.ID {
	d, _ := p.ID.Digest()
	return kademlia.ID(d)
}

// contactOf is where a portal says it is.
func contactOf(t *testing.T, p *recordtest.Portal, host string) []byte {
	return p.Sign(t, &record.Contact{Header: p.Header(time.Hour.Milliseconds()), CardSeq: 1, Host: host, Port: 443}).Wire
}

// contactAt is one of another time than now.
func contactAt(t *testing.T, p *recordtest.Portal, issued, expires time.Duration) []byte {
	t.Helper()
	h, now := p.Header(0), time.Now()
	h.Issued, h.Expires = now.Add(issued).UnixMilli(), now.Add(expires).UnixMilli()
	r, err := record.Sign(recordtest.Network, &record.Contact{Header: h, CardSeq: 1, Host: "third.example", Port: 443}, p.Op)
	if err != nil {
		t.Fatal(err)
	}
	return r.Wire
}

func asker(p *recordtest.Portal) guard.Asker {
	c := p.Card()
	return guard.Asker{Portal: p.ID, Card: c}
}

// TestValues_BelongUnderTheirKey is the check of all that is stored and found.
func TestValues_BelongUnderTheirKey(t *testing.T) {
	b := newBench(t)
	card := b.other.Sign(t, b.other.Card()).Wire
	key := record.AgentKey("x")
	h := b.other.Header(time.Hour.Milliseconds())
	provider := b.other.Sign(t, &record.Provider{Header: h, Kind: record.ProvidesAgent, Key: key, HeadSeq: 1, Count: 1}).Wire
	head := b.other.Sign(t, b.other.Head(new(record.Tree))).Wire
	good := joinLines(card, provider)
	e, err := b.values.Validate(kademlia.ID(key), good)
	if err != nil || e.Publisher != idOf(b.other) || e.Expires.UnixMilli() > h.Issued+valueLife.Milliseconds() {
		t.Fatal(e, err)
	}
	if _, err := b.values.Validate(idOf(b.other), joinLines(card, head)); err != nil {
		t.Error("the head of a portal under its id:", err)
	}
	if _, err := b.values.Validate(hostKey(b.other.Card().Origin), joinLines(card, head)); err != nil {
		t.Error("the head of a portal under its host:", err)
	}
	for name, c := range map[string]struct {
		key   kademlia.ID
		value []byte
	}{
		"a head under another's host":  {hostKey("https://elsewhere.example"), joinLines(card, head)},
		"under another key":            {kademlia.ID(record.AgentKey("y")), good},
		"a head under another's id":    {idOf(b.third), joinLines(card, head)},
		"a provider under an id":       {idOf(b.other), good},
		"a head under an agent's key":  {kademlia.ID(key), joinLines(card, head)},
		"no provider at all":           {kademlia.ID(key), joinLines(card, b.other.Sign(t, b.other.Agent("x")).Wire)},
		"without a card":               {kademlia.ID(key), provider},
		"with a forged record":         {kademlia.ID(key), joinLines(card, recordtest.Bent(provider))},
		"with the card of another one": {kademlia.ID(key), joinLines(b.third.Sign(t, b.third.Card()).Wire, provider)},
		"nothing":                      {kademlia.ID(key), nil},
	} {
		if _, err := b.values.Validate(c.key, c.value); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	for name, off := range map[string]time.Duration{"by a clock ten minutes ahead": 10 * time.Minute, "that is over": -3 * time.Hour} {
		h := b.other.Header(time.Hour.Milliseconds())
		h.Issued, h.Expires = h.Issued+off.Milliseconds(), h.Expires+off.Milliseconds()
		old := b.other.Sign(t, &record.Provider{Header: h, Kind: record.ProvidesAgent, Key: key, HeadSeq: 1, Count: 1}).Wire
		if _, err := b.values.Validate(kademlia.ID(key), joinLines(card, old)); err == nil {
			t.Errorf("a record %s: taken", name)
		}
	}
	b.out[b.other.ID] = true
	if _, err := b.values.Validate(kademlia.ID(key), good); err == nil {
		t.Error("of who is shut out: taken")
	}
}

// TestMarks_SpareWhatIsKnown is of contacts that who asks has already: the answer
// has their ids alone, and they are what they were.
func TestMarks_SpareWhatIsKnown(t *testing.T) {
	b := newBench(t)
	read := func(p *recordtest.Portal, node []byte) *kademlia.Contact {
		t.Helper()
		c, err := b.readContact(idOf(p), node)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	other, third := read(b.other, contactOf(t, b.other, "other.example")), read(b.third, contactOf(t, b.third, "third.example"))
	bare := &kademlia.Contact{ID: idOf(b.self)} // told to begin with: nothing else is known of it
	gone := &kademlia.Contact{ID: kademlia.ID{8}, Node: contactAt(t, b.third, -2*time.Hour, -time.Hour)}
	var asked []*wire.Request
	b.answer = func(_ string, r *wire.Request) (*wire.Response, error) {
		asked = append(asked, r)
		return &wire.Response{Nodes: []wire.Node{{ID: third.ID}, {ID: bare.ID}, {ID: kademlia.ID{9}}}}, nil
	}
	for range 2 {
		resp, _, err := transport{b.Overlay}.Call(t.Context(), other, &kademlia.Request{Kind: kademlia.FindNode, Targets: []kademlia.ID{b.id}, Known: []*kademlia.Contact{other, third, bare, gone}})
		if err != nil || resp.Self != nil || len(resp.Nodes) != 2 || resp.Nodes[0] != third || resp.Nodes[1] != bare {
			t.Fatalf("%+v %v, want those that were known and no other", resp, err)
		}
	}
	if n := b.refused.Load(); n != 2 {
		t.Errorf("%d nodes by an id that nobody knows were refused, want 2", n)
	}
	for _, r := range asked {
		if want := []uint32{r.Salt.Mark(other.Node), r.Salt.Mark(third.Node)}; !slices.Equal(r.Have, want) {
			t.Errorf("marks %x, want %x", r.Have, want)
		}
	}
	if asked[0].Salt == asked[1].Salt {
		t.Error("two requests have one salt: whoever sees it makes up what has a mark")
	}

	// The other side: a portal that names two to one who has one of them, or
	// another one of the same id and version, or what the portal says of itself.
	if err := b.signContact(); err != nil {
		t.Fatal(err)
	}
	forged := *third
	forged.Node = bytes.Replace(third.Node, []byte("third.example"), []byte("thief.example"), 1)
	for name, c := range map[string]struct {
		have       [][]byte
		self       bool
		spelledOut int
	}{
		"nothing":                      {nil, true, 2},
		"one":                          {[][]byte{third.Node}, true, 1},
		"one who says something else":  {[][]byte{forged.Node}, true, 2},
		"all, and who is asked itself": {[][]byte{b.Contact(), other.Node, third.Node}, false, 0},
	} {
		in := &wire.Request{Kind: wire.FindNode, Targets: []wire.ID{b.id}, Salt: wire.Salt{1}}
		for _, node := range c.have {
			in.Have = append(in.Have, in.Salt.Mark(node))
		}
		out, err := wire.DecodeResponse(b.writeResponse(&kademlia.Response{Nodes: []*kademlia.Contact{other, third, bare}}, in))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, node := range out.Nodes {
			if len(node.Node) > 0 {
				n++
			}
		}
		if len(out.Nodes) != 2 || n != c.spelledOut || (len(out.Self) > 0) != c.self {
			t.Errorf("who has %s: %d nodes, %d spelled out, itself %t", name, len(out.Nodes), n, len(out.Self) > 0)
		}
	}
}

// older is a portal of a version that knows no marks.
type older struct{ federation.Caller }

func (o older) Do(ctx context.Context, origin string, portal record.PortalID, method, path string, body []byte, limit int64) (*federation.Answer, error) {
	if body[0] != 1 {
		return &federation.Answer{Status: http.StatusBadRequest}, nil
	}
	return o.Caller.Do(ctx, origin, portal, method, path, body, limit)
}

// TestMarks_AreLeftAwayForOlderVersions is of portals that do not know them.
func TestMarks_AreLeftAwayForOlderVersions(t *testing.T) {
	b := newBench(t)
	b.cfg.Caller = older{b.cfg.Caller}
	to, err := b.readContact(idOf(b.other), contactOf(t, b.other, "other.example"))
	if err != nil {
		t.Fatal(err)
	}
	b.answer = func(_ string, r *wire.Request) (*wire.Response, error) { return &wire.Response{}, nil }
	if _, _, err := (transport{b.Overlay}).Call(t.Context(), to, &kademlia.Request{Kind: kademlia.FindNode, Targets: []kademlia.ID{b.id}, Known: []*kademlia.Contact{to}}); err != nil {
		t.Error(err)
	}
}

// TestCall_BelievesNoContactOfAnother is of answers that name portals.
func TestCall_BelievesNoContactOfAnother(t *testing.T) {
	b := newBench(t)
	to, err := b.readContact(idOf(b.other), contactOf(t, b.other, "other.example"))
	if err != nil {
		t.Fatal(err)
	}
	third := contactOf(t, b.third, "third.example")
	// Nobody signed this one, as nobody would: of what others say that is not
	// looked at.
	long := bytes.Clone(third)
	binary.BigEndian.PutUint64(long[1+32+10+24:], 1<<52)
	b.answer = func(path string, r *wire.Request) (*wire.Response, error) {
		if path != Base+"find_node" || r.Kind != wire.FindNode {
			return nil, errors.New("it asks something else")
		}
		return &wire.Response{Self: contactOf(t, b.other, "new.example"), Nodes: []wire.Node{
			{ID: idOf(b.third), Node: third},
			{ID: idOf(b.self), Node: third},                                               // another's
			{ID: idOf(b.third), Node: []byte("nothing")},                                  // none
			{ID: idOf(b.third), Node: contactAt(t, b.third, -2*time.Hour, -time.Hour)},    // over
			{ID: idOf(b.third), Node: contactAt(t, b.third, 10*time.Minute, 2*time.Hour)}, // by a clock that is ahead
			{ID: idOf(b.third), Node: long},                                               // lives for longer than any
		}}, nil
	}
	resp, _, err := transport{b.Overlay}.Call(t.Context(), to, &kademlia.Request{Kind: kademlia.FindNode, Targets: []kademlia.ID{b.id}})
	if err != nil || len(resp.Nodes) != 1 || resp.Nodes[0].ID != idOf(b.third) {
		t.Fatalf("%+v %v", resp, err)
	}
	if resp.Self == nil || resp.Self.Version <= to.Version {
		t.Error("what it says of itself is not heard")
	}
	if b.refused.Load() != 5 {
		t.Errorf("%d contacts were refused, want 5", b.refused.Load())
	}
	b.answer = func(string, *wire.Request) (*wire.Response, error) {
		return &wire.Response{Self: third}, nil
	}
	if _, _, err := (transport{b.Overlay}).Call(t.Context(), to, &kademlia.Request{Kind: kademlia.Ping}); err == nil {
		t.Error("it says that it is another, and is believed")
	}
	// Who is known by its id only has to say where it is.
	b.answer = func(string, *wire.Request) (*wire.Response, error) { return &wire.Response{}, nil }
	if _, _, err := (transport{b.Overlay}).Call(t.Context(), &kademlia.Contact{ID: idOf(b.other)}, &kademlia.Request{Kind: kademlia.Ping}); err == nil {
		t.Error("it does not say where it is, and is believed")
	}
	asked := false
	b.answer = func(string, *wire.Request) (*wire.Response, error) {
		asked = true
		return &wire.Response{Self: contactOf(t, b.other, "other.example")}, nil
	}
	if _, _, err := (transport{b.Overlay}).Call(t.Context(), &kademlia.Contact{ID: idOf(b.third)}, &kademlia.Request{Kind: kademlia.Ping}); err == nil || asked {
		t.Error("nobody knows where it is, and it was asked")
	}
	if _, _, err := (transport{b.Overlay}).Call(t.Context(), &kademlia.Contact{ID: idOf(b.other)}, &kademlia.Request{Kind: kademlia.Ping}); err != nil || !asked {
		t.Error("it is where it was seen, and was not asked:", err)
	}
}

// TestServe_HearsOnlyWhoSignedWhereItIs is of requests that bring a contact.
func TestServe_HearsOnlyWhoSignedWhereItIs(t *testing.T) {
	b := newBench(t)
	origin := strings.TrimPrefix(b.other.Card().Origin, "https://")
	own := contactOf(t, b.other, origin)
	if c := b.senderContact(asker(b.other), own); c == nil || c.ID != idOf(b.other) {
		t.Error("its own is not heard")
	}
	if c := b.senderContact(asker(b.other), own); c == nil {
		t.Error("nor again")
	}
	for name, sent := range map[string][]byte{
		"nothing": nil, "another's": contactOf(t, b.third, origin), "elsewhere": contactOf(t, b.other, "victim.example"), "altered": recordtest.Bent(own), "noise": []byte("noise"),
	} {
		if b.senderContact(asker(b.other), sent) != nil {
			t.Errorf("%s: heard", name)
		}
	}
}

// TestServe_RefusesNonsense is of bodies; those of the codec have tests there.
func TestServe_RefusesNonsense(t *testing.T) {
	b := newBench(t)
	ping := wire.AppendRequest(nil, &wire.Request{Kind: wire.Ping})
	for name, c := range map[string]struct {
		route string
		body  []byte
		want  federation.Reason
	}{
		"noise":         {"ping", []byte("noise"), federation.ReasonMalformed},
		"nothing":       {"ping", nil, federation.ReasonMalformed},
		"another route": {"get", ping, federation.ReasonMalformed},
		"not running":   {"ping", ping, federation.ReasonBusy},
	} {
		_, err := b.Serve(t.Context(), asker(b.other), c.route, c.body)
		if r, ok := errors.AsType[*federation.Refusal](err); !ok || r.Reason != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	flood := &wire.Request{Kind: wire.Store}
	for range wire.MaxRecords {
		flood.Records = append(flood.Records, wire.Record{})
	}
	var err error
	for range storeBurst/wire.MaxRecords + 2 {
		_, err = b.Serve(t.Context(), asker(b.third), "store", wire.AppendRequest(nil, flood))
	}
	if r, ok := errors.AsType[*federation.Refusal](err); !ok || r.Reason != federation.ReasonLimit {
		t.Errorf("a flood of records: %v", err)
	}
}

// TestGroups_AreOfDomainsAndNetworks is what counts as one operator.
func TestGroups_AreOfDomainsAndNetworks(t *testing.T) {
	b := newBench(t)
	b.cfg.Uncounted = func(h string) bool { return h == "127.0.0.1" }
	same := func(a, c string) bool {
		x, y := b.hostGroups(a), b.hostGroups(c)
		return len(x) == 1 && len(y) == 1 && x[0] == y[0]
	}
	if !same("a.portals.example", "B.portals.example") || !same("203.0.113.1", "203.0.113.99") || !same("2001:db8:1::1", "2001:db8:1:9::2") {
		t.Error("what belongs together is not counted so")
	}
	if same("one.example", "two.example") || same("203.0.113.1", "203.0.114.1") {
		t.Error("what does not belong together is")
	}
	if b.hostGroups("127.0.0.1") != nil || b.hostGroups("") != nil {
		t.Error("this machine is counted")
	}
}

// TestContact_IsReadOnce is of contacts that come again and again: the very same
// bytes are read once, for as long as they hold, and other ones each time.
func TestContact_IsReadOnce(t *testing.T) {
	b := newBench(t)
	id, node := idOf(b.other), contactOf(t, b.other, "other.example")
	first, err := b.readContact(id, node)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := b.readContact(id, bytes.Clone(node)); err != nil || again != first {
		t.Error("the same bytes are read anew", err)
	}
	if _, err := b.readContact(idOf(b.third), node); err == nil {
		t.Error("another one has the same contact")
	}
	if _, err := b.readContact(id, append(bytes.Clone(node), 0)); err == nil {
		t.Error("what is no contact is taken for the one before")
	}
	newer, err := b.readContact(id, contactOf(t, b.other, "moved.example"))
	if err != nil || newer == first || newer.Address != "https://moved.example" {
		t.Errorf("%+v %v", newer, err)
	}
	// One that is over does not hold because it once did.
	b.contacts.mu.Lock()
	b.contacts.young[id] = cachedContact{newer, time.Now().Add(-time.Second).UnixMilli()}
	b.contacts.mu.Unlock()
	if _, ok := b.contacts.lookUp(id, newer.Node); ok {
		t.Error("what is over is remembered")
	}
	// However many come, few are kept, and those that come again stay.
	for i := range 5 * maxCached {
		b.contacts.addContact(&kademlia.Contact{ID: kademlia.ID{byte(i), byte(i >> 8)}}, time.Now().Add(time.Hour).UnixMilli())
		if i == maxCached-2 {
			b.contacts.addContact(first, time.Now().Add(time.Hour).UnixMilli())
		}
		if i > maxCached && i%maxCached == maxCached/2 {
			if _, ok := b.contacts.lookUp(id, first.Node); !ok {
				t.Fatalf("after %d others it is forgotten, and was asked for", i)
			}
		}
	}
	if n := len(b.contacts.young) + len(b.contacts.old); n > 2*maxCached {
		t.Errorf("%d contacts are kept", n)
	}
}

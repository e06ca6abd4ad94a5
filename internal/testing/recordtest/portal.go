package recordtest

import (
	"crypto/ed25519"
	"crypto/sha256"
	"testing"
	"time"

	"agentsite/internal/record"
)

// Network is the name of the network of all portals in this package.
const Network = "agentsite-test"

// Start is the time at which NewPortal sets the portals' clock. Their epoch began an hour before.
var Start = time.Date(2026, time.November, 22, 12, 0, 0, 0, time.UTC)

// Lifetimes for Header, in milliseconds.
const (
	Hour = int64(time.Hour / time.Millisecond)
	Day  = 24 * Hour
)

// Key returns a private key derived from the name, so that it is the same in every run.
func Key(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte("agentsite test key " + name))
	return ed25519.NewKeyFromSeed(seed[:])
}

// Portal signs records with the time Now. It is not safe for concurrent use.
type Portal struct {
	Name     string
	ID       record.PortalID
	Root, Op ed25519.PrivateKey
	Now      int64 // Unix milliseconds; records are issued at this time
	Epoch    int64
	Seq      int64 // seq of the last header
}

// NewPortal returns a portal with keys derived from the name. It has signed nothing.
func NewPortal(name string) *Portal {
	root := Key(name + " root")
	now := Start.UnixMilli()
	return &Portal{Name: name, ID: record.PortalOf(record.PublicOf(root)), Root: root, Op: Key(name + " op"), Now: now, Epoch: now - Hour}
}

// Header returns the header of the portal's next record, which expires life milliseconds after Now.
// Each call uses up a seq.
func (p *Portal) Header(life int64) record.Header {
	p.Seq++
	return record.Header{Portal: p.ID, Epoch: p.Epoch, Seq: p.Seq, Issued: p.Now, Expires: p.Now + life}
}

// Key returns the portal's operational key in the form in which a card lists it, valid from ten days
// before Now until 80 days after.
func (p *Portal) Key() record.Key {
	pub := record.PublicOf(p.Op)
	return record.Key{ID: record.KeyIDOf(pub), Pub: pub, From: p.Now - 10*Day, Until: p.Now + 80*Day}
}

// Card returns an unsigned card of the portal with a new header.
func (p *Portal) Card() *record.Card {
	return &record.Card{Header: p.Header(90 * Day), RootPub: record.PublicOf(p.Root), Keys: []record.Key{p.Key()},
		Origin: "https://" + p.Name + ".example", Name: p.Name, Tier: record.TierReplica, Roles: []string{"search", "sync"}, Policy: "open"}
}

// Agent returns an unsigned agent of the portal with that id and a new header.
func (p *Portal) Agent(id string) *record.Agent {
	return &record.Agent{Header: p.Header(30 * Day), ID: id, Name: "agent-" + id, Title: "Agent " + id,
		Description: "Answers questions.", Caps: []string{"text/answer"}, Languages: []string{"en"},
		Endpoints: []record.Endpoint{{URL: "https://" + p.Name + ".example/a2a/" + id, Protocol: "a2a"}}}
}

// Gone returns an unsigned tombstone of the agent with that id and a new header.
func (p *Portal) Gone(id string) *record.Agent {
	return &record.Agent{Header: p.Header(37 * Day), ID: id, Deleted: true}
}

// Head returns an unsigned head of a tree with a new header.
func (p *Portal) Head(t *record.Tree) *record.Head {
	h := p.Header(48 * Hour)
	return &record.Head{Header: h, Count: int64(t.Len()), Root: t.Root(), LogStart: 1}
}

// Sign signs body with the root key if it is a card, else with the operational key. It ends the test
// when the body is invalid.
func (p *Portal) Sign(t testing.TB, body record.Body) *record.Record {
	t.Helper()
	key := p.Op
	if _, ok := body.(*record.Card); ok {
		key = p.Root
	}
	r, err := record.Sign(Network, body, key)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Gate returns a gate and its memory after it has admitted the cards of the portals.
func Gate(t testing.TB, portals ...*Portal) (*record.Gate, *Memory) {
	t.Helper()
	mem := new(Memory)
	g, err := record.NewGate(Network, mem)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range portals {
		if _, _, err := g.Admit(t.Context(), p.Sign(t, p.Card()).Wire, time.UnixMilli(p.Now)); err != nil {
			t.Fatal(err)
		}
	}
	return g, mem
}

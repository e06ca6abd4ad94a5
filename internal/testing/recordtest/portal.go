package recordtest

import (
	"crypto/ed25519"
	"crypto/sha256"
	"testing"
	"time"

	"agentsite/internal/record"
)

// Network is the network of all portals here.
const Network = "agentsite-test"

// Start is the time at which they are: their epoch began an hour before.
var Start = time.Date(2026, time.November, 22, 12, 0, 0, 0, time.UTC)

// Lives for headers, in milliseconds.
const (
	Hour = int64(time.Hour / time.Millisecond)
	Day  = 24 * Hour
)

// Key returns the key of that name, the same in every run.
func Key(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte("agentsite test key " + name))
	return ed25519.NewKeyFromSeed(seed[:])
}

// Portal signs records. It is for one goroutine.
type Portal struct {
	Name     string
	ID       record.PortalID
	Root, Op ed25519.PrivateKey
	Now      int64 // milliseconds; what it signs is issued then
	Epoch    int64
	Seq      int64 // of the last header
}

// NewPortal returns the portal of that name, which has signed nothing yet.
func NewPortal(name string) *Portal {
	root := Key(name + " root")
	now := Start.UnixMilli()
	return &Portal{Name: name, ID: record.PortalOf(record.PublicOf(root)), Root: root, Op: Key(name + " op"), Now: now, Epoch: now - Hour}
}

// Header returns the header of the portal's next record.
func (p *Portal) Header(life int64) record.Header {
	p.Seq++
	return record.Header{Portal: p.ID, Epoch: p.Epoch, Seq: p.Seq, Issued: p.Now, Expires: p.Now + life}
}

// Key returns the portal's operational key as a card lists it, good for ten
// days before now and 80 after.
func (p *Portal) Key() record.Key {
	pub := record.PublicOf(p.Op)
	return record.Key{ID: record.KeyIDOf(pub), Pub: pub, From: p.Now - 10*Day, Until: p.Now + 80*Day}
}

// Card returns the portal's card, with the next header.
func (p *Portal) Card() *record.Card {
	return &record.Card{Header: p.Header(90 * Day), RootPub: record.PublicOf(p.Root), Keys: []record.Key{p.Key()},
		Origin: "https://" + p.Name + ".example", Name: p.Name, Tier: record.TierReplica, Roles: []string{"search", "sync"}, Policy: "open"}
}

// Agent returns an agent of that id, with the next header.
func (p *Portal) Agent(id string) *record.Agent {
	return &record.Agent{Header: p.Header(30 * Day), ID: id, Name: "agent-" + id, Title: "Agent " + id,
		Description: "Answers questions.", Caps: []string{"text/answer"}, Languages: []string{"en"},
		Endpoints: []record.Endpoint{{URL: "https://" + p.Name + ".example/a2a/" + id, Protocol: "a2a"}}}
}

// Gone returns the tombstone of an agent, with the next header.
func (p *Portal) Gone(id string) *record.Agent {
	return &record.Agent{Header: p.Header(37 * Day), ID: id, Deleted: true}
}

// Head returns the head of a tree, with the next header.
func (p *Portal) Head(t *record.Tree) *record.Head {
	h := p.Header(48 * Hour)
	return &record.Head{Header: h, Count: int64(t.Len()), Root: t.Root(), LogStart: 1}
}

// Sign signs body with the key that belongs under it and ends the test when it
// cannot.
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

// Gate returns a gate with its memory, into which the portals' cards went.
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

// Package evil is a portal that lies, for tests of those that do not. It speaks
// the wire of docs/design/peering.md with keys of its own over HTTP on loopback
// and is as honest as any until one of its Lies is told. Nothing of the product
// imports it.
package evil

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gowebpki/jcs"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

// Lives of what it signs, in milliseconds.
const (
	hour = int64(time.Hour / time.Millisecond)
	day  = 24 * hour
)

// Portal is one portal with its keys, its log and its door. It is safe for
// concurrent use.
type Portal struct {
	ID      record.PortalID
	Root    ed25519.PrivateKey
	Op      ed25519.PrivateKey
	Network string
	// Origin is where it listens.
	Origin string

	srv *http.Server
	// swallowed: somebody read an answer without an end.
	swallowed atomic.Bool

	mu      sync.Mutex // guards the rest
	epoch   int64
	seq     int64
	log     []entry
	tree    record.Tree
	shown   shown
	answers map[string]http.HandlerFunc
	asked   map[string]int
	rung    chan struct{} // closed at the next request
}

// shown is what others see: card and head, and the log and the tree as they were
// when that head was shown. Who looks while a lie is made up meets only what was
// before. What it points to does not change.
type shown struct {
	card, head []byte
	log        []entry
	leaves     []leaf
}

type leaf struct{ key, hash record.Hash }

// entry is a line of the log.
type entry struct {
	seq  int64
	key  record.Hash
	wire []byte
}

// listen takes an address on loopback that no liar before had: of two portals
// at one address the older is believed for a while, though it is gone, and a
// port of one address is given out again soon. Where loopback is that one
// address, it is taken.
func listen(root ed25519.PrivateKey) (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(net.IPv4(127, root[0], root[1], root[2]|1).String(), "0"))
	if err != nil {
		return net.Listen("tcp", "127.0.0.1:0")
	}
	return l, nil
}

// New starts a portal of a network that nobody has heard of. Close ends it.
func New(network string) (*Portal, error) {
	root, op := key(), key()
	l, err := listen(root)
	if err != nil {
		return nil, err
	}
	p := &Portal{ID: record.PortalOf(record.PublicOf(root)), Root: root, Op: op, Network: network, Origin: "http://" + l.Addr().String(),
		epoch: now() - 20*day, answers: make(map[string]http.HandlerFunc), asked: make(map[string]int), rung: make(chan struct{})}
	if p.shown.card, err = p.Sign(p.Card()); err != nil {
		return nil, err
	}
	if err := p.Publish(); err != nil {
		return nil, err
	}
	p.srv = &http.Server{Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: time.Minute}
	go p.srv.Serve(l)
	return p, nil
}

// Close ends the portal and all requests to it.
func (p *Portal) Close() { p.srv.Close() }

// Unheard is the id of a portal that nobody started.
func Unheard() record.PortalID { return record.PortalOf(record.PublicOf(key())) }

func key() ed25519.PrivateKey {
	_, k, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return k
}

func now() int64 { return clock.Now().UnixMilli() }

// Header returns the header of its next record.
func (p *Portal) Header(life int64) record.Header {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seq++
	at := now()
	return record.Header{Portal: p.ID, Epoch: p.epoch, Seq: p.seq, Issued: at, Expires: at + life}
}

// Card returns its card, with the next header.
func (p *Portal) Card() *record.Card {
	return &record.Card{Header: p.Header(60 * day), RootPub: record.PublicOf(p.Root), Keys: []record.Key{KeyOf(p.Op)}, Origin: p.Origin,
		Name: "Portal", Tier: record.TierReplica, Roles: []string{"search", "sync"}, Policy: "open"}
}

// KeyOf is an operational key as a card lists it.
func KeyOf(k ed25519.PrivateKey) record.Key {
	pub := record.PublicOf(k)
	return record.Key{ID: record.KeyIDOf(pub), Pub: pub, From: now() - 10*day, Until: now() + 79*day}
}

// Agent returns an agent of that id whose texts have the word, with the next
// header.
func (p *Portal) Agent(id, word string) *record.Agent {
	return &record.Agent{Header: p.Header(20 * day), ID: id, Name: "agent-" + id, Kind: "a2a", Title: "Agent " + word, Description: "It is about " + word + ".",
		Endpoints: []record.Endpoint{{URL: p.Origin + "/agents/" + id + "/a2a", Protocol: "a2a"}}}
}

// Head returns the head of a tree, with the next header.
func (p *Portal) Head(t *record.Tree) *record.Head {
	h := p.Header(40 * hour)
	return &record.Head{Header: h, Count: int64(t.Len()), Root: t.Root(), LogStart: 1}
}

// Sign signs what may be false but is well formed.
func (p *Portal) Sign(b record.Body) ([]byte, error) {
	k := p.Op
	if _, ok := b.(*record.Card); ok {
		k = p.Root
	}
	return p.SignBy(b, k)
}

// SignBy signs with any key, and whatever the body says.
func (p *Portal) SignBy(b record.Body, k ed25519.PrivateKey) ([]byte, error) {
	payload, err := Payload(b)
	if err != nil {
		return nil, err
	}
	return Seal(p.Network, typeOf(b), payload, k), nil
}

// Payload is what a body is signed as, whatever it says.
func Payload(b record.Body) ([]byte, error) {
	raw, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	return jcs.Transform(raw)
}

func typeOf(b record.Body) record.Type {
	switch b.(type) {
	case *record.Card:
		return record.TypeCard
	case *record.Head:
		return record.TypeHead
	case *record.Agent:
		return record.TypeAgent
	case *record.Attest:
		return record.TypeAttest
	case *record.Fork:
		return record.TypeFork
	case *record.Live:
		return record.TypeLive
	}
	return "other/1"
}

var encoding = base64.RawURLEncoding

// Seal signs any payload at all.
func Seal(network string, t record.Type, payload []byte, k ed25519.PrivateKey) []byte {
	return Envelope(record.KeyIDOf(record.PublicOf(k)), t, payload, ed25519.Sign(k, record.PAE(network, t, payload)))
}

// Envelope writes any record.
func Envelope(id record.KeyID, t record.Type, payload, sig []byte) []byte {
	return fmt.Appendf(nil, `{"k":%q,"p":%q,"s":%q,"t":%q}`, id, encoding.EncodeToString(payload), encoding.EncodeToString(sig), t)
}

// Parts takes a record apart.
func Parts(wire []byte) (payload, sig []byte) {
	var e struct{ P, S string }
	json.Unmarshal(wire, &e) // its own
	payload, _ = encoding.DecodeString(e.P)
	sig, _ = encoding.DecodeString(e.S)
	return payload, sig
}

// List signs an agent, puts it into the log and covers it by the next head.
func (p *Portal) List(a *record.Agent) error {
	wire, err := p.Sign(a)
	if err != nil {
		return err
	}
	p.Put(a, wire)
	return nil
}

// Put puts any line into the log where an agent of that id and seq would be;
// the next head covers it, and others see it with that.
func (p *Portal) Put(a *record.Agent, wire []byte) {
	k := record.AgentKey(a.AgentID())
	p.Add(a, wire)
	hash := record.Hash{1}
	if r, err := record.Open(p.Network, wire); err == nil {
		hash = r.Hash
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tree.Set(k, hash)
}

// Add is Put of what no head covers.
func (p *Portal) Add(a *record.Agent, wire []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, entry{a.Seq, record.AgentKey(a.AgentID()), wire})
}

// Publish signs a head of what is listed.
func (p *Portal) Publish() error {
	h := p.Header(40 * hour)
	p.mu.Lock()
	head := &record.Head{Header: h, Count: int64(p.tree.Len()), Root: p.tree.Root(), LogStart: 1}
	p.mu.Unlock()
	wire, err := p.Sign(head)
	if err != nil {
		return err
	}
	p.Show(wire)
	return nil
}

// Show makes any record its head, and shows all that was listed with it.
func (p *Portal) Show(head []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = shown{card: p.shown.card, head: head, log: slices.Clip(p.log)}
	for key, hash := range p.tree.Leaves(record.Hash{}) {
		p.shown.leaves = append(p.shown.leaves, leaf{key, hash})
	}
}

// ShowCard makes any record its card.
func (p *Portal) ShowCard(card []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown.card = card
}

// Current returns its card and head as it shows them.
func (p *Portal) Current() (card, head []byte) {
	v := p.view()
	return v.card, v.head
}

// view returns what it shows now.
func (p *Portal) view() shown {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown
}

// Package evil is a portal that lies, for tests of honest portals. It speaks the protocol of
// docs/design/peering.md over HTTP on loopback with keys of its own, and behaves honestly until one of
// its lies is told to an honest portal, the victim. Only tests and bench/evil import it.
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

// Lifetimes of records, in milliseconds.
const (
	hour = int64(time.Hour / time.Millisecond)
	day  = 24 * hour
)

// Portal is a lying portal with its keys, its log and its HTTP server. It is safe for concurrent use,
// except that Op and ID must not change while requests are made.
type Portal struct {
	ID      record.PortalID
	Root    ed25519.PrivateKey
	Op      ed25519.PrivateKey
	Network string
	// Origin is the address at which the portal listens.
	Origin string

	srv *http.Server
	// swallowed is set when a client read all of an answer that is longer than any client should read.
	swallowed atomic.Bool

	mu      sync.Mutex // guards the fields below
	epoch   int64
	seq     int64
	log     []entry
	tree    record.Tree
	shown   shown
	answers map[string]http.HandlerFunc
	asked   map[string]int
	rung    chan struct{} // closed and replaced after each request
}

// shown is the published state of the portal: its card and head, and the log and tree at the moment
// when that head was published. A client that asks while a lie is prepared sees the old state. A value
// of shown never changes after Show.
type shown struct {
	card, head []byte
	log        []entry
	leaves     []leaf
}

type leaf struct{ key, hash record.Hash }

// entry is one record of the log.
type entry struct {
	seq  int64
	key  record.Hash
	wire []byte
}

// listen listens on a loopback address that is derived from the key, so that no earlier lying portal
// had it. A victim prefers the older of two portals at one origin for a while, even after its end, and
// a free port of one address is soon given out again. Where only 127.0.0.1 exists, it is used.
func listen(root ed25519.PrivateKey) (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(net.IPv4(127, root[0], root[1], root[2]|1).String(), "0"))
	if err != nil {
		return net.Listen("tcp", "127.0.0.1:0")
	}
	return l, nil
}

// New starts a portal with new keys, which no other portal knows yet. The caller must call Close.
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

// Close stops the server and aborts all its requests.
func (p *Portal) Close() { p.srv.Close() }

// Unheard returns the id of a portal that does not exist.
func Unheard() record.PortalID { return record.PortalOf(record.PublicOf(key())) }

func key() ed25519.PrivateKey {
	_, k, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // never happens: crypto/rand cannot fail
	}
	return k
}

func now() int64 { return clock.Now().UnixMilli() }

// Header returns the header of the portal's next record, which expires after life milliseconds. Each
// call uses up a seq.
func (p *Portal) Header(life int64) record.Header {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seq++
	at := now()
	return record.Header{Portal: p.ID, Epoch: p.epoch, Seq: p.seq, Issued: at, Expires: at + life}
}

// Card returns an unsigned card of the portal with a new header.
func (p *Portal) Card() *record.Card {
	return &record.Card{Header: p.Header(60 * day), RootPub: record.PublicOf(p.Root), Keys: []record.Key{KeyOf(p.Op)}, Origin: p.Origin,
		Name: "Portal", Tier: record.TierReplica, Roles: []string{"search", "sync"}, Policy: "open"}
}

// KeyOf returns the operational key k in the form in which a card lists it, valid from ten days ago for
// 89 days.
func KeyOf(k ed25519.PrivateKey) record.Key {
	pub := record.PublicOf(k)
	return record.Key{ID: record.KeyIDOf(pub), Pub: pub, From: now() - 10*day, Until: now() + 79*day}
}

// Agent returns an unsigned agent with that id and a new header. Its title and description contain
// word, by which a test finds it.
func (p *Portal) Agent(id, word string) *record.Agent {
	return &record.Agent{Header: p.Header(20 * day), ID: id, Name: "agent-" + id, Kind: "a2a", Title: "Agent " + word, Description: "It is about " + word + ".",
		Endpoints: []record.Endpoint{{URL: p.Origin + "/agents/" + id + "/a2a", Protocol: "a2a"}}}
}

// Head returns an unsigned head of a tree with a new header.
func (p *Portal) Head(t *record.Tree) *record.Head {
	h := p.Header(40 * hour)
	return &record.Head{Header: h, Count: int64(t.Len()), Root: t.Root(), LogStart: 1}
}

// Sign signs a body with the key that an honest portal would use: the root key for a card, the
// operational key otherwise. The content may be false.
func (p *Portal) Sign(b record.Body) ([]byte, error) {
	k := p.Op
	if _, ok := b.(*record.Card); ok {
		k = p.Root
	}
	return p.SignBy(b, k)
}

// SignBy signs a body with any key. The content may be false.
func (p *Portal) SignBy(b record.Body, k ed25519.PrivateKey) ([]byte, error) {
	payload, err := Payload(b)
	if err != nil {
		return nil, err
	}
	return Seal(p.Network, typeOf(b), payload, k), nil
}

// Payload returns the canonical JSON of a body, which is the signed part of a record. It does not
// validate the body.
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

// Seal returns a signed record with any payload, valid or not.
func Seal(network string, t record.Type, payload []byte, k ed25519.PrivateKey) []byte {
	return Envelope(record.KeyIDOf(record.PublicOf(k)), t, payload, ed25519.Sign(k, record.PAE(network, t, payload)))
}

// Envelope returns a record with any key id, payload and signature, which need not match.
func Envelope(id record.KeyID, t record.Type, payload, sig []byte) []byte {
	return fmt.Appendf(nil, `{"k":%q,"p":%q,"s":%q,"t":%q}`, id, encoding.EncodeToString(payload), encoding.EncodeToString(sig), t)
}

// Parts returns the payload and the signature of a record.
func Parts(wire []byte) (payload, sig []byte) {
	var e struct{ P, S string }
	json.Unmarshal(wire, &e) // cannot fail for a record of this package
	payload, _ = encoding.DecodeString(e.P)
	sig, _ = encoding.DecodeString(e.S)
	return payload, sig
}

// List signs an agent, appends it to the log and adds it to the tree, so that the next head covers it.
func (p *Portal) List(a *record.Agent) error {
	wire, err := p.Sign(a)
	if err != nil {
		return err
	}
	p.Put(a, wire)
	return nil
}

// Put appends any line to the log as the entry of the agent a and adds it to the tree. Other portals
// see it after the next Publish.
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

// Add appends any line to the log as the entry of the agent a, but not to the tree, so that no head
// covers it.
func (p *Portal) Add(a *record.Agent, wire []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, entry{a.Seq, record.AgentKey(a.AgentID()), wire})
}

// Publish signs a head of the tree and publishes it together with the log.
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

// Show publishes any record as the head, together with the current log and tree.
func (p *Portal) Show(head []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = shown{card: p.shown.card, head: head, log: slices.Clip(p.log)}
	for key, hash := range p.tree.Leaves(record.Hash{}) {
		p.shown.leaves = append(p.shown.leaves, leaf{key, hash})
	}
}

// ShowCard publishes any record as the card, valid or not.
func (p *Portal) ShowCard(card []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown.card = card
}

// Current returns the published card and head.
func (p *Portal) Current() (card, head []byte) {
	v := p.view()
	return v.card, v.head
}

// view returns the published state.
func (p *Portal) view() shown {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown
}

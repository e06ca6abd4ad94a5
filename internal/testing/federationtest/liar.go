package federationtest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

// Liar is a portal that behaves, until it is told to lie. It answers and asks
// over HTTP, as a real one does, and is safe for concurrent use.
type Liar struct {
	network, origin string
	client          *http.Client

	mu   sync.Mutex // guards the rest
	by   *recordtest.Portal
	card *record.Record
	tree record.Tree
	head *record.Record
	log  []*record.Record // of agents, in order of seq
	bent bool             // what it serves of its log is not what it signed
	sent int              // logs it was asked for
}

// NewLiar returns a portal of that network at origin, which client asks others
// with. It is not known to anybody.
func NewLiar(network, origin, name string, client *http.Client) (*Liar, error) {
	l := &Liar{network: network, origin: origin, client: client, by: recordtest.NewPortal(name)}
	_, l.by.Root, _ = ed25519.GenerateKey(rand.Reader)
	_, l.by.Op, _ = ed25519.GenerateKey(rand.Reader)
	l.by.ID = record.PortalOf(record.PublicOf(l.by.Root))
	l.now()
	l.by.Epoch = l.by.Now - recordtest.Hour
	card := l.by.Card()
	card.Origin, card.Name = origin, name
	var err error
	if l.card, err = record.Sign(network, card, l.by.Root); err != nil {
		return nil, err
	}
	return l, l.Publish()
}

func (l *Liar) now() { l.by.Now = time.Now().UnixMilli() }

// Portal is its id.
func (l *Liar) Portal() record.PortalID { return l.by.ID }

// Publish signs agents of these ids, and a head of all it has signed.
func (l *Liar) Publish(ids ...string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now()
	for _, id := range ids {
		a := l.by.Agent(id)
		a.Endpoints[0].URL = l.origin + "/agents/" + a.Name + "/a2a"
		r, err := record.Sign(l.network, a, l.by.Op)
		if err != nil {
			return err
		}
		l.tree.Set(record.AgentKey(a.AgentID()), r.Hash)
		l.log = append(l.log, r)
	}
	head, err := record.Sign(l.network, l.by.Head(&l.tree), l.by.Op)
	if err == nil {
		l.head = head
	}
	return err
}

// Bend makes it serve its records with other words than it signed.
func (l *Liar) Bend(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bent = on
}

// Asked is how often its log was asked for.
func (l *Liar) Asked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent
}

// Hello introduces it to the portal at an origin, by its own address.
func (l *Liar) Hello(ctx context.Context, to string) error {
	return l.ask(ctx, to, "/peering/v1/hello", l.told())
}

// Hint tells the portal at an origin of its newest head.
func (l *Liar) Hint(ctx context.Context, to string) error {
	return l.ask(ctx, to, "/peering/v1/heads/hint", federation.Hint{Heads: []federation.Told{l.told()}})
}

// Fork tells the portal at an origin of two heads under one number, one of
// which has no agents.
func (l *Liar) Fork(ctx context.Context, to string) error {
	l.mu.Lock()
	l.now()
	one := l.by.Head(&l.tree)
	two := *one
	two.Count, two.Root = 0, new(record.Tree).Root()
	var told []federation.Told
	for _, h := range []*record.Head{one, &two} {
		r, err := record.Sign(l.network, h, l.by.Op)
		if err != nil {
			l.mu.Unlock()
			return err
		}
		told = append(told, federation.Told{Card: l.card.Wire, Head: r.Wire})
	}
	l.mu.Unlock()
	return l.ask(ctx, to, "/peering/v1/heads/hint", federation.Hint{Heads: told})
}

func (l *Liar) told() federation.Told {
	l.mu.Lock()
	defer l.mu.Unlock()
	return federation.Told{Card: l.card.Wire, Head: l.head.Wire}
}

// ask posts a signed request and is content with any answer of status 200.
func (l *Liar) ask(ctx context.Context, to, path string, what any) error {
	body, err := json.Marshal(what)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Content-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":")
	nonce := make([]byte, 16)
	rand.Read(nonce)
	if err := guard.SignRequest(r, liarKeys{l}, base64.RawURLEncoding.EncodeToString(nonce), time.Now()); err != nil {
		return err
	}
	resp, err := l.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %d: %s", path, resp.StatusCode, b)
	}
	return err
}

// ServeHTTP implements http.Handler. It believes whoever asks.
func (l *Liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := "/peering/v1/portals/" + string(l.by.ID)
	answer := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(v)
	}
	card, head := json.RawMessage(l.card.Wire), json.RawMessage(l.head.Wire)
	switch r.URL.Path {
	case "/.well-known/agentsite", "/peering/v1/portal":
		answer(map[string]any{"network": l.network, "portal": l.by.ID, "origin": l.origin, "name": l.by.Name, "version": "1", "peering": l.origin + "/peering/v1", "card": card, "head": head})
	case "/peering/v1/hello":
		answer(map[string]any{"card": card, "head": head, "state": "active"})
	case "/peering/v1/heads/diff":
		answer(map[string]any{"heads": []federation.Told{{Card: card, Head: head}}, "behind": []string{}, "more": false})
	case "/peering/v1/heads/hint", "/peering/v1/attest":
		answer(map[string]any{"refused": []string{}})
	case own + "/head":
		answer(federation.Told{Card: card, Head: head})
	case own + "/log":
		l.sent++
		w.Header().Set("Content-Type", "application/x-ndjson")
		fmt.Fprintf(w, "%s\n", head)
		after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
		for _, rec := range l.log {
			line := rec.Wire
			if rec.Seq <= after {
				continue
			}
			if l.bent {
				line = bend(line)
			}
			fmt.Fprintf(w, "%s\n", line)
		}
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		io.Copy(w, strings.NewReader(`{"error":{"kind":"not_found","reason":"absent","message":"Nothing is known of it."}}`))
	}
}

// bend changes words in what is signed, and leaves the signature.
func bend(wire []byte) []byte {
	var e map[string]string
	if json.Unmarshal(wire, &e) != nil {
		return wire
	}
	p, err := base64.RawURLEncoding.DecodeString(e["p"])
	if err != nil {
		return wire
	}
	p = bytes.Replace(p, []byte("Answers questions."), []byte("Answers anything.."), 1)
	return bytes.Replace(wire, []byte(e["p"]), []byte(base64.RawURLEncoding.EncodeToString(p)), 1)
}

// liarKeys is how it signs requests.
type liarKeys struct{ *Liar }

func (k liarKeys) ID() record.PortalID { return k.by.ID }
func (k liarKeys) Network() string     { return k.network }
func (k liarKeys) Origin() string      { return k.origin }
func (k liarKeys) Card() []byte        { return k.card.Wire }

func (k liarKeys) Key(time.Time) (record.KeyID, ed25519.PrivateKey, time.Time, error) {
	return record.KeyIDOf(record.PublicOf(k.by.Op)), k.by.Op, time.Now().Add(80 * 24 * time.Hour), nil
}

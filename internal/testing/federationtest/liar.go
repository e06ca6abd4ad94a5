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

// Liar is a portal that behaves honestly until a test makes it lie. It serves the peering protocol by
// ServeHTTP and makes requests with an HTTP client. It is safe for concurrent use.
type Liar struct {
	network, origin string
	client          *http.Client

	mu   sync.Mutex // guards the fields below
	by   *recordtest.Portal
	card *record.Record
	tree record.Tree
	head *record.Record
	log  []*record.Record // records of agents, in order of seq
	bent bool             // the served log differs from the signed one
	sent int              // number of requests for the log
}

// NewLiar returns a portal with new keys. Its origin must lead to its ServeHTTP. client makes its
// requests to other portals.
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

// Portal returns the id of the portal.
func (l *Liar) Portal() record.PortalID { return l.by.ID }

// Publish adds agents with these ids to the log and signs a head of all agents so far.
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

// Bend sets whether the portal changes the records in its served log, so that their signatures are
// wrong.
func (l *Liar) Bend(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bent = on
}

// Asked returns the number of requests for the log so far.
func (l *Liar) Asked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent
}

// Hello makes the request hello, which begins a handshake, to the portal at an origin.
func (l *Liar) Hello(ctx context.Context, to string) error {
	return l.ask(ctx, to, "/peering/v1/hello", l.told())
}

// Hint sends the newest head to the portal at an origin.
func (l *Liar) Hint(ctx context.Context, to string) error {
	return l.ask(ctx, to, "/peering/v1/heads/hint", federation.Hint{Heads: []federation.Told{l.told()}})
}

// Fork sends two different heads with one version to the portal at an origin. The second one covers no
// agents. The two prove that this portal is an equivocator.
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

// ask posts a signed request. A status other than 200 is an error; the content of the answer is
// ignored.
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

// ServeHTTP implements http.Handler for the peering protocol. It does not verify requests.
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

// bend returns a copy of a record with a changed payload and the old signature.
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

// liarKeys implements federation.Signer with the keys of a Liar.
type liarKeys struct{ *Liar }

func (k liarKeys) ID() record.PortalID { return k.by.ID }
func (k liarKeys) Network() string     { return k.network }
func (k liarKeys) Origin() string      { return k.origin }
func (k liarKeys) Card() []byte        { return k.card.Wire }

func (k liarKeys) Key(time.Time) (record.KeyID, ed25519.PrivateKey, time.Time, error) {
	return record.KeyIDOf(record.PublicOf(k.by.Op)), k.by.Op, time.Now().Add(80 * 24 * time.Hour), nil
}

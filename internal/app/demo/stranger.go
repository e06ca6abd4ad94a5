package demo

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
	"net"
	"net/http"
	"strings"
	"time"

	"agentsite/internal/clock"
	peers "agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/internal/record"
)

// stranger is a minimal portal that the demo controls itself: it signs a portal card, agents and
// heads and answers the requests of other portals. It can do things that a real portal does not do,
// such as signing contradicting heads.
type stranger struct {
	name, origin string
	id           record.PortalID
	root, op     ed25519.PrivateKey
	epoch, seq   int64
	card, head   *record.Record
	tree         record.Tree
	log          []*record.Record
	server       *http.Server
	ended        chan struct{}
	http         *http.Client
}

// openStranger starts a stranger with agents that exist only as records and cannot be called. The
// caller must call close.
func openStranger(ctx context.Context, name string, hc *http.Client, agents ...agent) (*stranger, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	now := clock.Now()
	s := &stranger{name: name, origin: "http://" + l.Addr().String(), http: hc, ended: make(chan struct{}),
		epoch: now.UnixMilli()}
	s.root, s.op = ed25519.NewKeyFromSeed(randomBytes(32)), ed25519.NewKeyFromSeed(randomBytes(32))
	s.id = record.PortalOf(record.PublicOf(s.root))
	if err := s.signRecords(now, agents); err != nil {
		l.Close()
		return nil, fmt.Errorf("sign for %s: %w", name, err)
	}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	go func() {
		defer close(s.ended)
		_ = s.server.Serve(l)
	}()
	return s, nil
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

// close stops the server and closes all its connections. It may be called twice.
func (s *stranger) close() {
	s.server.Close()
	<-s.ended
}

// nextHeader returns the header of the stranger's next record, valid for life.
func (s *stranger) nextHeader(now time.Time, life time.Duration) record.Header {
	s.seq++
	return record.Header{Portal: s.id, Epoch: s.epoch, Seq: s.seq, Issued: now.UnixMilli(),
		Expires: now.Add(life).UnixMilli()}
}

// signRecords signs the portal card, the agent records and the first head.
func (s *stranger) signRecords(now time.Time, agents []agent) (err error) {
	const day = 24 * time.Hour
	pub := record.PublicOf(s.op)
	key := record.Key{ID: record.KeyIDOf(pub), Pub: pub, From: now.Add(-time.Hour).UnixMilli(),
		Until: now.Add(80 * day).UnixMilli()}
	s.card, err = record.Sign(networkName, &record.Card{Header: s.nextHeader(now, 80*day),
		RootPub: record.PublicOf(s.root), Keys: []record.Key{key}, Origin: s.origin, Name: s.name,
		Tier: record.TierReplica, Roles: []string{"search", "sync"}, Policy: "open"}, s.root)
	if err != nil {
		return err
	}
	for _, a := range agents {
		body := &record.Agent{Header: s.nextHeader(now, 30*day), ID: a.Name, Name: a.Name, Kind: "a2a", Title: a.Title,
			Description: a.About, Languages: []string{"en"}, Created: now.UnixMilli(), Updated: now.UnixMilli(),
			Endpoints: []record.Endpoint{{URL: s.origin + "/agents/" + a.Name + "/a2a", Protocol: "a2a"}}}
		r, err := record.Sign(networkName, body, s.op)
		if err != nil {
			return err
		}
		s.tree.Set(record.AgentKey(body.AgentID()), r.Hash)
		s.log = append(s.log, r)
	}
	s.head, err = s.signHead(s.newestHead(now))
	return err
}

// newestHead returns an unsigned head of all agent records.
func (s *stranger) newestHead(now time.Time) *record.Head {
	return &record.Head{Header: s.nextHeader(now, 48*time.Hour), Count: int64(s.tree.Len()), Root: s.tree.Root(),
		LogStart: 1}
}

func (s *stranger) signHead(h *record.Head) (*record.Record, error) {
	return record.Sign(networkName, h, s.op)
}

// joinNetwork performs the first exchange with the portal at an origin, so that the portal knows
// the stranger.
func (s *stranger) joinNetwork(ctx context.Context, to string) error {
	return s.postSigned(ctx, to+"/peering/v1/hello", peers.Told{Card: s.card.Wire, Head: s.head.Wire})
}

// sendFork sends the portal at an origin two heads that contradict each other: one with the agents
// and one without any. The portal then marks the stranger as an equivocator.
func (s *stranger) sendFork(ctx context.Context, to string) error {
	one := s.newestHead(clock.Now())
	two := *one
	two.Count, two.Root = 0, new(record.Tree).Root()
	var told []peers.Told
	for _, h := range []*record.Head{one, &two} {
		r, err := s.signHead(h)
		if err != nil {
			return err
		}
		told = append(told, peers.Told{Card: s.card.Wire, Head: r.Wire})
	}
	return s.postSigned(ctx, to+"/peering/v1/heads/hint", peers.Hint{Heads: told})
}

// postSigned posts JSON in a request that is signed as between portals. Any status except 200 is an
// error.
func (s *stranger) postSigned(ctx context.Context, to string, what any) error {
	body, err := json.Marshal(what)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Content-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":")
	if err := guard.SignRequest(r, signer{s}, base64.RawURLEncoding.EncodeToString(randomBytes(16)),
		clock.Now()); err != nil {
		return err
	}
	resp, err := s.http.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s %s", to, resp.Status, b)
	}
	return err
}

// ServeHTTP implements http.Handler. It answers the requests that portals send to a known portal,
// without checking the sender's signature.
func (s *stranger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	card, head := json.RawMessage(s.card.Wire), json.RawMessage(s.head.Wire)
	own := "/peering/v1/portals/" + string(s.id)
	switch r.URL.Path {
	case "/.well-known/agentsite", "/peering/v1/portal":
		sendJSON(w, object{"network": networkName, "portal": s.id, "origin": s.origin, "name": s.name, "version": "1",
			"peering": s.origin + "/peering/v1", "card": card, "head": head})
	case "/peering/v1/status":
		sendJSON(w, object{"version": "1", "network": networkName, "portal": s.id, "portals": 1, "agents": len(s.log),
			"tier": record.TierReplica, "time": clock.Now()})
	case "/peering/v1/hello":
		sendJSON(w, object{"card": card, "head": head, "state": peers.Active})
	case "/peering/v1/heads/diff":
		sendJSON(w, object{"heads": []peers.Told{{Card: s.card.Wire, Head: s.head.Wire}}, "behind": []string{},
			"more": false})
	case "/peering/v1/heads/hint", "/peering/v1/attest":
		sendJSON(w, object{"refused": []string{}})
	case own + "/head":
		sendJSON(w, peers.Told{Card: s.card.Wire, Head: s.head.Wire})
	case own + "/log":
		w.Header().Set("Content-Type", "application/x-ndjson")
		var out strings.Builder
		fmt.Fprintf(&out, "%s\n", head)
		for _, rec := range s.log {
			fmt.Fprintf(&out, "%s\n", rec.Wire)
		}
		io.WriteString(w, out.String())
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"error":{"kind":"not_found","reason":"absent","message":"This portal knows nothing of that."}}`)
	}
}

// signer implements the interface by which guard.SignRequest signs the stranger's requests.
type signer struct{ s *stranger }

func (k signer) ID() record.PortalID { return k.s.id }
func (k signer) Network() string     { return networkName }
func (k signer) Origin() string      { return k.s.origin }
func (k signer) Card() []byte        { return k.s.card.Wire }

func (k signer) Key(now time.Time) (record.KeyID, ed25519.PrivateKey, time.Time, error) {
	return record.KeyIDOf(record.PublicOf(k.s.op)), k.s.op, now.Add(80 * 24 * time.Hour), nil
}

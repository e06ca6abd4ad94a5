package federation

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/internal/adjust"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/record"
)

// Cards stores the cards that a portal signed for itself, so that no version is used twice.
type Cards interface {
	// LastCard returns the newest card for a network and its version; zero if there is none.
	LastCard(ctx context.Context, network string) (record.Version, []byte, error)
	// KeepCard stores a card; it returns after the card is on disk.
	KeepCard(ctx context.Context, network string, v record.Version, wire []byte) error
}

// SelfConfig holds the keys, texts and ports of a Self.
type SelfConfig struct {
	Network string
	Origin  string // origin in the form that record.ValidOrigin accepts
	// Name, Operator and Contact are shown to others; they are cut to the size limits of a card. A name in Live wins
	// over Name; it may change while the portal runs, and the next check signs a card with it.
	Name, Operator, Contact string
	Live                    *adjust.Snapshot
	// Policy returns the admission mode for the card; it may change while the portal runs. Nil means open.
	Policy func() string
	// Tier returns the tier for the card; it may change while the portal runs. Nil means the tier of the last card.
	Tier func() string
	// Root is the root key, nil if it is kept outside this portal; Public is its public half.
	Root   ed25519.PrivateKey
	Public ed25519.PublicKey
	Keys   *ident.Operational
	Cards  Cards
	// Gate admits this portal's cards like those of others; Replica stores them.
	Gate    *record.Gate
	Replica Replica
	Log     *slog.Logger
}

const (
	// cardLife is the validity of a card. A card older than renewCard is replaced, so that after weeks
	// offline the portal still has a valid one.
	cardLife  = 90 * 24 * time.Hour
	renewCard = 30 * 24 * time.Hour
	// lookAgain is the interval of checks whether keys or card must be renewed.
	lookAgain = time.Hour
	// warnEvery is the interval of log warnings while the root key is needed.
	warnEvery = 24 * time.Hour

	maxPrevOrigins = 8
	maxCardName    = 80
	maxCardLine    = 200
)

// Self is the identity of this portal: its id, its card and the keys that sign for it. It implements
// Signer and is safe for concurrent use. Create it with NewSelf; Run must run to renew keys and card.
type Self struct {
	cfg SelfConfig
	id  record.PortalID

	signing sync.Mutex // held while a card is made and put into use

	mu      sync.Mutex // guards the fields below
	card    *record.Card
	wire    []byte
	last    record.Version // greatest known version of all cards ever signed
	foreign *record.Card   // newest card that was signed elsewhere; nil for none
	changed chan struct{}  // closed and replaced with each new card
	due     string
	warned  time.Time
}

// NewSelf returns the identity of this portal; its card is renewed first if needed.
func NewSelf(ctx context.Context, cfg SelfConfig) (*Self, error) {
	if !record.ValidNetwork(cfg.Network) {
		return nil, fmt.Errorf("%q is no name of a network", cfg.Network)
	}
	if !record.ValidOrigin(cfg.Origin) {
		return nil, fmt.Errorf("%q is no address that other portals call: it must begin with https://", cfg.Origin)
	}
	if len(cfg.Public) != ed25519.PublicKeySize {
		return nil, errors.New("the portal has no root key")
	}
	s := &Self{cfg: cfg, id: record.PortalOf(record.Public(cfg.Public)), changed: make(chan struct{})}
	if err := s.loadCard(ctx); err != nil {
		return nil, err
	}
	return s, s.Renew(ctx)
}

// loadCard loads the newest card from the database and the replica: a database restored from a backup
// may have an older one.
func (s *Self) loadCard(ctx context.Context) error {
	v, wire, err := s.cfg.Cards.LastCard(ctx, s.cfg.Network)
	if err != nil {
		return fmt.Errorf("read the portal's card: %w", err)
	}
	s.last = v
	held, err := s.cfg.Replica.Card(ctx, s.id)
	if err != nil {
		return fmt.Errorf("read the portal's card: %w", err)
	}
	for _, w := range [][]byte{wire, held} {
		if w == nil {
			continue
		}
		r, err := record.Open(s.cfg.Network, w)
		if err != nil {
			continue
		}
		c, ok := r.Body.(*record.Card)
		if !ok || c.Portal != s.id {
			continue
		}
		if s.card != nil && c.Version().Compare(s.card.Version()) <= 0 {
			continue
		}
		// A stored card that is damaged or belongs to another network is skipped.
		if _, _, err := s.cfg.Gate.Admit(ctx, w, clock.Now()); err != nil {
			if record.ReasonOf(err) == "" {
				return fmt.Errorf("take the portal's card in: %w", err)
			}
			continue
		}
		s.card, s.wire = c, w
		if c.Version().Compare(s.last) > 0 {
			s.last = c.Version()
		}
	}
	return nil
}

// ID implements Signer.
func (s *Self) ID() record.PortalID { return s.id }

// Network implements Signer.
func (s *Self) Network() string { return s.cfg.Network }

// Origin implements Signer.
func (s *Self) Origin() string { return s.cfg.Origin }

// Card implements Signer. It returns nil until a root key that is kept elsewhere has signed the first card.
func (s *Self) Card() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wire
}

// Content returns the decoded card, nil if there is none. The caller must not change it.
func (s *Self) Content() *record.Card {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.card
}

// Changed returns a channel that is closed when the portal has a new card. Records signed by a key that
// the new card does not list become invalid then.
func (s *Self) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Key implements Signer. It returns the newest key of the card that other portals had time to learn of.
func (s *Self) Key(now time.Time) (record.KeyID, ed25519.PrivateKey, time.Time, error) {
	card := s.Content()
	if card == nil || card.Expires <= now.UnixMilli() {
		return "", nil, time.Time{}, fault.New(fault.Unavailable,
			"This portal has no card that counts, so it can sign nothing for other portals. Its operator renews it with `agentsite keys sign --root FILE`.")
	}
	k, ok := s.cfg.Keys.Signing(now, func(k ident.OperationalKey) bool { return listsKey(card, k) })
	if !ok {
		return "", nil, time.Time{}, fault.New(fault.Unavailable,
			"This portal's card lists no key that it has and that is good now. Its operator renews it with `agentsite keys sign --root FILE`.")
	}
	return record.KeyIDOf(record.PublicOf(k.Key)), k.Key, k.Until, nil
}

func listsKey(card *record.Card, k ident.OperationalKey) bool {
	id := record.KeyIDOf(record.PublicOf(k.Key))
	return slices.ContainsFunc(card.Keys, func(l record.Key) bool { return l.ID == id })
}

// Sign signs body with the current operational key. The caller has set the header and stored that its
// version is used. It is an error if the key expires before the record; Key returns the expiry.
func (s *Self) Sign(body record.Body) (*record.Record, error) {
	_, key, _, err := s.Key(clock.Now())
	if err != nil {
		return nil, err
	}
	return record.Sign(s.cfg.Network, body, key)
}

// SelfStanding is the state of the portal's keys and card, for operators.
type SelfStanding struct {
	Network string
	Portal  record.PortalID
	Expires time.Time // expiry of the card; zero without a card
	// Due explains why the root key has to sign a new card, and by when; empty if it need not.
	Due string
	// Away: the root key is kept outside this portal.
	Away bool
	// Elsewhere is the place at which another program signs as this portal; nil if none is known.
	Elsewhere *Elsewhere
	Keys      []SelfKey
}

// SelfKey is the state of one operational key, for operators.
type SelfKey struct {
	ID          record.KeyID
	From, Until time.Time
	Listed      bool // listed in the card
	Signs       bool // new records are signed with this key
}

// Standing returns the state of keys and card.
func (s *Self) Standing() SelfStanding {
	now := clock.Now()
	signs, _, _, _ := s.Key(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	out := SelfStanding{Network: s.cfg.Network, Portal: s.id, Due: s.due, Away: s.cfg.Root == nil}
	if s.card != nil {
		out.Expires = clock.FromMilli(s.card.Expires)
	}
	if e, ok := s.elsewhereLocked(); ok {
		out.Elsewhere = &e
	}
	for _, k := range s.cfg.Keys.List() {
		id := record.KeyIDOf(record.PublicOf(k.Key))
		out.Keys = append(out.Keys, SelfKey{id, k.From, k.Until, s.card != nil && listsKey(s.card, k), id == signs})
	}
	return out
}

// Run renews keys and card when needed, until ctx ends.
func (s *Self) Run(ctx context.Context) error {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if err := s.Renew(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Error("renew the portal's card", "error", err)
		}
	}
}

// Renew makes new operational keys and signs a new card if needed. Without the root key it only records
// that the root key is needed.
func (s *Self) Renew(ctx context.Context) error {
	s.signing.Lock()
	defer s.signing.Unlock()
	now := clock.Now()
	if _, err := s.cfg.Keys.Renew(now); err != nil {
		return err
	}
	why := s.staleReason(now)
	if why == "" {
		s.noteRootNeed("", now)
		return nil
	}
	s.mu.Lock()
	root := s.cfg.Root
	s.mu.Unlock()
	if root == nil {
		s.noteRootNeed(why, now)
		return nil
	}
	r, err := record.Sign(s.cfg.Network, s.draftCard(now), root)
	if err != nil {
		return fmt.Errorf("sign the portal's card: %w", err)
	}
	return s.admitCard(ctx, r)
}

// noteRootNeed records why the root key is needed ("" if it is not) and logs a warning, at most one in warnEvery.
func (s *Self) noteRootNeed(why string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if why != "" {
		if s.card == nil {
			why += " Other portals do not know this one until then."
		} else {
			why += " The card holds until " + clock.FromMilli(s.card.Expires).Format(time.DateOnly) + "."
		}
	}
	if s.due = why; why != "" && now.Sub(s.warned) >= warnEvery {
		s.warned = now
		s.cfg.Log.Warn("the root key has to sign a new card: agentsite keys sign --root FILE", "why", why)
	}
}

// staleReason explains in a sentence why the card must be replaced; "" if it need not be.
func (s *Self) staleReason(now time.Time) string {
	c := s.Content()
	if c == nil {
		return "The portal has no card."
	}
	d := s.draftCard(now)
	switch {
	case now.Sub(clock.FromMilli(c.Issued)) >= renewCard:
		return "The card is older than 30 days."
	case !slices.Equal(c.Keys, d.Keys):
		return "The operational keys have changed."
	case c.Origin != d.Origin:
		return "The portal has moved."
	case c.Name != d.Name, c.Operator != d.Operator, c.Contact != d.Contact, c.Policy != d.Policy, c.Tier != d.Tier,
		!slices.Equal(c.Roles, d.Roles):
		return "What the card says of the portal has changed."
	}
	return ""
}

// Detach removes the root key from memory; it is kept elsewhere from now on.
func (s *Self) Detach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.Root = nil
}

// Draft returns an unsigned card with the current data, for the root key to sign elsewhere. Take accepts
// the signed card.
func (s *Self) Draft(ctx context.Context) (*record.Card, error) {
	s.signing.Lock()
	defer s.signing.Unlock()
	now := clock.Now()
	if _, err := s.cfg.Keys.Renew(now); err != nil {
		return nil, err
	}
	return s.draftCard(now), nil
}

func (s *Self) draftCard(now time.Time) *record.Card {
	s.mu.Lock()
	last, v := s.card, s.newestLocked()
	s.mu.Unlock()
	if v.Epoch == 0 {
		v.Epoch = now.UnixMilli()
	}
	// Sequence numbers follow the clock, so that a database restored from a backup does not reuse one.
	v.Seq = max(v.Seq+1, now.UnixMilli())
	c := &record.Card{
		Header: record.Header{Portal: s.id, Epoch: v.Epoch, Seq: v.Seq, Issued: now.UnixMilli(),
			Expires: now.Add(cardLife).UnixMilli()},
		RootPub: record.Public(s.cfg.Public), Origin: s.cfg.Origin, Tier: record.TierReplica,
		Roles: []string{"search", "sync"}, Policy: "open",
		Name:     record.CutLine(s.cfg.Live.NameOr(s.cfg.Name), maxCardName),
		Operator: record.CutLine(s.cfg.Operator, maxCardLine), Contact: record.CutLine(s.cfg.Contact, maxCardLine),
	}
	if c.Name == "" {
		c.Name = record.CutLine(HostOf(s.cfg.Origin), maxCardName)
	}
	if s.cfg.Policy != nil {
		c.Policy = s.cfg.Policy()
	}
	switch {
	case s.cfg.Tier != nil:
		c.Tier = s.cfg.Tier()
	case last != nil:
		c.Tier = last.Tier
	}
	for _, k := range s.cfg.Keys.List() {
		pub := record.PublicOf(k.Key)
		c.Keys = append(c.Keys, record.Key{ID: record.KeyIDOf(pub), Pub: pub, From: k.From.UnixMilli(),
			Until: k.Until.UnixMilli()})
	}
	slices.SortStableFunc(c.Keys, func(a, b record.Key) int { return strings.Compare(string(a.ID), string(b.ID)) })
	if last != nil {
		c.PrevOrigins = slices.Clone(last.PrevOrigins)
		if last.Origin != c.Origin {
			c.PrevOrigins = slices.DeleteFunc(append([]string{last.Origin}, c.PrevOrigins...),
				func(o string) bool { return o == c.Origin })
			c.PrevOrigins = c.PrevOrigins[:min(len(c.PrevOrigins), maxPrevOrigins)]
		}
	}
	return c
}

// Take puts a card into use that the root key signed from a Draft; a fault if it is invalid or outdated.
func (s *Self) Take(ctx context.Context, wire []byte) error {
	r, err := record.Open(s.cfg.Network, wire)
	if err != nil {
		return err
	}
	s.signing.Lock()
	defer s.signing.Unlock()
	c, ok := r.Body.(*record.Card)
	d := s.draftCard(clock.Now())
	switch {
	case !ok || c.Portal != s.id || r.Key != record.KeyIDOf(c.RootPub):
		return fault.New(fault.Invalid, "This is no card of this portal: it was signed by another root key.")
	case c.Version().Compare(d.Version()) > 0 || c.Epoch != d.Epoch || s.last.Compare(c.Version()) >= 0:
		return fault.New(fault.Conflict, "Another card was signed meanwhile. Sign a new one.")
	case !slices.Equal(c.Keys, d.Keys) || c.Origin != d.Origin:
		return fault.New(fault.Conflict, "Keys or address of the portal have changed meanwhile. Sign a new card.")
	}
	return s.admitCard(ctx, r)
}

// admitCard stores a signed card and puts it into use; the caller holds signing.
func (s *Self) admitCard(ctx context.Context, r *record.Record) error {
	if err := s.cfg.Cards.KeepCard(ctx, s.cfg.Network, r.Version(), r.Wire); err != nil {
		return fmt.Errorf("keep the portal's card: %w", err)
	}
	s.mu.Lock()
	s.last = r.Version()
	s.mu.Unlock()
	if _, _, err := s.cfg.Gate.Admit(ctx, r.Wire, clock.Now()); err != nil {
		return fmt.Errorf("take the portal's card in: %w", err)
	}
	now := clock.Now()
	s.mu.Lock()
	s.card, s.wire = r.Body.(*record.Card), r.Wire
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	s.noteRootNeed(s.staleReason(now), now)
	s.cfg.Log.Info("signed a new card", "portal", s.id, "origin", s.cfg.Origin, "keys", len(r.Body.(*record.Card).Keys))
	return nil
}

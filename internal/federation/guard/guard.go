// Package guard verifies the requests of other portals: their signatures, the
// replay of a request, and the limits on rate and concurrency. It also signs
// this portal's own requests, so that both sides follow one format.
package guard

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/ident/httpsig"
	"agentsite/internal/limit"
	"agentsite/internal/record"
)

// The header fields and signature parameters of requests between portals; see docs/design/peering.md.
const (
	SignatureTag   = "agentsite-peer"
	SignatureLabel = "sig1"
	NetworkField   = "Agentsite-Network"
	ForField       = "Agentsite-For"
	HopsField      = "Agentsite-Hops"
	BudgetField    = "Agentsite-Budget"
	// SignatureLife is the validity of a signature and the tolerated difference between the clocks of
	// two portals.
	SignatureLife = time.Minute
)

// alsoSigned are header fields that a signature must cover if they are present.
var alsoSigned = []string{ForField, HopsField, BudgetField, "Authorization"}

// Asker is the verified author of a request.
type Asker struct {
	Portal record.PortalID
	Key    record.KeyID
	// Card is the portal's current card; the caller must not change it.
	Card *record.Card
	// Decision is the decision about the portal at the time of the request.
	Decision federation.Decision
	// For, Hops and Budget are the signed, unparsed header fields about the call that the request
	// belongs to; empty without a call.
	For, Hops, Budget string
}

// Prover checks which portal answers at an origin.
type Prover interface {
	// Prove returns an error unless the origin serves a current card of the portal. The error is
	// ErrImpostor if it serves the card of another portal.
	Prove(ctx context.Context, origin string, portal record.PortalID) error
}

// ErrImpostor means that another portal answers at the origin that a card names.
var ErrImpostor = errors.New("another portal is at the origin that the card names")

// Config holds the ports and settings of a Guard.
type Config struct {
	Self     federation.Signer
	Gate     *record.Gate
	Registry federation.Registry
	Nonces   NonceStore
	Prover   Prover
	// Shun, unless nil, is the penalty box for addresses with refused requests.
	Shun *limit.PenaltyBox
	// Started is the start time of the process. After a crash, nonces may be lost, so requests signed
	// before it are refused.
	Started time.Time
	Log     *slog.Logger
}

// The limits of docs/design/peering.md. The request rate of a portal is in its Decision.
const (
	addrPerSecond = 100
	helloEvery    = 2 * time.Second // from one address, beyond helloBurst
	helloBurst    = 20
	// Handshakes from one network, see networkOf: a holder of many addresses has hundreds of buckets.
	networkHelloEvery = 200 * time.Millisecond
	networkHelloBurst = 100
	// Handshakes of unknown portals that could not be verified at their origin: from one network, and from
	// all together. Their cards are stored.
	networkStrangerEvery = time.Minute
	networkStrangerBurst = 5
	strangerEvery        = 10 * time.Second
	strangerBurst        = 100
	// fakeCost is how many requests one invalid signature counts as.
	fakeCost = 10
	// burst is for how many seconds a portal may save up unused requests.
	burst      = 4
	maxPortals = 16 << 10 // portals with counters in memory
	maxAddrs   = 16 << 10
)

// Guard verifies the requests of other portals. It is safe for concurrent use. Create it with New; Run
// must run to store nonces.
type Guard struct {
	cfg Config
	// requests signed earlier are refused, in whole seconds as signatures have; zero for no such limit
	started time.Time
	used    *used
	addrs   *limit.Keyed
	hellos  *limit.Keyed
	portals *limit.Keyed
	// networkHellos limits the handshakes of one network.
	networkHellos *limit.Keyed
	// near: the origin of this portal is loopback, where all portals share one address.
	near bool
	// strangers limits all unknown portals together whose handshake could not be verified at their origin,
	// networkStrangers those of one network.
	strangers, networkStrangers *limit.Keyed
	metrics                     metrics

	target httpsig.Target
	checks *checks
	places *places
	proofs *proofs
}

// New returns a Guard that has loaded the stored nonces.
func New(ctx context.Context, cfg Config) (*Guard, error) {
	u, clean, err := newUsed(ctx, cfg.Nonces, cfg.Log)
	if err != nil {
		return nil, fmt.Errorf("read used nonces: %w", err)
	}
	var started time.Time
	if !clean {
		if started = cfg.Started.Truncate(time.Second); started.Before(cfg.Started) {
			started = started.Add(time.Second)
		}
	}
	return &Guard{cfg: cfg, started: started, used: u, near: strings.HasPrefix(cfg.Self.Origin(), "http:"),
		addrs:  limit.New(time.Second/addrPerSecond, 2*addrPerSecond, maxAddrs),
		hellos: limit.New(helloEvery, helloBurst, maxAddrs), portals: limit.New(time.Second, burst, maxPortals),
		networkHellos:    limit.New(networkHelloEvery, networkHelloBurst, maxAddrs),
		networkStrangers: limit.New(networkStrangerEvery, networkStrangerBurst, maxAddrs),
		strangers:        limit.New(strangerEvery, strangerBurst, 1), metrics: newMetrics(), proofs: newProofs(),
		target: targetOf(cfg.Self.Origin()), checks: newChecks(), places: newPlaces()}, nil
}

// Run writes used nonces to disk until ctx ends.
func (g *Guard) Run(ctx context.Context) error { return g.used.writeLoop(ctx) }

// ReadBody reads the body of a request. The size it allows can depend on the verified author.
type ReadBody func(asker Asker) ([]byte, error)

// Verify returns the author and the body of a request that came from an address. Everything but the body
// is verified before the body is read, cheap checks first, so that a refused request costs little; the
// length limit of the body depends on the author. done releases the request's slot of the concurrency
// limit and must be called after the answer is written. Errors are Refusals, or come from the database
// or from read.
func (g *Guard) Verify(r *http.Request, addr string, read ReadBody) (asker Asker, body []byte, done func(), err error) {
	defer func() {
		if g.metrics.countRefusal(err); err == nil {
			g.metrics.verified.Inc()
		}
	}()
	ctx, now := r.Context(), clock.Now()
	if err := g.checkNetwork(r); err != nil {
		return asker, nil, nil, err
	}
	sig, id, key, err := readSigner(r.Header)
	if err != nil {
		return asker, nil, nil, err
	}
	card, err := g.currentCard(ctx, id)
	if err != nil {
		return asker, nil, nil, err
	}
	// id is a substring of the header, and counters that keep it would keep the whole header in memory
	id = card.Portal
	d := g.cfg.Registry.Decide(ctx, id, "")
	if err := g.refuseKept(d); err != nil {
		return asker, nil, nil, err
	}
	pub, err := g.checkSignature(r, sig, card, now)
	if err != nil {
		return asker, nil, nil, err
	}
	rate := max(d.PerSecond, 1)
	every := time.Second / time.Duration(rate)
	tooMany := func(wait time.Duration) error {
		return federation.RefuseFor(federation.ReasonLimit, wait,
			"Your portal asks more than %d times in a second. Ask again later.", d.PerSecond)
	}
	// An unverified request must not use up the rate of the portal that it names; it is only checked
	// whether the rate is used up, which saves verifying.
	if wait := g.portals.Wait(string(id), every); wait > 0 {
		return asker, nil, nil, tooMany(wait)
	}
	if g.used.has(nonceKey(sig.KeyID, sig.Nonce)) {
		return asker, nil, nil, refuseReplayed()
	}
	if err := g.verifySignature(r, sig, pub, addr, d.Unproved); err != nil {
		return asker, nil, nil, err
	}
	if wait, ok := g.portals.AllowRate(string(id), every, burst*rate); !ok {
		return asker, nil, nil, tooMany(wait)
	}
	if done, err = g.places.enter(id, d.Unproved); err != nil {
		return asker, nil, nil, err
	}
	asker = Asker{Portal: id, Key: key, Card: card, Decision: d, For: signedField(r, ForField),
		Hops: signedField(r, HopsField), Budget: signedField(r, BudgetField)}
	if body, err = read(asker); err == nil {
		if err = sig.VerifyBody(r.Header, body); err != nil {
			err = refusalOf(err)
		}
	}
	// The nonce is stored only after the rate check, so that one portal cannot fill the memory for
	// nonces.
	if err == nil {
		err = g.refuseReplay(ctx, sig.Params, now)
	}
	if err != nil {
		done()
		return Asker{}, nil, nil, err
	}
	g.cfg.Registry.Seen(id, 0)
	return asker, body, done, nil
}

// signedField returns the value of a signed header field; several lines are joined as in the signature
// base (RFC 9421).
func signedField(r *http.Request, name string) string {
	if v := r.Header[name]; len(v) == 1 {
		return v[0]
	}
	return strings.Join(r.Header.Values(name), ", ")
}

// refuseKept returns the refusal for a decision that does not admit requests; nil if it does.
func (g *Guard) refuseKept(d federation.Decision) error {
	if d.In {
		return nil
	}
	why, reason := federation.Reason(d.State), d.Reason
	switch why {
	case federation.ReasonPending, federation.ReasonQuarantined:
	default:
		why = federation.ReasonDenied
	}
	if reason == "" {
		reason = "This portal does not let yours in."
	}
	return federation.Refuse(why, "%s", reason)
}

// checkNetwork refuses a request that names another network than this portal's, or none.
func (g *Guard) checkNetwork(r *http.Request) error {
	switch name := r.Header.Get(NetworkField); name {
	case g.cfg.Self.Network():
		return nil
	case "":
		return federation.Refuse(federation.ReasonUnsigned,
			"The request lacks %s. Sign it as docs/design/peering.md says.", NetworkField)
	default:
		return federation.Refuse(federation.ReasonNetwork, "This portal is of the network %s, the request of %.40q.",
			g.cfg.Self.Network(), name)
	}
}

// readSigner parses the signature and the portal and key that it names; nothing is verified yet.
func readSigner(h http.Header) (*httpsig.Signature, record.PortalID, record.KeyID, error) {
	sig, err := httpsig.Read(h, SignatureTag)
	if err != nil {
		return nil, "", "", refusalOf(err)
	}
	portal, key, ok := strings.Cut(sig.KeyID, "/")
	if _, valid := record.PortalID(portal).Digest(); !ok || !valid {
		return nil, "", "", federation.Refuse(federation.ReasonUnsigned,
			"keyid is the portal's id, a slash and the key's id.")
	}
	return sig, record.PortalID(portal), record.KeyID(key), nil
}

// currentCard returns the current card of a portal; a Refusal if none is known or the portal is
// quarantined. The card may have expired; checkSignature checks that.
func (g *Guard) currentCard(ctx context.Context, id record.PortalID) (*record.Card, error) {
	c, s, err := g.cfg.Gate.Current(ctx, id)
	if err != nil {
		return nil, err
	}
	if s.Ring == nil {
		return nil, federation.Refuse(federation.ReasonUnknown, "No card of %s is known here. Say hello first.", id)
	}
	// checked in the record store too, because the registry may lag behind it or have dropped the portal
	if s.Quarantined {
		return nil, federation.Refuse(federation.ReasonQuarantined,
			"It signed two different statements under one number. It stays out until an operator has looked at the proof.")
	}
	if c == nil {
		return nil, federation.Refuse(federation.ReasonUnknown, "No card of %s is known here. Say hello first.", id)
	}
	return c, nil
}

// covered are the components that every signature must cover.
var covered = httpsig.Components("@method", "@authority", "@path", "@query", strings.ToLower(NetworkField))

// checkSignature checks all parameters of a signature without verifying it, and returns the key of the
// card to verify it with.
func (g *Guard) checkSignature(r *http.Request, sig *httpsig.Signature, card *record.Card,
	now time.Time) (ed25519.PublicKey, error) {
	need := covered
	also := func(name string) {
		need = append(need[:len(need):len(need)], httpsig.Component{Name: name})
	}
	if r.ContentLength > 0 {
		also("content-digest")
	}
	for _, name := range alsoSigned {
		if _, there := r.Header[name]; there {
			also(strings.ToLower(name))
		}
	}
	if card.Expires <= now.UnixMilli() {
		return nil, federation.Refuse(federation.ReasonUnknown, "The card of %s has ended. Say hello with a newer one.",
			card.Portal)
	}
	pub, _, err := sig.Check(httpsig.Policy{
		Keys:    cardKeys{card, now},
		Require: need, Now: now, Skew: SignatureLife, MaxAge: SignatureLife,
	})
	if err != nil {
		return nil, refusalOf(err)
	}
	p := sig.Params
	if p.Expires.IsZero() || p.Expires.Sub(p.Created) > SignatureLife || p.Expires.Before(p.Created) {
		return nil, federation.Refuse(federation.ReasonUnsigned,
			"A signature has to say that it expires, at most 60 seconds after it was created.")
	}
	if p.Created.Before(g.started) {
		return nil, federation.Refuse(federation.ReasonClock,
			"The request was signed before this portal started. Sign it again.")
	}
	if !validNonce(p.Nonce) {
		return nil, federation.Refuse(federation.ReasonUnsigned,
			"A signature needs a nonce: 22 to 43 characters of base64url.")
	}
	_, key, _ := strings.Cut(p.KeyID, "/")
	if why := g.cfg.Registry.DecideKey(record.KeyID(key)); why != "" {
		return nil, federation.Refuse(federation.ReasonDenied, "%s", why)
	}
	return pub, nil
}

// verifySignature verifies a signature; the number of concurrent verifications is limited. Whether its
// nonce is new is checked by refuseReplay.
func (g *Guard) verifySignature(r *http.Request, sig *httpsig.Signature, pub ed25519.PublicKey, addr string,
	unproved bool) error {
	done, err := g.checks.enter(r.Context(), unproved)
	if err != nil {
		return err
	}
	err = sig.Verify(r, g.target, pub)
	done()
	if err != nil {
		g.chargeFake(addr)
		return refusalOf(err)
	}
	return nil
}

// refuseReplay refuses a signature whose nonce was used before, and stores the nonce.
func (g *Guard) refuseReplay(ctx context.Context, p httpsig.Params, now time.Time) error {
	until := p.Expires.Add(SignatureLife + time.Second)
	switch g.used.first(nonceKey(p.KeyID, p.Nonce), until, now) {
	case noRoom:
		return federation.RefuseFor(federation.ReasonBusy, SignatureLife,
			"Too many requests were made of late. Ask again later.")
	case usedBefore:
		return refuseReplayed()
	case usedPerhaps:
		return federation.Refuse(federation.ReasonClock,
			"This portal's clock was set back, and it cannot tell whether the request was used before. Ask again later.")
	}
	if p.Created.After(now) {
		// The signer's clock is ahead: the signature would stay valid after a restart of this portal, so
		// its nonce is written at once.
		return g.used.writeWaiting(ctx)
	}
	return nil
}

func refuseReplayed() error {
	return federation.Refuse(federation.ReasonReplayed,
		"The nonce was used before. Sign the request again, with another one.")
}

// cardKeys are the keys of a card that are valid at now. It implements httpsig.Keys.
type cardKeys struct {
	card *record.Card
	now  time.Time
}

// PublicKey implements httpsig.Keys.
func (c cardKeys) PublicKey(id string) (ed25519.PublicKey, error) { return keyOf(c.card, id, c.now) }

// keyOf returns the key of a card that the keyid of a signature names; httpsig.ErrKey if there is none
// or it is not valid at now.
func keyOf(card *record.Card, id string, now time.Time) (ed25519.PublicKey, error) {
	portal, key, _ := strings.Cut(id, "/")
	if portal == string(card.Portal) {
		for _, k := range card.Keys {
			if string(k.ID) == key && k.From <= now.Add(SignatureLife).UnixMilli() && now.UnixMilli() < k.Until {
				return k.Pub[:], nil
			}
		}
	}
	return nil, httpsig.ErrKey
}

func validNonce(s string) bool {
	if len(s) < 22 || len(s) > 43 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}

// refusalOf converts the error of an invalid signature to a Refusal; other errors are returned as they
// are.
func refusalOf(err error) error {
	switch {
	case errors.Is(err, httpsig.ErrNone), errors.Is(err, httpsig.ErrMalformed), errors.Is(err, httpsig.ErrCoverage):
		return federation.Refuse(federation.ReasonUnsigned, "%s. Sign it as docs/design/peering.md says.",
			sentenceOf(err))
	case errors.Is(err, httpsig.ErrTime):
		return federation.Refuse(federation.ReasonClock, "%s.", sentenceOf(err))
	case errors.Is(err, httpsig.ErrKey):
		return federation.Refuse(federation.ReasonUnknown,
			"The card that is known here does not list the key, or not for now. Say hello with a newer card.")
	case errors.Is(err, httpsig.ErrSignature):
		return federation.Refuse(federation.ReasonSignature, "%s.", sentenceOf(err))
	}
	return err
}

func sentenceOf(err error) string {
	s := err.Error()
	return strings.ToUpper(s[:1]) + s[1:]
}

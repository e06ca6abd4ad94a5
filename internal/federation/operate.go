package federation

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/record"
	"agentsite/internal/weborigin"
)

// Decided is a decision of an operator in the form that is stored.
type Decided struct {
	By ident.Actor
	// Act is the kind of decision, such as peer.deny; Subject is the portal or its address; Why is
	// the operator's reason.
	Act, Subject, Why string
	Save              *Facts
	Forget            string // Facts.Key of a portal to delete; "" for none
	Policy            *Policy
}

// Entry is one entry of the audit log of decisions.
type Entry struct {
	ID                int64
	By                string // an account's name, or "command line"
	Act, Subject, Why string
	At                time.Time
}

// checkOperator returns a fault unless the actor is an operator or the command line with access to the data folder.
func checkOperator(actor ident.Actor) error {
	switch {
	case actor.Kind == ident.System || actor.IsOperator() && actor.May(ident.Admin):
		return nil
	case !actor.IsPerson():
		return fault.New(fault.Unauthenticated, "Log in as the operator.")
	case actor.IsOperator():
		return fault.New(fault.Forbidden, "%s", ident.Admin.DescribeMissing())
	}
	return fault.New(fault.Forbidden, "Only the operator of this portal may do that.")
}

func noPeer(name string) error {
	return fault.New(fault.NotFound, "No portal %.80q is known here. Name it by its id, its host or its address, or add its address.", name)
}

// List returns all known portals, ordered by host; for operators.
func (p *Peers) List(ctx context.Context, actor ident.Actor) ([]Peer, error) {
	if err := checkOperator(actor); err != nil {
		return nil, err
	}
	return p.Portals(ctx), nil
}

// Get returns a portal by its id, host or address; for operators.
func (p *Peers) Get(ctx context.Context, actor ident.Actor, name string) (Peer, error) {
	if err := checkOperator(actor); err != nil {
		return Peer{}, err
	}
	peer, ok := p.Portal(ctx, name)
	if !ok {
		return Peer{}, noPeer(name)
	}
	return peer, nil
}

// Add joins the portal at an address, or at a host with or without a port, and returns it. If no portal
// answers there, nothing is kept and the error names the cause. While this portal does not run, the
// address is kept and contacted later; found describes the result in a sentence.
func (p *Peers) Add(ctx context.Context, actor ident.Actor, address string) (peer Peer, found string, err error) {
	if err := checkOperator(actor); err != nil {
		return Peer{}, "", err
	}
	origins := weborigin.PortalOrigins(address)
	if len(origins) == 0 || !record.ValidOrigin(origins[0]) {
		return Peer{}, "", fault.Field("url",
			"write the portal's address like https://portal.example or portal.example, nothing behind it")
	}
	if p.cfg.Signer != nil && slices.Contains(origins, p.cfg.Signer.Origin()) {
		return Peer{}, "", fault.Field("url", "that is this portal's own address")
	}
	key := origins[len(origins)-1]
	if p.cfg.Join != nil {
		id, err := joinFirst(ctx, p, origins)
		if err != nil {
			return Peer{}, "", err
		}
		key = string(id)
	} else {
		p.Heard(key, "")
		key, found = HostOf(key), "It is asked when this portal runs."
	}
	peer, ok := p.Portal(ctx, key)
	if !ok {
		return Peer{}, "", fault.New(fault.Conflict, "So many portals are known that no other fits in. Forget some first.")
	}
	found = cmp.Or(found, "Found "+peer.Name+".")
	return peer, found, p.storeDecision(ctx, Decided{By: actor, Act: "peer.add", Subject: peer.URL}, nil)
}

// joinFirst joins the first portal that answers at the origins. Addresses of the same host that never
// answered are deleted then; after a failure, the portals that this attempt added.
func joinFirst(ctx context.Context, p *Peers, origins []string) (record.PortalID, error) {
	began := clock.Now()
	id, err := p.cfg.Join(ctx, origins)
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, e := range p.entries {
		if slices.Contains(origins, e.URL) && (err == nil && e.isAddress() || err != nil && !e.Known.Before(began)) {
			p.dropEntry(key)
		}
	}
	if err != nil {
		return "", fault.Field("url", fault.As(err).Safe)
	}
	return id, nil
}

// storeDecision stores a decision with its audit entry and, if that succeeds, calls apply with mu held.
func (p *Peers) storeDecision(ctx context.Context, d Decided, apply func(now time.Time)) error {
	if len(d.Why) > maxNote {
		return &fault.Error{Kind: fault.Invalid, Safe: "The reason is too long.",
			Fields: map[string]string{"note": "use at most 400 characters"}}
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := p.store.DecidePeers(ctx, d); err != nil {
		return err
	}
	p.cfg.Log.Info("an operator decided", "act", d.Act, "subject", d.Subject, "by", d.By.ID)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := clock.Now()
	if apply != nil {
		apply(now)
	}
	p.reviewState(now)
	p.wakeReaders()
	return nil
}

// RuleChange is a change of a rule; a nil field stays as it is.
type RuleChange struct {
	Stand     *string
	Note      *string
	MaxAgents *int
	MaxBytes  *int64
	Follow    *string
}

// checkHostName returns a Conflict fault if an operator names a portal by a host that the portal has not
// proved recently. Any portal can claim any host, so the operator must use the portal id then.
func checkHostName(f *Facts, name string) error {
	if f.isAddress() || name == f.Key() || f.isProved(clock.Now()) {
		return nil
	}
	return fault.New(fault.Conflict, "Nobody was seen at %s of late who could prove to be there. If you mean the portal %s, which says so, name it by that id.", HostOf(f.URL), f.ID)
}

// SetRule changes the operator's rule for one portal. If the rule denies the portal, its records are deleted at once.
func (p *Peers) SetRule(ctx context.Context, actor ident.Actor, name string, c RuleChange) (Peer, error) {
	if err := checkOperator(actor); err != nil {
		return Peer{}, err
	}
	p.mu.RLock()
	e := p.findEntry(name)
	if e == nil {
		p.mu.RUnlock()
		return Peer{}, noPeer(name)
	}
	f := e.Facts
	follows := error(nil)
	if c.Follow != nil && *c.Follow != "" {
		follows = p.mayFollow(&f)
	}
	p.mu.RUnlock()
	if follows != nil {
		return Peer{}, follows
	}
	if c.Follow != nil && *c.Follow != "" {
		if err := checkHostName(&f, name); err != nil {
			return Peer{}, err
		}
	}
	if c.Stand != nil && (*c.Stand == Allow || *c.Stand == Pin) {
		if err := checkHostName(&f, name); err != nil {
			return Peer{}, err
		}
	}
	rule, act := f.Rule, "peer.note"
	if c.Note != nil {
		rule.Note = strings.TrimSpace(*c.Note)
	}
	if c.MaxAgents != nil {
		rule.MaxAgents, act = *c.MaxAgents, "peer.quota"
	}
	if c.MaxBytes != nil {
		rule.MaxBytes, act = *c.MaxBytes, "peer.quota"
	}
	if c.Stand != nil && *c.Stand != rule.Stand {
		if rule.Stand, act = *c.Stand, "peer."+*c.Stand; *c.Stand == "" {
			act = "peer.undecide"
		}
	}
	if c.Follow != nil && *c.Follow != rule.Follow {
		if rule.Follow, act = *c.Follow, "peer.subscribe"; *c.Follow == "" {
			act = "peer.unsubscribe"
		}
	}
	if rule.Stand == Deny {
		rule.Follow = "" // Statements of a denied portal are not stored, so its list cannot be followed.
	}
	if err := rule.checkRule(); err != nil {
		return Peer{}, err
	}
	refollows := rule.Follow != f.Rule.Follow
	f.Rule = rule
	err := p.storeDecision(ctx, Decided{By: actor, Act: act, Subject: f.Key(), Why: rule.Note, Save: &f},
		func(now time.Time) {
			if now := p.entries[f.Key()]; now != nil {
				now.Rule = rule
			}
			if refollows {
				p.updateFollowed()
			}
		})
	if err != nil {
		return Peer{}, err
	}
	// Its earlier statements may have been dropped for lack of room, so all are read again.
	if refollows && p.cfg.Replica != nil {
		if err := p.readWords(ctx, true); err != nil {
			return Peer{}, err
		}
	}
	if rule.Stand == Deny {
		if err := p.dropRecords(ctx, f.ID); err != nil {
			return Peer{}, err
		}
	}
	peer, _ := p.Portal(ctx, f.Key())
	return peer, nil
}

// Forget deletes all facts and records of a portal, including the operator's rule. The portal becomes
// known again when it sends a request or others report it.
func (p *Peers) Forget(ctx context.Context, actor ident.Actor, name, why string) error {
	if err := checkOperator(actor); err != nil {
		return err
	}
	p.mu.RLock()
	e := p.findEntry(name)
	if e == nil {
		p.mu.RUnlock()
		return noPeer(name)
	}
	key, id := e.Key(), e.ID
	p.mu.RUnlock()
	if err := p.storeDecision(ctx, Decided{By: actor, Act: "peer.forget", Subject: key, Why: why, Forget: key},
		func(time.Time) { p.removeEntry(key); p.updateFollowed() }); err != nil {
		return err
	}
	return p.dropRecords(ctx, id)
}

// dropRecords deletes the stored records of a portal with PeersConfig.Drop, or else the Replica.
func (p *Peers) dropRecords(ctx context.Context, id record.PortalID) error {
	switch {
	case id == "":
		return nil
	case p.cfg.Drop != nil:
		return p.cfg.Drop(ctx, id)
	case p.cfg.Replica != nil:
		return p.cfg.Replica.Drop(ctx, id)
	}
	return nil
}

// Policy returns the policy for all portals; for operators.
func (p *Peers) Policy(_ context.Context, actor ident.Actor) (Policy, error) {
	if err := checkOperator(actor); err != nil {
		return Policy{}, err
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.policy, nil // sharing is safe: a changed policy has new slices
}

// SetPolicy validates and stores the policy for all portals and applies it at once. why is the reason
// for the audit log.
func (p *Peers) SetPolicy(ctx context.Context, actor ident.Actor, pol Policy, why string) (Policy, error) {
	if err := checkOperator(actor); err != nil {
		return Policy{}, err
	}
	pol, err := pol.normalize()
	if err != nil {
		return Policy{}, err
	}
	err = p.storeDecision(ctx, Decided{By: actor, Act: "peers.policy", Subject: pol.Mode, Why: why, Policy: &pol},
		func(time.Time) { p.policy = pol })
	return pol, err
}

// Mode returns the admission mode for this portal's card.
func (p *Peers) Mode() string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.policy.Mode
}

// Decisions returns at most 100 decisions of operators, newest first, with ids below before (0: from the newest).
func (p *Peers) Decisions(ctx context.Context, actor ident.Actor, before int64, limit int) ([]Entry, error) {
	if err := checkOperator(actor); err != nil {
		return nil, err
	}
	return p.store.Decisions(ctx, before, min(max(limit, 1), 100))
}

// attestLife is the validity of a published verdict; the operator has to repeat it afterwards.
const attestLife = 180 * 24 * time.Hour

// Attest publishes the operator's verdict on another portal (vouch, warn or block), signed by this
// portal. It is replicated like all records; a later verdict replaces it, it cannot be revoked.
func (p *Peers) Attest(ctx context.Context, actor ident.Actor, name, verdict, reason string) error {
	if err := checkOperator(actor); err != nil {
		return err
	}
	peer, ok := p.Portal(ctx, name)
	if !ok || peer.ID == "" {
		return noPeer(name)
	}
	var c fault.Check
	c.Field(slices.Contains([]string{record.Vouch, record.Warn, record.Block}, verdict), "verdict",
		"use vouch, warn or block")
	c.Field(len(reason) <= maxNote, "reason", "use at most %d characters", maxNote)
	if err := c.Err(); err != nil {
		return err
	}
	if verdict == record.Vouch {
		if err := checkHostName(&Facts{ID: peer.ID, URL: peer.URL, Proved: peer.Proved}, name); err != nil {
			return err
		}
	}
	if p.cfg.Gate == nil || p.cfg.Signer == nil {
		return fault.New(fault.Unavailable, "Only a running portal can speak to others.")
	}
	if err := p.storeDecision(ctx, Decided{By: actor, Act: "peer." + verdict, Subject: string(peer.ID), Why: reason},
		nil); err != nil {
		return err
	}
	p.attesting.Lock() // serialize, because two calls at once would use the same version
	defer p.attesting.Unlock()
	now := clock.Now()
	_, key, until, err := p.cfg.Signer.Key(now)
	if err != nil {
		return err
	}
	if !until.After(now) {
		return fault.New(fault.Unavailable, "This portal has no key to sign with now. Make one with `agentsite keys`.")
	}
	body := &record.Attest{Header: record.Header{Portal: p.cfg.Signer.ID(), Epoch: now.UnixMilli(), Seq: 1,
		Issued: now.UnixMilli(), Expires: now.Add(attestLife).UnixMilli()},
		Subject: peer.ID, Verdict: verdict, Reason: reason}
	seen, err := p.cfg.Replica.Seen(ctx, record.Slot{Type: record.TypeAttest, Portal: body.Portal,
		About: string(peer.ID)})
	if err != nil {
		return err
	}
	// the clock went back, so the new version would not replace the stored one
	if seen.Version.Compare(body.Version()) >= 0 {
		body.Epoch, body.Seq = seen.Epoch, seen.Seq+1
	}
	r, err := record.Sign(p.cfg.Signer.Network(), body, key)
	if err != nil {
		return err
	}
	// Admit stores the record durably before it becomes visible.
	if _, _, err := p.cfg.Gate.Admit(ctx, r.Wire, now); err != nil {
		return err
	}
	return p.readWords(ctx, false)
}

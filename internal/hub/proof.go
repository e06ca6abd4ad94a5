package hub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"agentsite/internal/agentkind"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/internal/plaintext"
	"agentsite/internal/weborigin"
)

// The values of Proof.Method for agents of this portal.
const (
	// ProofToken: the origin serves the owner's token at ProofPath.
	ProofToken = "token"
	// ProofCard: the agent card is signed by a key that the origin serves.
	ProofCard = "card"
)

// ProofPath is the path of the file in which an origin lists the owner tokens of the accounts that may
// list its agents, one a line.
const ProofPath = "/.well-known/agentsite-owner"

// maxDomains is the number of domains that an account may prove.
const maxDomains = 20

// domainEvery is the interval in which a proved domain is checked again; five failures in a row remove it.
const domainEvery = 24 * time.Hour

// Witness verifies proofs at an origin. Errors are Invalid or Unavailable faults that describe the unexpected answer.
type Witness interface {
	// HasToken returns nil if the origin serves the token at ProofPath.
	HasToken(ctx context.Context, origin, token string) error
	// SignedCard checks that the card at an A2A agent's address is signed by a key that its origin
	// serves and names the address itself. It returns the content of the card.
	SignedCard(ctx context.Context, t Target) (Described, error)
}

// FirstProof returns the proof state of a new agent of kind k, before its address was checked.
func FirstProof(k Kind) Proof {
	if agentkind.Of(k).Hosted {
		return Proof{State: Hosted}
	}
	return Proof{State: Unproven}
}

// OwnerProofs verifies that accounts control the addresses of their agents and their publishing domains.
type OwnerProofs struct {
	store     proofStore
	agents    proofAgents
	witness   Witness
	sealer    Sealer
	addresses AddressPolicy
	notice    *Notifier
	limit     *limit.Keyed // keyed by account
	loopback  bool         // the portal runs on loopback, so http is allowed for proofs
	log       *slog.Logger
}

type proofStore interface {
	Proofs
	AgentByID(ctx context.Context, id string) (Agent, error)
	AgentsOf(ctx context.Context, ownerID string) ([]Agent, error)
}

// proofAgents are the methods of Service that OwnerProofs needs.
type proofAgents interface {
	ownedAgents
	saveVersion(ctx context.Context, actor ident.Actor, a Agent, base int, sealed []byte, note string) (Agent, error)
	Reindex(ctx context.Context, agentID string)
}

// OwnerToken returns the token that the actor publishes at ProofPath of an origin to prove control of
// it; "" for actors without an account.
func (s *OwnerProofs) OwnerToken(actor ident.Actor) string {
	if !actor.IsPerson() {
		return ""
	}
	return s.ownerToken(actor.ID)
}

func (s *OwnerProofs) ownerToken(accountID string) string {
	return "agentsite-owner=" + s.sealer.Mark("owner", accountID)
}

// Prove verifies that the agent's owner controls its address and stores the result. On failure an
// earlier proof stays, and the error describes the expected proof.
func (s *OwnerProofs) Prove(ctx context.Context, actor ident.Actor, name string) (Agent, error) {
	a, err := s.agents.ownedAgent(ctx, actor, name)
	if err != nil {
		return Agent{}, err
	}
	if a.Proof.State == Hosted {
		return a, nil
	}
	if wait, ok := s.limit.Allow(actor.ID); !ok {
		return Agent{}, fault.Limited(wait, "You checked often in a short time. Wait a moment.")
	}
	if err := s.ProveAgain(ctx, a); err != nil {
		return Agent{}, err
	}
	s.agents.Reindex(ctx, a.ID)
	return s.store.AgentByID(ctx, a.ID)
}

// ProveAgain verifies the proof of an agent and stores the result: first the owner token, then for A2A
// agents the signed card. It is also called for periodic checks.
func (s *OwnerProofs) ProveAgain(ctx context.Context, a Agent) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	at := originOf(a.Endpoint)
	p := Proof{State: Proved, Method: ProofToken, Origin: at, At: clock.Now()}
	err := s.witness.HasToken(ctx, at, s.ownerToken(a.OwnerID))
	if err != nil && a.Kind == A2A {
		p.Method = ProofCard
		card, cerr := s.witness.SignedCard(ctx, Target{Kind: a.Kind, Endpoint: a.Endpoint, Config: a.Config})
		if cerr == nil && !matchesCard(a, card) {
			cerr = fault.New(fault.Invalid, "The signed card says something else than this listing. "+
				"Give it the card's name as title, its description and its skills.")
		}
		if cerr == nil {
			err = nil
		} else {
			err = fault.Wrap(fault.Invalid, errors.Join(err, cerr),
				"Nothing at %s shows that you may list it. Token: %s Card: %s", at, fault.As(err).Safe,
				fault.As(cerr).Safe)
		}
	}
	if err != nil {
		return err
	}
	return s.store.SetProof(ctx, a.ID, a.OwnerID, p)
}

// matchesCard reports whether the agent's listing has the content of a signed card. The card proves that its site
// published this content, not that the lister owns the site. The listing may omit skills, but not add or change any.
func matchesCard(a Agent, card Described) bool {
	if a.Title != plaintext.OneLine(card.Title) || a.Description != plaintext.Clean(card.Description) {
		return false
	}
	theirs := cleanSkills(card.Skills)
	for _, s := range a.Skills {
		if !slices.ContainsFunc(theirs, func(t Skill) bool {
			return t.ID == s.ID && t.Name == s.Name &&
				t.Description == s.Description
		}) {
			return false
		}
	}
	return true
}

// Domains lists the domains whose control the actor has proved.
func (s *OwnerProofs) Domains(ctx context.Context, actor ident.Actor) ([]Domain, error) {
	if err := requireAccount(actor, ident.AgentsRead); err != nil {
		return nil, err
	}
	return s.store.Domains(ctx, actor.ID)
}

// controlsDomain reports whether the account has a valid proof for the domain.
func (s *OwnerProofs) controlsDomain(ctx context.Context, accountID, domain string) bool {
	list, err := s.store.Domains(ctx, accountID)
	return err == nil && slices.ContainsFunc(list, func(d Domain) bool { return d.Domain == domain })
}

// ProveDomain verifies that a domain serves the actor's owner token, and stores the domain. The actor
// may then publish agents under it.
func (s *OwnerProofs) ProveDomain(ctx context.Context, actor ident.Actor, domain string) error {
	if err := RequireWriter(actor); err != nil {
		return err
	}
	domain, at, err := s.parseDomain(domain)
	if err != nil {
		return err
	}
	have, err := s.store.Domains(ctx, actor.ID)
	if err != nil {
		return err
	}
	if len(have) >= maxDomains && !slices.ContainsFunc(have, func(d Domain) bool { return d.Domain == domain }) {
		return fault.New(fault.Conflict, "You have %d domains already; remove one first.", maxDomains)
	}
	if wait, ok := s.limit.Allow(actor.ID); !ok {
		return fault.Limited(wait, "You checked often in a short time. Wait a moment.")
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := s.witness.HasToken(ctx, at, s.ownerToken(actor.ID)); err != nil {
		return &fault.Error{Kind: fault.Invalid, Safe: fault.As(err).Safe,
			Fields: map[string]string{"domain": fault.As(err).Safe}, Err: err}
	}
	return s.store.SetDomain(ctx, actor.ID, domain, true)
}

// parseDomain validates a domain entered by a person and returns it with its origin: https, or http if
// this portal runs on loopback.
func (s *OwnerProofs) parseDomain(typed string) (domain, at string, err error) {
	typed = strings.ToLower(strings.TrimSpace(typed))
	bad := func(text string) (string, string, error) {
		return "", "", fault.Field("domain", text)
	}
	if !strings.Contains(typed, "://") {
		scheme := "https"
		if s.loopback {
			scheme = "http"
		}
		typed = scheme + "://" + typed
	}
	u, perr := url.Parse(weborigin.ASCIIAddress(strings.TrimRight(typed, "/")))
	switch {
	case perr != nil || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.User != nil || len(u.Host) > 255:
		return bad("write it like example.org")
	case u.Scheme != "https" && !(u.Scheme == "http" && s.loopback):
		return bad("a domain is proved over https")
	}
	if cerr := s.addresses.CheckURL(u.String()); cerr != nil {
		return bad(cerr.Error())
	}
	return u.Host, u.Scheme + "://" + u.Host, nil
}

// RemoveDomain deletes the proof of one of the actor's domains and clears it as publisher of the actor's agents.
func (s *OwnerProofs) RemoveDomain(ctx context.Context, actor ident.Actor, domain string) error {
	if err := RequireWriter(actor); err != nil {
		return err
	}
	if err := s.store.RemoveDomain(ctx, actor.ID, domain); err != nil {
		return err
	}
	s.removePublisher(ctx, actor.ID, domain)
	return nil
}

// removePublisher clears a domain that is no longer proved as publisher of the account's agents. Errors are logged.
func (s *OwnerProofs) removePublisher(ctx context.Context, accountID, domain string) {
	list, err := s.store.AgentsOf(ctx, accountID)
	if err != nil {
		s.log.Warn("list agents of an account", "account", accountID, "error", err)
		return
	}
	for _, a := range list {
		if a.OwnerID != accountID || a.Publisher != domain {
			continue
		}
		// Lists may omit fields such as Config, so the agent is read again before it is stored.
		if a, err = s.store.AgentByID(ctx, a.ID); err != nil || a.Publisher != domain {
			continue
		}
		a.Publisher = ""
		if _, err := s.agents.saveVersion(ctx, ident.Actor{Kind: ident.System}, a, a.Version, nil,
			"No longer published under "+domain); err != nil {
			s.log.Warn("take a domain off an agent", "agent", a.ID, "error", err)
		}
	}
}

// RecheckDomains verifies up to 8 domains whose last check is older than domainEvery. It is called
// periodically; errors are logged.
func (s *OwnerProofs) RecheckDomains(ctx context.Context) {
	list, err := s.store.StaleDomains(ctx, clock.Now().Add(-domainEvery), 8)
	if err != nil {
		s.log.Warn("list domains to check", "error", err)
		return
	}
	for _, d := range list {
		_, at, err := s.parseDomain(d.Domain)
		if err != nil {
			at = "https://" + d.Domain
		}
		cctx, cancel := context.WithTimeout(ctx, readTimeout)
		err = s.witness.HasToken(cctx, at, s.ownerToken(d.AccountID))
		cancel()
		if ctx.Err() != nil {
			return
		}
		if serr := s.store.SetDomain(ctx, d.AccountID, d.Domain, err == nil); serr != nil {
			s.log.Warn("store a domain", "domain", d.Domain, "error", serr)
			continue
		}
		if err != nil && !s.controlsDomain(ctx, d.AccountID, d.Domain) {
			s.notice.Notify(ctx, []string{d.AccountID},
				Notice{Kind: NoticeProof, Subject: d.Domain, Href: "/account#domains",
					Text: fmt.Sprintf("%s no longer shows your token, so your agents are no longer published under it. %s",
						d.Domain, fault.As(err).Safe)})
			s.removePublisher(ctx, d.AccountID, d.Domain)
		}
	}
}

package record

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
)

// Bounds of an agent's record, texts in bytes.
const (
	maxAgentName   = 40
	maxTitle       = 400 // 100 characters
	maxDescription = 1 << 10
	maxCaps        = 32
	maxCap         = 64
	maxSkills      = 32
	maxSkillID     = 128
	maxLanguages   = 20
	maxLanguage    = 35
	maxEndpoints   = 8
	maxPricing     = 200
)

// Agent says that a portal lists an agent, and what it is; or, with Deleted,
// that it is no more: then nothing but the id is left of it.
type Agent struct {
	Header
	// ID is the agent's id at its portal: 1 to 40 of a–z, 0–9 and -, lasting;
	// or what PortableID makes of AgentPub.
	ID      string `json:"id"`
	Deleted bool   `json:"deleted,omitempty"`
	// Name is the name in the handle name@host; ID decides who it is.
	Name        string     `json:"name,omitempty"`
	Title       string     `json:"title,omitempty"`
	Description string     `json:"description,omitempty"` // at most 1 KiB
	Caps        []string   `json:"caps,omitempty"`        // sorted tags
	Skills      []Skill    `json:"skills,omitempty"`
	Languages   []string   `json:"languages,omitempty"` // BCP 47 in lower case, sorted
	Endpoints   []Endpoint `json:"endpoints,omitempty"`
	CardURL     string     `json:"card_url,omitempty"`
	CardSHA256  Hash       `json:"card_sha256,omitzero"`
	Pricing     string     `json:"pricing,omitempty"`
	Terms       string     `json:"terms,omitempty"` // address
	// AgentPub is the agent's own key, and AgentSig its signature over
	// everything else in the record (see Cosign). They come together.
	AgentPub Public    `json:"agent_pub,omitzero"`
	AgentSig Signature `json:"agent_sig,omitzero"`
}

// Skill is one thing an agent can do.
type Skill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Tags        []string `json:"tags,omitempty"`
}

// Endpoint is an address at which an agent is spoken to, and how.
type Endpoint struct {
	URL string `json:"url"`
	// Protocol is a tag: a2a, mcp, openai, …
	Protocol string `json:"protocol"`
}

func (a *Agent) kind() Type    { return TypeAgent }
func (a *Agent) about() string { return a.ID }

// AgentID returns who the agent is in the network.
func (a *Agent) AgentID() string { return AgentID(a.Portal, a.ID) }

func (a *Agent) check(f *fields) {
	own := a.AgentPub != Public{}
	if own {
		f.Field(a.ID == PortableID(a.AgentPub), "id", "is not made of agent_pub")
		f.Field(sound(a.AgentPub), "agent_pub", "is no key that can be used")
	} else {
		f.Field(localID(a.ID), "id", "use 1 to 40 of a–z, 0–9 and -")
		f.Field(a.AgentSig == Signature{}, "agent_sig", "there is no agent_pub")
	}
	if a.Deleted {
		f.Field(a.bare(), "deleted", "a deleted agent has nothing but its id")
		return
	}
	f.Field(len(a.Name) >= 2 && len(a.Name) <= maxAgentName && plainName(a.Name), "name", "use 2 to %d of a–z, 0–9 and -", maxAgentName)
	f.Field(line(a.Title, maxTitle), "title", "one line of at most %d bytes", maxTitle)
	f.Field(text(a.Description, maxDescription), "description", "at most %d bytes", maxDescription)
	f.Field(sorted(a.Caps) && all(a.Caps, maxCaps, capability), "caps", "at most %d tags of at most %d, in order", maxCaps, maxCap)
	f.Field(len(a.Skills) <= maxSkills, "skills", "at most %d", maxSkills)
	for _, s := range a.Skills {
		f.Field(said(s.ID, maxSkillID) && said(s.Name, maxTitle) && text(s.Description, maxDescription), "skills", "an id and a name of one line each, and a description")
		f.Field(all(s.Tags, maxCaps, func(t string) bool { return said(t, maxSkillID) }), "skills", "at most %d tags of one line", maxCaps)
	}
	f.Field(sorted(a.Languages) && all(a.Languages, maxLanguages, func(s string) bool { return tag(s, maxLanguage) }), "languages", "at most %d tags in lower case, in order", maxLanguages)
	f.Field(len(a.Endpoints) <= maxEndpoints, "endpoints", "at most %d", maxEndpoints)
	for _, e := range a.Endpoints {
		f.Field(webAddress(e.URL) && tag(e.Protocol, maxCap), "endpoints", "an https address and a protocol each")
	}
	f.Field(a.CardURL == "" || webAddress(a.CardURL), "card_url", "use an https address")
	f.Field(line(a.Pricing, maxPricing), "pricing", "one line of at most %d bytes", maxPricing)
	f.Field(a.Terms == "" || webAddress(a.Terms), "terms", "use an https address")
}

func capability(s string) bool { return tag(s, maxCap) }

func (a *Agent) bare() bool {
	return a.Name == "" && a.Title == "" && a.Description == "" && a.Caps == nil && a.Skills == nil && a.Languages == nil && a.Endpoints == nil &&
		a.CardURL == "" && a.CardSHA256 == Hash{} && a.Pricing == "" && a.Terms == ""
}

// typeConsent is the type under which an agent signs; no record has it.
const typeConsent Type = "agent-consent/1"

// Cosign puts the signature of the agent's own key under the record, which
// must be complete but for that. The agent signs the same bytes as its portal,
// without agent_sig.
func (a *Agent) Cosign(network string, key ed25519.PrivateKey) error {
	a.AgentPub, a.AgentSig = PublicOf(key), Signature{}
	payload, err := marshal(a)
	if err != nil {
		return fmt.Errorf("cosign: %w", err)
	}
	a.AgentSig = Signature(ed25519.Sign(key, PAE(network, typeConsent, payload)))
	return nil
}

// consents reports whether an agent with a key of its own signed the record. A
// portal may delete without it: an agent cannot be kept where it is not.
func (r *Record) consents(network string) bool {
	a, ok := r.Body.(*Agent)
	if !ok || a.AgentPub == (Public{}) || a.Deleted && a.AgentSig == (Signature{}) {
		return true
	}
	from, to, err := scan(r.payload, "agent_sig")
	if err != nil || to == 0 {
		return false
	}
	if r.payload[from-1] == ',' {
		from-- // the last member, or any but the first
	} else {
		to++
	}
	rest := append(bytes.Clone(r.payload[:from]), r.payload[to:]...)
	return ed25519.Verify(a.AgentPub[:], PAE(network, typeConsent, rest), a.AgentSig[:])
}

package record

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
)

// Bounds of an agent's record, texts in bytes.
const (
	maxAgentName   = 40
	MaxTitle       = 400 // 100 characters
	MaxDescription = 1 << 10
	MaxCaps        = 32
	MaxCap         = 64
	MaxSkills      = 32
	MaxSkillID     = 128
	MaxLanguages   = 20
	MaxLanguage    = 35
	maxEndpoints   = 8
	maxPricing     = 200
	maxAgentKind   = 20
	MaxMedia       = 20
	maxMediaType   = 100
	MaxStatusNote  = 1200 // 300 characters
	MaxExamples    = 5
	MaxExample     = 1200 // 300 characters
	maxPublisher   = 255
	maxProofWay    = 32
)

// StatusDeprecated is the Status of an agent that works and that its owner
// wants nobody to begin with; Agent.StatusNote says what to use instead.
const StatusDeprecated = "deprecated"

// Agent says that a portal lists an agent, and what it is; or, with Deleted,
// that it is no more: then nothing but the id is left of it.
type Agent struct {
	Header
	// ID is the agent's id at its portal: 1 to 40 of a–z, 0–9 and -, lasting;
	// or what PortableID makes of AgentPub.
	ID      string `json:"id"`
	Deleted bool   `json:"deleted,omitempty"`
	// Name is the name in the handle name@host; ID decides who it is.
	Name string `json:"name,omitempty"`
	// Kind is a tag for how the portal reaches or runs the agent.
	Kind        string     `json:"kind,omitempty"`
	Title       string     `json:"title,omitempty"`
	Description string     `json:"description,omitempty"` // at most 1 KiB
	Caps        []string   `json:"caps,omitempty"`        // sorted tags
	Skills      []Skill    `json:"skills,omitempty"`
	Languages   []string   `json:"languages,omitempty"` // BCP 47 in lower case, sorted
	Endpoints   []Endpoint `json:"endpoints,omitempty"`
	// Inputs and Outputs are media types in lower case, sorted; text/plain
	// when there are none.
	Inputs  []string `json:"inputs,omitempty"`
	Outputs []string `json:"outputs,omitempty"`
	// Created is when the agent was registered at its portal, Updated when it
	// was changed last; milliseconds since 1970, 0 when the portal does not say.
	Created int64 `json:"created,omitempty"`
	Updated int64 `json:"updated,omitempty"`
	// Status is empty or StatusDeprecated.
	Status     string `json:"status,omitempty"`
	StatusNote string `json:"status_note,omitempty"`
	// Owner is the name of the account that registered it there, Publisher a
	// domain that the account was shown there to control, and Proof why the
	// account may list the agent. All three are the portal's word and no more.
	Owner      string      `json:"owner,omitempty"`
	Publisher  string      `json:"publisher,omitempty"`
	Proof      *AgentProof `json:"proof,omitempty"`
	CardURL    string      `json:"card_url,omitempty"`
	CardSHA256 Hash        `json:"card_sha256,omitzero"`
	Pricing    string      `json:"pricing,omitempty"`
	Terms      string      `json:"terms,omitempty"` // address
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
	Examples    []string `json:"examples,omitempty"` // what to ask for
}

// AgentProof is what a portal says it saw: that it runs the agent itself, or
// that the address the agent is reached at names its owner.
type AgentProof struct {
	Way    string `json:"way"`              // hosted, or a tag for what the address shows
	Origin string `json:"origin,omitempty"` // where it was seen
	At     int64  `json:"at,omitempty"`     // when, last; milliseconds since 1970
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
	f.Field(line(a.Title, MaxTitle), "title", "one line of at most %d bytes", MaxTitle)
	f.Field(text(a.Description, MaxDescription), "description", "at most %d bytes", MaxDescription)
	f.Field(sorted(a.Caps) && all(a.Caps, MaxCaps, capability), "caps", "at most %d tags of at most %d, in order", MaxCaps, MaxCap)
	f.Field(len(a.Skills) <= MaxSkills, "skills", "at most %d", MaxSkills)
	for _, s := range a.Skills {
		f.Field(said(s.ID, MaxSkillID) && said(s.Name, MaxTitle) && text(s.Description, MaxDescription), "skills", "an id and a name of one line each, and a description")
		f.Field(all(s.Tags, MaxCaps, func(t string) bool { return said(t, MaxSkillID) }), "skills", "at most %d tags of one line", MaxCaps)
		f.Field(all(s.Examples, MaxExamples, func(t string) bool { return said(t, MaxExample) }), "skills", "at most %d examples of one line", MaxExamples)
	}
	f.Field(sorted(a.Languages) && all(a.Languages, MaxLanguages, func(s string) bool { return tag(s, MaxLanguage) }), "languages", "at most %d tags in lower case, in order", MaxLanguages)
	f.Field(a.Kind == "" || tag(a.Kind, maxAgentKind), "kind", "a tag of at most %d", maxAgentKind)
	f.Field(mediaTypes(a.Inputs), "inputs", "at most %d media types in lower case, in order", MaxMedia)
	f.Field(mediaTypes(a.Outputs), "outputs", "at most %d media types in lower case, in order", MaxMedia)
	f.Field(a.Created >= 0 && a.Created <= a.Issued, "created", "milliseconds since 1970, not after iss")
	f.Field(a.Updated >= 0 && a.Updated <= a.Issued, "updated", "milliseconds since 1970, not after iss")
	f.Field(a.Status == "" && a.StatusNote == "" || a.Status == StatusDeprecated, "status", "leave it out, or say deprecated")
	f.Field(text(a.StatusNote, MaxStatusNote), "status_note", "at most %d bytes", MaxStatusNote)
	f.Field(a.Owner == "" || len(a.Owner) <= maxAgentName && plainName(a.Owner), "owner", "use at most %d of a–z, 0–9 and -", maxAgentName)
	f.Field(a.Publisher == "" || domain(a.Publisher), "publisher", "use a domain")
	if p := a.Proof; p != nil {
		f.Field(tag(p.Way, maxProofWay) && (p.Origin == "" || ValidOrigin(p.Origin)) && p.At >= 0 && p.At <= a.Issued, "proof", "a tag, an origin and a time not after iss")
	}
	f.Field(len(a.Endpoints) <= maxEndpoints, "endpoints", "at most %d", maxEndpoints)
	for _, e := range a.Endpoints {
		f.Field(webAddress(e.URL) && tag(e.Protocol, MaxCap), "endpoints", "an https address and a protocol each")
	}
	f.Field(a.CardURL == "" || webAddress(a.CardURL), "card_url", "use an https address")
	f.Field(line(a.Pricing, maxPricing), "pricing", "one line of at most %d bytes", maxPricing)
	f.Field(a.Terms == "" || webAddress(a.Terms), "terms", "use an https address")
}

func capability(s string) bool { return tag(s, MaxCap) }

func mediaTypes(list []string) bool { return sorted(list) && all(list, MaxMedia, mediaType) }

func (a *Agent) bare() bool {
	return a.Name == "" && a.Title == "" && a.Description == "" && a.Caps == nil && a.Skills == nil && a.Languages == nil && a.Endpoints == nil &&
		a.CardURL == "" && a.CardSHA256 == Hash{} && a.Pricing == "" && a.Terms == "" && a.Kind == "" && a.Inputs == nil && a.Outputs == nil &&
		a.Created == 0 && a.Updated == 0 && a.Status == "" && a.StatusNote == "" && a.Owner == "" && a.Publisher == "" && a.Proof == nil
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

package record

import (
	"bytes"
	"crypto/ed25519"
	"fmt"

	"agentsite/internal/record/canonical"
)

// Limits of an agent record. Texts are limited in bytes: four for each character that a registration
// allows.
const (
	maxAgentName   = 40
	MaxTitle       = 400 // for 100 characters
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
	MaxStatusNote  = 1200 // for 300 characters
	MaxExamples    = 5
	MaxExample     = 1200 // for 300 characters
	maxPublisher   = 255
	maxProofWay    = 32
)

// StatusDeprecated is the Status of an agent that still works but should not be used for new
// purposes; Agent.StatusNote names the replacement.
const StatusDeprecated = "deprecated"

// Agent is the statement that a portal lists an agent, with its description; or, with Deleted, that
// the agent was removed: then only the id is set.
type Agent struct {
	Header
	// ID is the agent's lasting id at its portal: 1 to 40 of a–z, 0–9 and -; or the PortableID
	// of AgentPub.
	ID      string `json:"id"`
	Deleted bool   `json:"deleted,omitempty"`
	// Name is the name in the handle name@host. It may change; ID identifies the agent.
	Name string `json:"name,omitempty"`
	// Kind is a tag for the way in which the portal reaches or runs the agent.
	Kind        string     `json:"kind,omitempty"`
	Title       string     `json:"title,omitempty"`
	Description string     `json:"description,omitempty"` // at most 1 KiB
	Caps        []string   `json:"caps,omitempty"`        // sorted tags
	Skills      []Skill    `json:"skills,omitempty"`
	Languages   []string   `json:"languages,omitempty"` // BCP 47 in lower case, sorted
	Endpoints   []Endpoint `json:"endpoints,omitempty"`
	// Inputs and Outputs are media types in lower case, sorted; an empty list means text/plain.
	Inputs  []string `json:"inputs,omitempty"`
	Outputs []string `json:"outputs,omitempty"`
	// Created is the time of the agent's registration at its portal, Updated the time of its last
	// change; milliseconds since 1970, 0 if the portal does not state it.
	Created int64 `json:"created,omitempty"`
	Updated int64 `json:"updated,omitempty"`
	// Status is empty or StatusDeprecated.
	Status     string `json:"status,omitempty"`
	StatusNote string `json:"status_note,omitempty"`
	// Owner is the name of the account that registered the agent, Publisher a domain that the
	// account has verified, and Proof the reason why the account may list the agent. All three are
	// only claims of the portal.
	Owner      string      `json:"owner,omitempty"`
	Publisher  string      `json:"publisher,omitempty"`
	Proof      *AgentProof `json:"proof,omitempty"`
	CardURL    string      `json:"card_url,omitempty"`
	CardSHA256 Hash        `json:"card_sha256,omitzero"`
	Pricing    string      `json:"pricing,omitempty"`
	Terms      string      `json:"terms,omitempty"` // URL of the portal's terms of use for the agent
	// Package is the manifest of a package. Such a record describes no agent, and has KindPackage.
	Package *Package `json:"package,omitempty"`
	// Runs is the package that the agent runs, if it is one of a package.
	Runs *PackageRun `json:"runs,omitempty"`
	// AgentPub is the agent's own key, and AgentSig its signature over everything else in the
	// record (see Cosign). Both are set, or neither.
	AgentPub Public    `json:"agent_pub,omitzero"`
	AgentSig Signature `json:"agent_sig,omitzero"`
}

// Skill is one ability of an agent.
type Skill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	Examples    []string `json:"examples,omitempty"` // example requests
}

// AgentProof is a check that a portal claims: that it runs the agent itself, or that the agent's
// address names its owner.
type AgentProof struct {
	Way    string `json:"way"`              // hosted, or a tag for the kind of evidence at the address
	Origin string `json:"origin,omitempty"` // origin of the evidence
	At     int64  `json:"at,omitempty"`     // time of the last check; milliseconds since 1970
}

// Endpoint is an address of an agent and the protocol spoken there.
type Endpoint struct {
	URL string `json:"url"`
	// Protocol is a tag: a2a, mcp, openai, …
	Protocol string `json:"protocol"`
}

func (a *Agent) recordType() Type { return TypeAgent }
func (a *Agent) slotKey() string  { return a.ID }

// AgentID returns the network id of the agent, see func AgentID.
func (a *Agent) AgentID() string { return AgentID(a.Portal, a.ID) }

func (a *Agent) checkFields(f *fields) {
	own := a.AgentPub != Public{}
	if own {
		f.Field(a.ID == PortableID(a.AgentPub), "id", "is not made of agent_pub")
		f.Field(isSound(a.AgentPub), "agent_pub", "is not a secure key")
	} else {
		f.Field(localID(a.ID), "id", "use 1 to 40 of a–z, 0–9 and -")
		f.Field(a.AgentSig == Signature{}, "agent_sig", "there is no agent_pub")
	}
	if a.Deleted {
		f.Field(a.isEmpty(), "deleted", "a deleted agent has nothing but its id")
		return
	}
	f.Field(len(a.Name) >= 2 && len(a.Name) <= maxAgentName && plainName(a.Name), "name",
		"use 2 to %d of a–z, 0–9 and -", maxAgentName)
	f.Field(isLine(a.Title, MaxTitle), "title", "one line of at most %d bytes", MaxTitle)
	f.Field(isText(a.Description, MaxDescription), "description", "at most %d bytes", MaxDescription)
	f.Field(isSorted(a.Caps) && allOf(a.Caps, MaxCaps, isCapability), "caps", "at most %d tags of at most %d, in order",
		MaxCaps, MaxCap)
	f.Field(len(a.Skills) <= MaxSkills, "skills", "at most %d", MaxSkills)
	for _, s := range a.Skills {
		f.Field(isFilledLine(s.ID, MaxSkillID) && isFilledLine(s.Name, MaxTitle) &&
			isText(s.Description, MaxDescription), "skills", "an id and a name of one line each, and a description")
		f.Field(allOf(s.Tags, MaxCaps, func(t string) bool { return isFilledLine(t, MaxSkillID) }), "skills",
			"at most %d tags of one line", MaxCaps)
		f.Field(allOf(s.Examples, MaxExamples, func(t string) bool { return isFilledLine(t, MaxExample) }), "skills",
			"at most %d examples of one line", MaxExamples)
	}
	f.Field(isSorted(a.Languages) && allOf(a.Languages, MaxLanguages,
		func(s string) bool { return isTag(s, MaxLanguage) }), "languages", "at most %d tags in lower case, in order",
		MaxLanguages)
	f.Field(a.Kind == "" || isTag(a.Kind, maxAgentKind), "kind", "a tag of at most %d", maxAgentKind)
	f.Field(mediaTypes(a.Inputs), "inputs", "at most %d media types in lower case, in order", MaxMedia)
	f.Field(mediaTypes(a.Outputs), "outputs", "at most %d media types in lower case, in order", MaxMedia)
	f.Field(a.Created >= 0 && a.Created <= a.Issued, "created", "milliseconds since 1970, not after iss")
	f.Field(a.Updated >= 0 && a.Updated <= a.Issued, "updated", "milliseconds since 1970, not after iss")
	f.Field(a.Status == "" && a.StatusNote == "" || a.Status == StatusDeprecated, "status",
		"leave it out, or say deprecated")
	f.Field(isText(a.StatusNote, MaxStatusNote), "status_note", "at most %d bytes", MaxStatusNote)
	f.Field(a.Owner == "" || len(a.Owner) <= maxAgentName && plainName(a.Owner), "owner",
		"use at most %d of a–z, 0–9 and -", maxAgentName)
	f.Field(a.Publisher == "" || isDomain(a.Publisher), "publisher", "use a domain")
	if p := a.Proof; p != nil {
		f.Field(isTag(p.Way, maxProofWay) && (p.Origin == "" || ValidOrigin(p.Origin)) && p.At >= 0 && p.At <= a.Issued,
			"proof", "a tag, an origin and a time not after iss")
	}
	f.Field(len(a.Endpoints) <= maxEndpoints, "endpoints", "at most %d", maxEndpoints)
	for _, e := range a.Endpoints {
		f.Field(webAddress(e.URL) && isTag(e.Protocol, MaxCap), "endpoints", "an https address and a protocol each")
	}
	f.Field(a.CardURL == "" || webAddress(a.CardURL), "card_url", "use an https address")
	f.Field(isLine(a.Pricing, maxPricing), "pricing", "one line of at most %d bytes", maxPricing)
	f.Field(a.Terms == "" || webAddress(a.Terms), "terms", "use an https address")
	f.Field(a.Package == nil || a.Kind == KindPackage && a.Runs == nil && !own, "package",
		"a package has the kind package, and neither runs nor a key")
	if a.Package != nil {
		a.Package.checkFields(f)
	}
	if a.Runs != nil {
		a.Runs.checkFields(f)
	}
}

func isCapability(s string) bool { return isTag(s, MaxCap) }

func mediaTypes(list []string) bool { return isSorted(list) && allOf(list, MaxMedia, isMediaType) }

func (a *Agent) isEmpty() bool {
	return a.Name == "" && a.Title == "" && a.Description == "" && a.Caps == nil && a.Skills == nil &&
		a.Languages == nil && a.Endpoints == nil &&
		a.CardURL == "" && a.CardSHA256 == Hash{} && a.Pricing == "" && a.Terms == "" && a.Kind == "" &&
		a.Inputs == nil && a.Outputs == nil &&
		a.Created == 0 && a.Updated == 0 && a.Status == "" && a.StatusNote == "" && a.Owner == "" &&
		a.Publisher == "" && a.Proof == nil && a.Package == nil && a.Runs == nil
}

// typeConsent separates the agent's own signature from signatures of records; no record has this type.
const typeConsent Type = "agent-consent/1"

// Cosign adds the signature of the agent's own key to a record that is otherwise complete. The
// agent signs the same bytes as its portal, without agent_sig.
func (a *Agent) Cosign(network string, key ed25519.PrivateKey) error {
	a.AgentPub, a.AgentSig = PublicOf(key), Signature{}
	payload, err := encodeBody(a)
	if err != nil {
		return fmt.Errorf("cosign: %w", err)
	}
	a.AgentSig = Signature(ed25519.Sign(key, PAE(network, typeConsent, payload)))
	return nil
}

// hasConsent reports whether the agent's own key signed the record, for an agent that has one. A
// tombstone needs no consent, because no agent can force a portal to list it.
func (r *Record) hasConsent(network string) bool {
	a, ok := r.Body.(*Agent)
	if !ok || a.AgentPub == (Public{}) || a.Deleted && a.AgentSig == (Signature{}) {
		return true
	}
	from, to, err := canonical.FindMember(r.payload, "agent_sig")
	if err != nil || to == 0 {
		return false
	}
	if r.payload[from-1] == ',' {
		from-- // remove the comma before the member; only the first member has none
	} else {
		to++
	}
	rest := append(bytes.Clone(r.payload[:from]), r.payload[to:]...)
	return ed25519.Verify(a.AgentPub[:], PAE(network, typeConsent, rest), a.AgentSig[:])
}

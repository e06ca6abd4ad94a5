package ard

import (
	"cmp"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentsite/internal/a2a"
	"agentsite/internal/hub"
)

// Media types of the documents that entries refer to, §3.3.
const (
	cardType     = "application/a2a-agent-card+json"
	serverType   = "application/mcp-server-card+json"
	registryType = "application/ai-registry+json"
)

// Bounds of one entry. Agents of other portals and old ones may have more than the hub accepts
// today.
const (
	maxDescriptionRunes = 1000
	maxQueryRunes       = 200
	maxTags             = 32
	maxCapabilities     = 32
	// An entry has 2 to 5 representative queries or none, §4.2 and D.2.
	minQueries, maxQueries = 2, 5
)

// entry is an ARD entry, §4.2. Fields without a value are left out, because lists must not be
// empty.
type entry struct {
	Identifier  string `json:"identifier"`
	DisplayName string `json:"displayName"`
	Type        string `json:"type"`
	// set only in an AI Catalog: its drafts use this name for Type
	MediaType    string         `json:"mediaType,omitempty"`
	URL          string         `json:"url"`
	Description  string         `json:"description,omitempty"`
	Tags         []string       `json:"tags,omitempty"`
	Capabilities []string       `json:"capabilities,omitempty"`
	Queries      []string       `json:"representativeQueries,omitempty"`
	Version      string         `json:"version,omitempty"`
	UpdatedAt    string         `json:"updatedAt,omitempty"`
	Metadata     *entryMetadata `json:"metadata,omitempty"`
	Trust        *trustManifest `json:"trustManifest,omitempty"`
}

// entryMetadata holds only strings, numbers and booleans, because older readers accept no nested values.
type entryMetadata struct {
	Handle    string `json:"handle"`
	Kind      string `json:"kind"`
	Liveness  string `json:"liveness"`
	Proof     string `json:"proof"`
	Publisher string `json:"publisher,omitempty"`
}

// The namespaces of identifiers. An agent has an entry for each protocol that it has a card of,
// because an entry has one type and one address, and two entries with one identifier would be
// versions of one thing (AI Catalog, Multi-Version Entries).
const (
	agentSpace    = "agents"
	serverSpace   = "mcp"
	registrySpace = "registry"
)

// urn returns the identifier of a name in one of this portal's namespaces, Appendix C. The name is
// unchanged, so equal names give equal identifiers.
func (d *Handler) urn(space, name string) string {
	return "urn:air:" + d.cfg.Publisher + ":" + space + ":" + name
}

// identifier matches the syntax of identifiers in Appendix C.
var identifier = regexp.MustCompile(`^urn:air:[a-zA-Z0-9.-]+(:[a-zA-Z0-9._-]+)+$`)

// maxIdentifier bounds an identifier in bytes: 253 for the host name and the rest for the other parts.
const maxIdentifier = 512

// entryOf returns the entry of an agent for a card of the given media type. An empty type selects the
// card with the most detail, which for an MCP server is its server card.
func (d *Handler) entryOf(a *hub.Agent, of string) entry {
	if of == "" && a.Kind == hub.MCP {
		of = serverType
	}
	home, urn := d.homeOf(a), "urn:air:"+d.publisherOf(a)+":"
	id, address := urn+agentSpace+":"+a.Name, home+a2a.CardPath(a.Name)
	if of == serverType {
		id, address = urn+serverSpace+":"+a.Name, home+"/agents/"+url.PathEscape(a.Name)+"/mcp/server-card"
	}
	e := entry{
		Identifier: id, DisplayName: cmp.Or(a.Title, a.Name), Type: cmp.Or(of, cardType),
		URL:         address,
		Description: cutText(a.Description, maxDescriptionRunes), Version: strconv.Itoa(a.Version),
		UpdatedAt: formatTime(a.UpdatedAt),
		Metadata: &entryMetadata{a.Name + "@" + cmp.Or(a.Portal, d.cfg.Host), string(a.Kind),
			string(cmp.Or(a.Liveness.State, hub.Unknown)), cmp.Or(a.Proof.State, hub.Unproven), a.Publisher},
	}
	tags := a.Tags()
	e.Tags = tags[:min(len(tags), maxTags)]
	for i := range a.Skills {
		s := &a.Skills[i]
		if len(e.Capabilities) < maxCapabilities {
			e.Capabilities = append(e.Capabilities, cmp.Or(s.Name, s.ID))
		}
		for _, q := range s.Examples {
			if q = strings.TrimSpace(q); q != "" && len(e.Queries) < maxQueries {
				e.Queries = append(e.Queries, cutText(q, maxQueryRunes))
			}
		}
	}
	if len(e.Queries) < minQueries {
		e.Queries = nil
	}
	d.addTrust(&e, a)
	return e
}

// registryEntry returns the entry that refers to this registry, the first one of every catalog.
func (d *Handler) registryEntry() entry {
	return entry{
		Identifier: d.urn(registrySpace, agentSpace), Type: registryType,
		DisplayName:  "Agents of " + d.cfg.Live.NameOr(d.cfg.Name),
		URL:          d.cfg.URL + base,
		Description:  "Searches, lists and counts all public agents of this portal.",
		Tags:         []string{"registry", "search"},
		Capabilities: []string{"search", "explore", "list", "retrieve"},
		Queries:      []string{"find an agent for a task", "which agents are on " + d.cfg.Live.NameOr(d.cfg.Name)},
		Version:      "0.91",
	}
}

// cutText shortens s to the given number of runes, the last of which becomes an ellipsis.
func cutText(s string, runes int) string {
	if len(s) <= runes || utf8.RuneCountInString(s) <= runes {
		return s
	}
	n := 0
	for i := range s {
		if n++; n == runes {
			return strings.TrimSpace(s[:i]) + "…"
		}
	}
	return s
}

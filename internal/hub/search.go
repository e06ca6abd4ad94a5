package hub

import (
	"time"

	"agentsite/internal/federation"
)

// Query asks the index for agents. Filters of one kind are alternatives,
// filters of different kinds must all hold.
type Query struct {
	// Text is the query as typed: words, prefixes, "phrases", -exclusions. Empty text lists
	// everything in the order of Sort.
	Text   string
	Kinds  []string
	Tags   []string
	Skills []string
	// Portals are hosts; "" or "local" is this portal.
	Portals []string
	// Scope is "" (everything that is known) or ScopePortal (this portal's own).
	Scope string
	// Live restricts to agents in that state of liveness.
	Live []string
	// Languages are BCP 47 tags; "de" also means "de-ch".
	Languages []string
	// Modalities are those of Agent.Modalities.
	Modalities []string
	// Signed is "true" or "false", see Agent.Signed.
	Signed []string
	// Proofs are states of Agent.Proof.
	Proofs []string
	// Publishers are the domains agents are published under.
	Publishers []string
	// CreatedAfter and UpdatedAfter leave out agents registered, or last changed, at or before
	// that time; the zero time leaves out nothing.
	CreatedAfter, UpdatedAfter time.Time
	// CountMatches counts every facet over the results alone. Without it a
	// facet is counted as if nothing were asked of it, for pages that offer
	// its other values.
	CountMatches bool
	// Bare returns only agents, scores and the total: no facets, suggestions or explanations.
	Bare bool
	// Sort is "" (relevance where there is text, else name) or one of Sorts.
	Sort string
	// Wide adds a remote search of portals that are not fully held here, if there is a query: it
	// takes as long as Wider does. It affects the first page only.
	Wide bool
	// Limit is 1 to 100. Cursor is the opaque NextCursor of the page before.
	Limit  int
	Cursor string
}

// Result is one found agent, with why it was found.
type Result struct {
	Agent Agent
	// Score is the text relevance, 0 for a listing; trust never enters it.
	Score float64
	// Matched names the fields in which words of the query were found.
	Matched []string
	// Why lists the matches of query words, best first, at most 8; empty for a listing.
	Why []Match
}

// Match is one word of a query found in an agent.
type Match struct {
	Word  string // as typed
	Found string // the word in the agent
	How   string // exact, form (another ending), prefix, typo or phrase
	Field string // name, title, skills, tags, examples, description
}

// The scopes of a search.
const (
	ScopePortal     = "portal"
	ScopeFederation = "federation"
)

// The orders a search can have. Newest is by registration, updated by last
// change; both newest first.
const (
	SortRelevance = "relevance"
	SortName      = "name"
	SortNewest    = "newest"
	SortUpdated   = "updated"
)

// Sorts lists the orders a search can have.
var Sorts = []string{SortRelevance, SortName, SortNewest, SortUpdated}

// Suggestion is something a half-typed query may be meant for.
type Suggestion struct {
	Kind string // agent, tag or skill
	Text string // text to show: a title, a tag, a skill's name
	// Handle is the agent's, for kind agent.
	Handle string
	Count  int // agents that have it, for tags and skills
}

// FacetCount is one value of a facet and how many of all matches have it.
type FacetCount struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

// MaxFacetValues bounds the values of a facet with free values (tag, skill, publisher) and of
// portals: the most frequent ones stay.
const MaxFacetValues = 30

// MaxNamed bounds the agents of one handle that are read.
const MaxNamed = 8

// Page is one page of results with the counts over all matches.
type Page struct {
	Results []Result
	Total   int
	// Facets are by name: kind, tag, skill, portal, language, modality, live,
	// signed, proof, publisher.
	Facets     map[string][]FacetCount
	NextCursor string
	// Suggestions are other spellings worth a try when nothing was found.
	Suggestions []string
	// Coverage is how much of the network was looked through.
	Coverage federation.Coverage
}

// Index finds agents by words. It holds only agents that may be listed. It is
// safe for concurrent use; a Search started after Put returned sees the agent.
type Index interface {
	// Put adds the agent or replaces its earlier form, by ID.
	Put(a Agent)
	// Load puts all agents that next returns until it returns false, faster
	// than one by one, and lets searches in between; next is called by one
	// goroutine at a time.
	Load(next func() (Agent, bool))
	// Remove forgets the agent; removing an unknown id does nothing.
	Remove(id string)
	// Get returns the agent with an id, and whether there is one.
	Get(id string) (Agent, bool)
	// Named returns the agents of a name on a portal (its host, "" for this one), at most
	// MaxNamed, in order of id. Several portals may claim the same host.
	Named(name, portal string) []Agent
	// Of returns the ids of all agents that a portal lists, Count how many they
	// are.
	Of(portal string) []string
	Count(portal string) int
	// Search returns an Invalid fault for a malformed cursor.
	Search(q Query) (Page, error)
	// Beside is Search in a few agents that are not held, with scores as if they
	// stood among those that are.
	Beside(few []Agent, q Query) (Page, error)
	// Suggest returns completions of a half-typed text, best first, at most n: agents with a word
	// of the name or title that begins so, then tags and skills. It costs no more than a search.
	Suggest(text string, n int) []Suggestion
	// Len is the number of agents held.
	Len() int
	// State changes whenever a Search may find or show something else than
	// before; when an agent was last checked, and how fast, does not count.
	State() uint64
}

package hub

import (
	"time"

	"agentsite/internal/federation"
)

// Query selects agents in the index. Values of one filter are alternatives; different filters must all match.
type Query struct {
	// Text is the query as typed: words, prefixes, "phrases", -exclusions. Empty text lists
	// everything in the order of Sort.
	Text   string
	Kinds  []string
	Tags   []string
	Skills []string
	// Portals are hosts of portals; "" or "local" is this portal.
	Portals []string
	// Scope is "" (all agents in the index) or ScopePortal (this portal's own agents).
	Scope string
	// Live selects agents by liveness state.
	Live []string
	// Languages are BCP 47 tags; "de" also means "de-ch".
	Languages []string
	// Modalities selects agents by the values of Agent.Modalities.
	Modalities []string
	// Signed is "true" or "false" and selects by Agent.Signed.
	Signed []string
	// Proofs selects agents by Proof.State.
	Proofs []string
	// Publishers selects agents by publishing domain.
	Publishers []string
	// CreatedAfter and UpdatedAfter select agents registered, or last changed, after that time; zero selects all.
	CreatedAfter, UpdatedAfter time.Time
	// CountMatches counts every facet over the matches only. Without it, the count of a facet ignores
	// the filter on that facet itself, for pages that offer its other values.
	CountMatches bool
	// Bare leaves out facets, suggestions and explanations, for callers that need only agents, scores and the total.
	Bare bool
	// Sort is one of Sorts; "" is relevance if there is text, else use.
	Sort string
	// Mode is one of Modes; "" is ModeAuto, which finds nothing if nothing fits. With Unfit it lists the best agents.
	Mode    string
	Unfit   bool
	Private bool // Text is from a conversation, a goal or another portal, and must stay on this one
	// Wide adds a remote search of portals that are not fully replicated here. The search then takes up
	// to a second longer. Only the first page has remote results.
	Wide bool
	// Limit is 1 to 100, 0 is 20; a page ends early at PageBytes. Cursor is the NextCursor of the previous page, or "".
	Limit  int
	Cursor string
}

// Result is one found agent with the reasons for the match.
type Result struct {
	Agent Agent
	// Score is the text relevance, 0 without text. Trust in portals does not influence it.
	Score float64
	// Matched names the fields that contain words of the query, and ByMeaning.
	Matched []string
	// Meaning is how similar the agent is to the text in meaning, as a cosine; 0 if it was not found by meaning.
	Meaning float64
	// Users is the number of people that used the agent this week; guests and its owner do not count.
	Users int
	// Why lists the matches of the query's words, best first, at most 8; empty without text.
	Why []Match
}

// Match is one word of a query that matched a word of an agent, or the part of the agent that is similar in meaning.
type Match struct {
	Word  string // "" for a meaning
	Found string // word of the agent that matched; for a meaning the title, or the name of the skill
	How   string // exact, form (another ending), prefix, typo, phrase or meaning
	Field string // name, title, skills, tags, examples, description
}

// ByMeaning is the value of Match.How, and in Result.Matched, for a similar meaning.
const ByMeaning = "meaning"

// The modes of a search. ModeAuto finds by words and by meaning, and nothing if nothing fits well. ModeWords finds
// every agent that has some of the words, ModeMeaning only those that are similar in meaning.
const (
	ModeAuto    = "auto"
	ModeWords   = "words"
	ModeMeaning = "meaning"
)

// Modes lists the values of Query.Mode.
var Modes = []string{ModeAuto, ModeWords, ModeMeaning}

// The values of Query.Scope.
const (
	ScopePortal     = "portal"
	ScopeFederation = "federation"
)

// The orders of a search. SortUsed orders by the number of people that use an agent; SortNewest by registration and
// SortUpdated by last change, the newest first.
const (
	SortRelevance = "relevance"
	SortUsed      = "used"
	SortName      = "name"
	SortNewest    = "newest"
	SortUpdated   = "updated"
)

// Sorts lists the values of Query.Sort.
var Sorts = []string{SortRelevance, SortUsed, SortName, SortNewest, SortUpdated}

// Suggestion is one completion of an incomplete query.
type Suggestion struct {
	Kind string // agent, tag or skill
	Text string // text to show: a title, a tag or the name of a skill
	// Handle is the agent's handle if Kind is agent.
	Handle string
	Count  int // number of matching agents, for tags and skills only
}

// FacetCount is one value of a facet and the number of matches that have it.
type FacetCount struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

// MaxFacetValues is the number of values of an open facet (tag, skill, publisher, portal) in a result;
// the most frequent ones are kept.
const MaxFacetValues = 30

// MaxNamed is how many agents with the same handle Named returns; a bound against hostile portals.
const MaxNamed = 8

// Page is one page of results with counts over all matches.
type Page struct {
	Results []Result
	Total   int
	// Facets is keyed by facet name: kind, tag, skill, portal, language, modality, live, signed, proof, publisher.
	Facets     map[string][]FacetCount
	NextCursor string
	// Suggestions are alternative spellings, given if nothing was found.
	Suggestions []string
	// Coverage is how much of the network the search covered.
	Coverage federation.Coverage
}

// Index finds agents by words and filters. It holds only listable agents. It is safe for concurrent use;
// a Search that starts after Put returned sees the agent.
type Index interface {
	// Put adds the agent or replaces its earlier form, by ID.
	Put(a Agent)
	// Load puts all agents that next returns until it returns false. It is faster than single Puts, and
	// searches continue meanwhile. next is never called concurrently.
	Load(next func() (Agent, bool))
	// Remove removes the agent with an id; an unknown id does nothing.
	Remove(id string)
	// Get returns the agent with an id; false if it is not in the index.
	Get(id string) (Agent, bool)
	// Named returns the agents with a name on a portal (host, "" for this portal), at most MaxNamed,
	// ordered by id. There can be several, because portals may claim the same host.
	Named(name, portal string) []Agent
	// Of returns the ids of all agents that a portal lists; Count returns their number.
	Of(portal string) []string
	Count(portal string) int
	// Search returns one page of matches; an Invalid fault for a malformed cursor.
	Search(q Query) (Page, error)
	// Beside is Search in a few agents that are not in the index. Scores are computed as if they were,
	// so that both results can be merged.
	Beside(few []Agent, q Query) (Page, error)
	// Suggest returns at most n completions of an incomplete text, best first: agents with a word of the
	// name or title that begins with it, then tags and skills. It costs no more than a search.
	Suggest(text string, n int) []Suggestion
	// Len returns the number of agents in the index.
	Len() int
	// State returns a number that changes whenever a Search may return another result. The time and
	// duration of an agent's last probe do not count.
	State() uint64
}

package hub

// Query asks the index for agents. Filters of one kind are alternatives,
// filters of different kinds must all hold.
type Query struct {
	// Text is what somebody typed: words, prefixes, "phrases", -exclusions.
	// Empty text lists everything in the order of Sort.
	Text   string
	Kinds  []string
	Tags   []string
	Skills []string
	// Portals are hosts; "" or "local" is this portal.
	Portals []string
	// Live restricts to agents in that state of liveness.
	Live []string
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
}

// FacetCount is one value of a facet and how many of all matches have it.
type FacetCount struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

// Page is one page of results with the counts over all matches.
type Page struct {
	Results []Result
	Total   int
	// Facets are by name: kind, tag, skill, portal, live.
	Facets     map[string][]FacetCount
	NextCursor string
	// Suggestions are other spellings worth a try when nothing was found.
	Suggestions []string
}

// Index finds agents by words. It holds only agents that may be listed. It is
// safe for concurrent use; a Search started after Put returned sees the agent.
type Index interface {
	// Put adds the agent or replaces its earlier form, by ID.
	Put(a Agent)
	// Remove forgets the agent; removing an unknown id does nothing.
	Remove(id string)
	// Search returns an Invalid fault for a malformed cursor.
	Search(q Query) (Page, error)
	// Len is the number of agents held.
	Len() int
	// State changes whenever a Search may find or show something else than
	// before; when an agent was last checked, and how fast, does not count.
	State() uint64
}

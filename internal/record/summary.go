package record

const maxSummaryCaps = 1024

// Summary is what a portal has, in short, for those who keep no copy of its
// records: how many agents per capability, and a filter of the words they are
// found by. A filter of full size leaves 700 bytes for the rest.
type Summary struct {
	Header
	Caps      []CapCount `json:"caps,omitempty"`      // sorted by tag
	Languages []string   `json:"languages,omitempty"` // sorted
	Terms     Bloom      `json:"terms,omitempty"`
}

// CapCount is how many agents have a capability.
type CapCount struct {
	Cap   string `json:"cap"`
	Count int64  `json:"count"`
}

func (s *Summary) kind() Type    { return TypeSummary }
func (s *Summary) about() string { return "" }

func (s *Summary) check(f *fields) {
	f.Field(len(s.Caps) <= maxSummaryCaps, "caps", "at most %d", maxSummaryCaps)
	for i, c := range s.Caps {
		f.Field(capability(c.Cap) && c.Count >= 1 && c.Count <= MaxAgents && (i == 0 || s.Caps[i-1].Cap < c.Cap), "caps", "tags with their counts, in order")
	}
	f.Field(sorted(s.Languages) && all(s.Languages, maxSummaryCaps, func(s string) bool { return tag(s, MaxLanguage) }), "languages", "tags in lower case, in order")
	f.Field(len(s.Terms) <= MaxBloom, "terms", "at most %d bytes", MaxBloom)
}

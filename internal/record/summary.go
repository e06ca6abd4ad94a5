package record

const maxSummaryCaps = 1024

// Summary describes the agents of a portal for portals that do not store its records: the number of
// agents per capability, and a Bloom filter of their search terms. A filter of full size leaves 700
// bytes for the other fields.
type Summary struct {
	Header
	Caps      []CapCount `json:"caps,omitempty"`      // sorted by tag
	Languages []string   `json:"languages,omitempty"` // sorted BCP 47 tags
	Terms     Bloom      `json:"terms,omitempty"`
}

// CapCount is the number of agents with a capability.
type CapCount struct {
	Cap   string `json:"cap"`
	Count int64  `json:"count"`
}

func (s *Summary) recordType() Type { return TypeSummary }
func (s *Summary) slotKey() string  { return "" }

func (s *Summary) checkFields(f *fields) {
	f.Field(len(s.Caps) <= maxSummaryCaps, "caps", "at most %d", maxSummaryCaps)
	for i, c := range s.Caps {
		f.Field(isCapability(c.Cap) && c.Count >= 1 && c.Count <= MaxAgents && (i == 0 || s.Caps[i-1].Cap < c.Cap),
			"caps", "tags with their counts, in order")
	}
	f.Field(isSorted(s.Languages) && allOf(s.Languages, maxSummaryCaps,
		func(s string) bool { return isTag(s, MaxLanguage) }), "languages", "tags in lower case, in order")
	f.Field(len(s.Terms) <= MaxBloom, "terms", "at most %d bytes", MaxBloom)
}

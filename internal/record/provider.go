package record

// The values of Provider.Kind.
const (
	ProvidesAgent = "agent"
	ProvidesCap   = "cap"
)

// Provider is the statement that a portal has an agent, or agents with a capability, under a key of
// the DHT.
type Provider struct {
	Header
	Kind string `json:"kind"` // ProvidesAgent or ProvidesCap
	Key  Hash   `json:"key"`  // see AgentKey and CapKeys
	// HeadSeq is the seq of the portal's head when the record was signed.
	HeadSeq int64 `json:"head_seq"`
	Count   int64 `json:"count"` // number of the portal's agents under the key
}

func (p *Provider) recordType() Type { return TypeProvider }
func (p *Provider) slotKey() string  { return p.Kind + "/" + p.Key.String() }

func (p *Provider) checkFields(f *fields) {
	f.Field(p.Kind == ProvidesAgent || p.Kind == ProvidesCap, "kind", "agent or cap")
	f.Field(p.HeadSeq >= 1, "head_seq", "1 or more")
	f.Field(p.Count >= 1 && p.Count <= MaxAgents && (p.Kind != ProvidesAgent || p.Count == 1), "count",
		"from 1 to %d, of an agent 1", MaxAgents)
}

package record

import "slices"

// The values of Attest.Verdict.
const (
	Vouch = "vouch"
	Warn  = "warn"
	Block = "block"
)

const maxWhy = 500

// Attest is a statement of one portal about another. It has no effect by itself: each operator
// chooses the portals whose attestations count.
type Attest struct {
	Header
	Subject PortalID `json:"subject"`
	Verdict string   `json:"verdict"`
	Reason  string   `json:"reason,omitempty"`
	// Evidence is the hash of a record that proves the reason; zero without one.
	Evidence Hash `json:"evidence,omitzero"`
}

func (a *Attest) recordType() Type { return TypeAttest }
func (a *Attest) slotKey() string  { return string(a.Subject) }

func (a *Attest) checkFields(f *fields) {
	_, ok := a.Subject.Digest()
	f.Field(ok, "subject", "is not the id of a portal")
	f.Field(a.Subject != a.Portal, "subject", "a portal cannot attest to itself")
	f.Field(slices.Contains([]string{Vouch, Warn, Block}, a.Verdict), "verdict", "vouch, warn or block")
	f.Field(isText(a.Reason, maxWhy), "reason", "at most %d bytes", maxWhy)
}

package record

import "slices"

// The verdicts of an attestation.
const (
	Vouch = "vouch"
	Warn  = "warn"
	Block = "block"
)

const maxWhy = 500

// Attest is what one portal says of another. It binds nobody: operators choose
// whose word counts.
type Attest struct {
	Header
	Subject PortalID `json:"subject"`
	Verdict string   `json:"verdict"`
	Reason  string   `json:"reason,omitempty"`
	// Evidence is the hash of a record that shows it; zero without one.
	Evidence Hash `json:"evidence,omitzero"`
}

func (a *Attest) kind() Type    { return TypeAttest }
func (a *Attest) about() string { return string(a.Subject) }

func (a *Attest) check(f *fields) {
	_, ok := a.Subject.Digest()
	f.Field(ok, "subject", "is not the id of a portal")
	f.Field(a.Subject != a.Portal, "subject", "nobody attests to themselves")
	f.Field(slices.Contains([]string{Vouch, Warn, Block}, a.Verdict), "verdict", "vouch, warn or block")
	f.Field(text(a.Reason, maxWhy), "reason", "at most %d bytes", maxWhy)
}

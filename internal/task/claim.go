package task

import (
	"encoding/json"
	"regexp"
)

// Claim is the cost of an answer as the server that gave it states it. It is shown as a claim, and is in no sum of this
// portal's own measurements.
type Claim struct {
	InputTokens  int64 `json:"input_tokens,omitempty"`
	OutputTokens int64 `json:"output_tokens,omitempty"`
	// Cost is a decimal number, "" for none, in the currency, a code of three letters.
	Cost     string `json:"cost,omitempty"`
	Currency string `json:"currency,omitempty"`
}

const maxClaimed = 1e12 // tokens

var (
	claimedCost     = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,6})?$`)
	claimedCurrency = regexp.MustCompile(`^[A-Z]{3}$`)
)

// Valid reports whether the claim says anything and each part of it has its form.
func (c Claim) Valid() bool {
	tokens := c.InputTokens >= 0 && c.InputTokens <= maxClaimed && c.OutputTokens >= 0 && c.OutputTokens <= maxClaimed
	if !tokens || (c.Cost == "") != (c.Currency == "") {
		return false
	}
	if c.Cost == "" {
		return c.InputTokens+c.OutputTokens > 0
	}
	return claimedCost.MatchString(c.Cost) && claimedCurrency.MatchString(c.Currency)
}

// claimKey is the name in the metadata of a part for the claimed cost of the answer that begins with it.
const claimKey = "claimed_cost"

// WithClaim returns the part with the claimed cost of its answer. A claim that is not valid is left out.
func (p Part) WithClaim(c Claim) Part {
	if !c.Valid() {
		return p
	}
	meta := make(map[string]json.RawMessage)
	if len(p.Metadata) > 0 && json.Unmarshal(p.Metadata, &meta) != nil {
		return p
	}
	meta[claimKey], _ = json.Marshal(c) // cannot fail, because it is numbers and texts
	p.Metadata, _ = json.Marshal(meta)  // cannot fail, because it was read from JSON
	return p
}

// Claim returns the claimed cost of the answer that begins with the part; ok is false if there is none.
func (p Part) Claim() (c Claim, ok bool) {
	var meta struct {
		Claim *Claim `json:"claimed_cost"`
	}
	if len(p.Metadata) == 0 || json.Unmarshal(p.Metadata, &meta) != nil || meta.Claim == nil {
		return c, false
	}
	return *meta.Claim, meta.Claim.Valid()
}

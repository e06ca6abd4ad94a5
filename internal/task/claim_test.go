package task

import (
	"encoding/json"
	"testing"
)

func TestClaim_IsReadOnlyIfItHasItsForm(t *testing.T) {
	t.Parallel()
	for _, c := range []Claim{{InputTokens: 3, OutputTokens: 4}, {Cost: "0.012", Currency: "EUR"}, {OutputTokens: 1, Cost: "12", Currency: "USD"}} {
		p := TextPart("42").WithThoughts("hm").WithClaim(c)
		if got, ok := p.Claim(); !ok || got != c || p.Thoughts() != "hm" || p.Text != "42" {
			t.Errorf("%+v: %+v %v, %s", c, got, ok, p.Metadata)
		}
	}
	for _, c := range []Claim{{}, {InputTokens: -1, OutputTokens: 5}, {InputTokens: 1e13}, {Cost: "1"}, {Currency: "EUR", InputTokens: 1},
		{Cost: "-1", Currency: "EUR"}, {Cost: "1e9", Currency: "EUR"}, {Cost: "1", Currency: "<b>"}, {Cost: "1.1234567", Currency: "EUR"}} {
		b, _ := json.Marshal(map[string]Claim{claimKey: c})
		if _, ok := (Part{Text: "42", Metadata: b}).Claim(); ok || len(TextPart("42").WithClaim(c).Metadata) > 0 {
			t.Errorf("%+v is taken", c)
		}
	}
}

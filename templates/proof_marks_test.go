package templates

import (
	"bytes"
	"testing"
)

// A profile and a card have the same marks. Those of another portal name the portal.
func TestProofMarks_AreTheSameOnProfilesAndCards(t *testing.T) {
	for _, c := range []struct {
		of                        Provenance
		portal, address, unproven bool
	}{
		{Provenance{Verified: true}, false, false, false},
		{Provenance{Verified: true, Proof: "proved"}, false, true, false},
		{Provenance{Verified: true, Proof: "unproven"}, false, false, true},
		{Provenance{Portal: "far.example", Verified: true}, true, false, false},
		{Provenance{Portal: "far.example", Verified: true, Proof: "unproven"}, true, false, true},
		{Provenance{Portal: "far.example", Proof: "unproven"}, false, false, true},
	} {
		for name, html := range map[string][]byte{"badge": render(t, badge(c.of)),
			"card": render(t, cardBadge(AgentCard{Provenance: c.of}))} {
			for text, want := range map[string]bool{"portal proven": c.portal, "address proven": c.address,
				"> unproven": c.unproven, "verified<": false} {
				html := bytes.Join(bytes.Fields(bytes.ReplaceAll(html, []byte("</svg>"), []byte("</svg> "))), []byte(" "))
				if bytes.Contains(html, []byte(text)) != want {
					t.Errorf("%+v: %q in the %s is not %v: %s", c.of, text, name, want, html)
				}
			}
		}
	}
}

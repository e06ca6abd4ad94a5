package live

import (
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

func TestVisits_BoundsVisitorsByTheirAddress(t *testing.T) {
	var v visits
	var leave []func()
	for range maxVisits {
		end, err := v.enterVisit(ident.Actor{Kind: ident.Guest, ID: ident.NewID(), Addr: "192.0.2.1"})
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, end)
	}
	if _, err := v.enterVisit(ident.Actor{Kind: ident.Guest, ID: ident.NewID(), Addr: "192.0.2.1"}); !fault.Is(err, fault.RateLimited) {
		t.Errorf("one more: %v", err)
	}
	for _, a := range []ident.Actor{{Kind: ident.Guest, ID: "g", Addr: "192.0.2.2"}, {Kind: ident.Person, ID: "p", Addr: "192.0.2.1"}} {
		end, err := v.enterVisit(a)
		if err != nil {
			t.Errorf("%+v: %v", a, err)
			continue
		}
		leave = append(leave, end)
	}
	for _, end := range leave {
		end()
	}
	if len(v.open) != 0 {
		t.Errorf("%v are counted still", v.open)
	}
}

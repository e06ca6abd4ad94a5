package acting

import (
	"encoding/json"
	"testing"

	"agentsite/internal/grant"
	"agentsite/internal/hub"
)

// A grant lapses when the owner of a prompt agent points its named model to another host.
func TestBindingOf_HasTheHostOfTheModel(t *testing.T) {
	named := hub.Agent{Kind: hub.Prompt, OwnerName: "ben", Config: json.RawMessage(`{"model":"fast","tools":["find"]}`)}
	direct := named
	direct.Endpoint = "https://llm.example/v1"
	g := grant.Grant{Allow: true, Binds: BindingOf(named, "a.example")}
	for _, tt := range []struct {
		now    grant.Binding
		lapsed bool
	}{{BindingOf(named, "a.example"), false}, {BindingOf(named, "b.example"), true}, {BindingOf(named, ""), true},
		{BindingOf(direct, "a.example"), true}} {
		if got := g.Lapsed(tt.now); got != "" != tt.lapsed {
			t.Errorf("%+v: %q", tt.now, got)
		}
	}
}

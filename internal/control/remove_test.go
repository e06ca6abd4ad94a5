package control_test

import (
	"net/http"
	"reflect"
	"testing"

	"agentsite/internal/control"
	"agentsite/internal/personal"
	"agentsite/internal/settings"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// An account is erased from a running portal, and so that it is whole, and from one that does not run.
func TestRemoveUser_FromAPortal(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	p.Operator(t, "boss")
	for _, name := range []string{"eve", "ida"} {
		removed(t, p, name, func() control.Removal {
			c := p.OpenControl(t)
			defer c.Close()
			r, err := c.RemoveUser(t.Context(), name, personal.KeepMessages)
			if err != nil {
				t.Fatal(err)
			}
			return r
		})
	}
	ada := p.User(t, "ada")
	ada.Agent("public", agenttest.NewOpenAIServer(t).Base(agenttest.Echo))
	ada.Say(ada.Conversation("calc"), "2+2")
	p.Stop()
	cfg := settings.Defaults()
	cfg.Data = p.Dir
	c, err := control.Open(t.Context(), cfg, false, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if r, err := c.RemoveUser(t.Context(), "ada", personal.KeepMessages); err != nil || !reflect.DeepEqual(r, control.Removal{Name: "ada", Conversations: 1, Agents: 1}) {
		t.Errorf("%+v %v", r, err)
	}
	if r, err := c.Verify(t.Context()); err != nil || len(r.Faults) > 0 {
		t.Errorf("%+v %v", r, err)
	}
}

// removed has a person use the portal, removes the account, and checks the remaining data.
func removed(t *testing.T, p *apptest.Portal, name string, remove func() control.Removal) {
	t.Helper()
	model := agenttest.NewOpenAIServer(t)
	who, other := p.User(t, name), p.User(t, "other-"+name)
	token := who.NewToken()
	agent := who.Agent("public", model.Base(agenttest.Wait))
	who.Meets(other)
	own, shared := who.Conversation("calc"), who.Conversation("other-"+name, agent)
	who.Say(own, "mine alone")
	s := who.Events(shared)
	who.Say(shared, "hello other")
	<-model.Started

	if r := remove(); r.Name != name || r.Agents != 1 || r.Conversations < 2 {
		t.Errorf("%+v", r)
	}
	<-s.Ended
	s.Close()
	token.Must(http.MethodGet, "/api/v1/me", nil, http.StatusUnauthorized)
	other.Must(http.MethodGet, "/api/v1/agents/"+agent, nil, http.StatusNotFound)
	other.Must(http.MethodGet, "/api/v1/conversations/"+own, nil, http.StatusNotFound)
	var list struct {
		Messages []struct {
			Sender struct{ Handle string }
			Kind   string
		}
	}
	other.Get(http.MethodGet, "/api/v1/conversations/"+shared+"/messages", nil, http.StatusOK, &list)
	said, left := false, false
	for _, m := range list.Messages {
		said = said || m.Kind == "text" && m.Sender.Handle == "deleted account"
		left = left || m.Kind == "event" && m.Sender.Handle == "deleted account"
	}
	if !said || !left {
		t.Errorf("others see %+v", list.Messages)
	}
	c := p.OpenControl(t)
	defer c.Close()
	if r, err := c.Verify(t.Context()); err != nil || len(r.Faults) > 0 {
		t.Errorf("%+v %v", r, err)
	}
}

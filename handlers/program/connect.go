package program

import (
	"net/http"
	"net/url"
	"runtime"
	"sync"
	"time"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/account"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// connectLife is the lifetime of the API token of a connected program. It is long, because no person is
// there to renew it.
const connectLife = 365 * 24 * time.Hour

const (
	maxShownTokens = 1_000            // of all accounts; each has one
	maxTokenShown  = 15 * time.Minute // how long the page shows the token again, as after a reload
)

// shownTokens keeps the last token for a program of each account in memory, so that the page of its command can be
// loaded again for a short time. The zero value is ready. It is safe for concurrent use.
type shownTokens struct {
	mu   sync.Mutex // guards last
	last map[string]shownToken
}

type shownToken struct {
	agentID, token string
	until          time.Time
}

// keep stores the token of an agent for an account, in place of the earlier one.
func (s *shownTokens) keep(accountID, agentID, token string) {
	now := clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[string]shownToken{}
	}
	for id, t := range s.last {
		if !now.Before(t.until) {
			delete(s.last, id)
		}
	}
	for id := range s.last {
		if len(s.last) < maxShownTokens {
			break
		}
		delete(s.last, id) // its page offers a new command
	}
	s.last[accountID] = shownToken{agentID: agentID, token: token, until: now.Add(maxTokenShown)}
}

// find returns the token of an agent that was kept for the account, "" if there is none any more.
func (s *shownTokens) find(accountID, agentID string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.last[accountID]
	if t.agentID != agentID || !clock.Now().Before(t.until) {
		return ""
	}
	return t.token
}

// connectable returns the agent in the path if the actor may connect its program.
func (p *Pages) connectable(r *http.Request, actor ident.Actor) (hub.Agent, error) {
	a, err := p.hub.Get(r.Context(), actor, request.PathName(r))
	switch {
	case err != nil:
		return a, err
	case !actor.IsPerson():
		return a, fault.New(fault.Unauthenticated, "Log in to connect the program of an agent.")
	case !a.OwnedBy(actor) || !a.MayEdit(actor): // the token belongs to the account of an owner
		return a, fault.New(fault.Forbidden, "Only an owner of %s may connect its program.", a.Name)
	case a.Kind != hub.Link:
		return a, fault.New(fault.Invalid, "Only a linked agent is connected by a command; %s is reached at its address.",
			a.Name)
	}
	return a, nil
}

// connectAgent makes a new token for the agent's program and leads to the page of the command.
func (p *Pages) connectAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := p.connectable(r, actor)
	if err != nil {
		return err
	}
	return p.MakeCommand(w, r, actor, a)
}

// MakeCommand makes a token that may connect the program of the agent and nothing else, and leads to the page of the
// command with it.
func (p *Pages) MakeCommand(w http.ResponseWriter, r *http.Request, actor ident.Actor, a hub.Agent) error {
	token, err := p.accounts.CreateToken(r.Context(), actor,
		account.NewToken{Label: "program of " + a.Name, Program: a.ID, Life: connectLife})
	if err != nil {
		return err
	}
	p.tokens.keep(actor.ID, a.ID, token)
	return respond.SeeOther(w, r, "/agents/"+url.PathEscape(a.Name)+"/connect")
}

// showCommand shows the command that connects the agent's program, and whether it is connected. The command is shown
// for maxTokenShown after its token was made; later the page offers a new one. With part=state the answer contains only
// the state, which the page's script replaces.
func (p *Pages) showCommand(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := p.connectable(r, actor)
	if err != nil {
		return err
	}
	v := templates.ConnectView{Ref: a.Name, Title: a.Title, Connected: a.Liveness.State == hub.Alive}
	if r.URL.Query().Get("part") == "state" {
		return p.site.Render(w, r, http.StatusOK, templates.ConnectState(v))
	}
	if token := p.tokens.find(actor.ID, a.ID); token != "" {
		p.addCommand(&v, a, token)
	}
	w.Header().Set("Cache-Control", "no-store")
	return p.site.Render(w, r, http.StatusOK, templates.Connect(p.site.Frame(r, actor, "Connect "+a.Title), v))
}

// addCommand adds the command with the token.
func (p *Pages) addCommand(v *templates.ConnectView, a hub.Agent, token string) {
	secret, run := "AGENTSITE_TOKEN="+token+" ", "agentsite agent run --portal "+p.portal.URL+" --name "+a.Name+" -- cat"
	v.Fresh, v.Command = clock.Now().Sub(a.CreatedAt) < maxTokenShown, secret+run
	if name := systemName(runtime.GOOS); name != "" {
		v.System = name + " (" + runtime.GOARCH + ")"
		v.Fetch = "curl -fsSo agentsite " + p.portal.URL + "/program && chmod +x agentsite && " + secret + "./" + run
	}
}

// systemName returns the name of a system with a POSIX shell, on which the executable of this portal runs; "" for
// others.
func systemName(system string) string {
	return map[string]string{"darwin": "macOS", "freebsd": "FreeBSD", "linux": "Linux"}[system]
}

package agents

import (
	"net/http"
	"strings"

	"github.com/a-h/templ"

	"agentsite/handlers/request"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// embedSites returns the handler that stores the sites on which the chat may be embedded.
func (d *Owner) embedSites() request.Handler {
	return d.ownerChange("embed_origins", "sites#embed",
		func(in map[string]string) templates.OwnerView {
			return templates.OwnerView{Embed: templates.EmbedSettings{Origins: in["embed_origins"], Typed: true}}
		},
		func(r *http.Request, actor ident.Actor, name string, in map[string]string) (string, error) {
			sites := strings.Fields(strings.ReplaceAll(in["embed_origins"], ",", " "))
			if len(sites) > 1000 {
				return "", &fault.Error{Kind: fault.Invalid, Safe: "name fewer sites",
					Fields: map[string]string{"embed_origins": "name fewer sites"}}
			}
			_, err := d.hub.Update(r.Context(), actor, name, hub.Draft{EmbedOrigins: &sites})
			return "", err
		})
}

// embedSettings returns the form for the sites that may embed the agent's chat; typed holds rejected
// values.
func (d *Owner) embedSettings(a hub.Agent, typed templates.EmbedSettings) templates.EmbedSettings {
	v := templates.EmbedSettings{Origins: strings.Join(a.EmbedOrigins, "\n"), On: len(a.EmbedOrigins) > 0}
	if typed.Typed {
		v.Origins = typed.Origins
	}
	if v.On {
		v.Href = d.portal.URL + "/agents/" + a.Name + "/embed"
		v.Snippet = `<iframe src="` + v.Href + `" title="Chat with ` + templ.EscapeString(a.Title) +
			`" width="400" height="600" loading="lazy" style="border:0"></iframe>`
	}
	switch {
	case a.Visibility != hub.Public:
		v.Why = "It is shown nowhere while the agent is not public."
	case a.Status.State == hub.StatusDraft:
		v.Why = "It is shown nowhere while the agent is a draft."
	case !d.accounts.Guests():
		v.Why = "This portal admits no visitors, so the chat in the frame is off: the frame says so and links here."
	case a.Limits.Callers != hub.AnyCaller:
		v.Why = "Your limits allow calls only to people with an account, so the chat in the frame is off: the frame says so and links here."
	}
	return v
}

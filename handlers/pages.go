package handlers

import (
	"io"
	"net/http"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/request"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/static"
)

// Pages declares the routes of the portal's pages. What changes something is
// a POST, and nothing else is.
func (d *Door) Pages(r chi.Router) {
	r.Get("/", d.page(d.home))
	r.Get("/about", d.page(d.about))
	r.Get("/docs", d.page(d.manual))
	r.Get("/docs/{page}", d.page(d.manual))
	r.Get("/robots.txt", d.robots)
	r.Get("/favicon.svg", favicon)
	r.Get("/favicon.ico", favicon)

	r.Get("/agents", d.page(d.browse))
	r.Get("/agents/feed", d.page(d.agentFeed))
	r.Post("/searches", d.page(d.saveSearch))
	r.Post("/searches/{id}", d.page(d.openSearch))
	r.Post("/searches/{id}/delete", d.page(d.deleteSearch))
	r.Get("/notices", d.page(d.notices))
	r.Post("/notices", d.page(d.readNotices))
	r.Get("/agents/new", d.page(d.newAgent))
	r.Post("/agents/new", d.page(d.registerAgent))
	r.Post("/agents/new/fetch", d.page(d.fetchAgent))
	r.Post("/agents/new/card", d.page(d.cardAgent))
	r.Post("/agents/new/check", d.page(d.checkForm))
	r.Post("/agents/new/try", d.page(d.tryNew))
	r.Get("/agents/{name}", d.page(d.agent))
	r.Get("/agents/{name}/edit", d.page(d.editAgent))
	r.Post("/agents/{name}/edit", d.page(d.saveAgent))
	r.Post("/agents/{name}/edit/check", d.page(d.checkEdit))
	r.Post("/agents/{name}/edit/try", d.page(d.tryEdit))
	r.Post("/agents/{name}/connect", d.page(d.connectAgent))
	r.Get("/agents/{name}/icon", d.page(d.agentIcon))
	r.Get("/agents/{name}/versions", d.page(d.agentVersions))
	r.Get("/agents/{name}/versions/{version}", d.page(d.agentVersion))
	r.Post("/agents/{name}/rollback", d.page(d.rollbackAgent))
	r.Post("/agents/{name}/check", d.page(d.checkAgent))
	r.Get("/agents/{name}/report", d.page(d.reportForm))
	r.Post("/agents/{name}/report", d.page(d.reportAgent))
	r.Get("/agents/{name}/owner", d.page(d.ownerPage))
	r.Get("/agents/{name}/owner/calls/{task}", d.page(d.wireLog))
	r.Post("/agents/{name}/owners", d.page(d.shareAgent()))
	r.Post("/agents/{name}/owners/remove", d.page(d.unshareAgent()))
	r.Post("/agents/{name}/offer", d.page(d.offerAgent()))
	r.Post("/agents/{name}/answer", d.page(d.answerOffer))
	r.Post("/agents/{name}/prove", d.page(d.proveAgent()))
	r.Post("/agents/{name}/status", d.page(d.setStatus()))
	r.Post("/agents/{name}/delete", d.page(d.deleteAgent()))
	r.Post("/agents/{name}/sites", d.page(d.embedSites()))
	r.Get("/agents/{name}/qr.svg", d.page(d.agentQR))
	d.embedPages(r)

	r.Get("/network", d.page(d.network))
	r.Get("/network/{peer}", d.page(d.portalPage))

	r.Get("/chat", d.page(d.chats))
	r.Post("/chat", d.page(d.startChat))
	r.Get("/chat/new", d.page(d.newChat))
	d.conversationPages(r)
	r.Get("/join/{secret}", d.page(d.join))
	r.Post("/join/{secret}", d.page(d.joinChat))
	r.Get("/shared/{secret}", d.page(d.sharedChat))
	r.Get("/shared/{secret}/files/{hash}", d.page(d.sharedFile))
	r.Get("/shared/{secret}/files/{hash}/preview", d.page(d.sharedPreview))
	r.Get("/files/{hash}", d.page(d.file))
	r.Get("/files/{hash}/preview", d.page(d.filePreview))

	r.Get("/login", d.page(d.loginForm))
	r.Post("/login", d.page(d.login))
	r.Post("/logout", d.page(d.logout))
	r.Get("/signup", d.page(d.signupForm))
	r.Post("/signup", d.page(d.signup))
	r.Get("/reset", d.page(d.resetForm))
	r.Post("/reset", d.page(d.reset))
	if d.accounts.CanMail() {
		r.Post("/reset/mail", d.page(d.mailReset))
	}

	r.Get("/account", d.page(d.account))
	r.Post("/account/domains", d.page(d.proveDomain))
	r.Post("/account/domains/remove", d.page(d.removeDomain))
	r.Post("/account/tokens", d.page(d.createToken))
	r.Post("/account/tokens/{id}/revoke", d.page(d.revokeToken))
	r.Get("/account/webhooks", d.page(d.webhooks))
	r.Post("/account/webhooks", d.page(d.addWebhook))
	r.Post("/account/webhooks/{id}/test", d.page(d.testWebhook))
	r.Post("/account/webhooks/{id}/active", d.page(d.switchWebhook))
	r.Post("/account/webhooks/{id}/delete", d.page(d.deleteWebhook))
	r.Post("/account/password", d.page(d.changePassword))
	if d.accounts.CanMail() {
		r.Post("/account/email", d.page(d.setEmail))
	}
	r.Post("/account/chat", d.page(d.setPrefs))
	r.Post("/account/sessions/end", d.page(d.endSessions))

	r.Get("/admin", d.page(operatorOnly(d.overview)))
	r.Get("/admin/people", d.page(operatorOnly(d.people)))
	r.Post("/admin/people/{name}/reset", d.page(operatorOnly(d.resetPerson)))
	r.Post("/admin/people/{name}/disable", d.page(operatorOnly(d.disablePerson)))
	r.Post("/admin/people/{name}/enable", d.page(operatorOnly(d.enablePerson)))
	r.Get("/admin/invites", d.page(operatorOnly(d.invites)))
	r.Post("/admin/invites", d.page(operatorOnly(d.createInvite)))
	r.Post("/admin/invites/{id}/revoke", d.page(operatorOnly(d.revokeInvite)))
	r.Get("/admin/agents", d.page(operatorOnly(d.adminAgents)))
	r.Post("/admin/agents/{name}/withdraw", d.page(operatorOnly(d.withdrawAgent)))
	r.Post("/admin/agents/{name}/restore", d.page(operatorOnly(d.restoreAgent)))
	r.Get("/admin/reports", d.page(operatorOnly(d.reports)))
	r.Post("/admin/reports/{id}/close", d.page(operatorOnly(d.closeReport)))

	d.peerPages(r)

	r.NotFound(d.page(d.noPage))
	r.MethodNotAllowed(d.page(d.noPage))
}

func (d *Door) noPage(http.ResponseWriter, *http.Request, ident.Actor) error {
	return fault.New(fault.NotFound, "There is no such page. It may have been moved or removed.")
}

// pathName is an agent's or person's name from the path.
func pathName(r *http.Request) string { return request.PathParam(r, "name") }

// robots keeps crawlers out of what is personal or endless, and tells those
// that look for agents where the catalog is.
func (d *Door) robots(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "public, max-age=86400")
	io.WriteString(w, "User-agent: *\nDisallow: /chat\nDisallow: /join\nDisallow: /shared\nDisallow: /files\nDisallow: /account\nDisallow: /admin\nDisallow: /api/\nDisallow: /login\nDisallow: /signup\nDisallow: /reset\nDisallow: /agents?\n\nAgentmap: "+d.cfg.URL+"/.well-known/ard.json\n")
}

func favicon(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "public, max-age=3600")
	http.Redirect(w, r, static.URL("icons/mark.svg"), http.StatusFound)
}

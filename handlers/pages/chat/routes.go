package chat

import (
	"github.com/go-chi/chi/v5"

	"agentsite/handlers/request"
)

// declareRoutes declares the routes of the pages of one conversation.
func (d *Room) declareRoutes(r chi.Router) {
	r.Get("/chat/{id}", d.site.Page(request.Listing(d.conversation)))
	r.Get("/chat/{id}/rows", d.site.Page(request.Listing(d.rows)))
	r.Post("/chat/{id}", d.site.Page(d.say))
	r.Post("/chat/{id}/tool", d.site.Page(d.useTool))
	r.Post("/chat/{id}/stop", d.site.Page(d.stopChat))

	r.Get("/chat/{id}/m/{seq}", d.site.Page(d.messagePage))
	r.Post("/chat/{id}/m/{seq}/edit", d.site.Page(d.editMessage))
	r.Post("/chat/{id}/m/{seq}/ask", d.site.Page(d.askMessage))
	r.Post("/chat/{id}/m/{seq}/unsay", d.site.Page(d.unsayMessage))
	r.Post("/chat/{id}/m/{seq}/react", d.site.Page(d.reactMessage))
	r.Post("/chat/{id}/m/{seq}/again", d.site.Page(d.againMessage))
	r.Post("/chat/{id}/m/{seq}/branch", d.site.Page(d.branchMessage))

	r.Post("/chat/{id}/rename", d.site.Page(d.renameChat))
	r.Post("/chat/{id}/agent", d.site.Page(switchAgent(d)))
	r.Post("/chat/{id}/members", d.site.Page(d.inviteMember))
	r.Post("/chat/{id}/members/remove", d.site.Page(d.removeMember))
	r.Post("/chat/{id}/role", d.site.Page(d.setMemberRole))
	r.Post("/chat/{id}/pin", d.site.Page(d.pinChat))
	r.Post("/chat/{id}/archive", d.site.Page(d.archiveChat))
	r.Post("/chat/{id}/notify", d.site.Page(d.notifyChat))
	r.Post("/chat/{id}/ask-again", d.site.Page(d.askAgain))
	r.Post("/chat/{id}/leave", d.site.Page(d.leaveChat))
	r.Post("/chat/{id}/delete", d.site.Page(d.deleteChat))

	r.Get("/chat/{id}/settings", d.site.Page(d.chatSettings))
	r.Post("/chat/{id}/settings", d.site.Page(d.setChat))
	r.Post("/chat/{id}/links", d.site.Page(d.makeLink))
	r.Post("/chat/{id}/unlink", d.site.Page(d.endLink))
}

package handlers

import (
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"agentsite/internal/fault"
)

// conversationPages declares the routes of one conversation's pages.
func (d *Door) conversationPages(r chi.Router) {
	r.Get("/chat/{id}", d.page(d.conversation))
	r.Get("/chat/{id}/rows", d.page(d.rows))
	r.Post("/chat/{id}", d.page(d.say))
	r.Post("/chat/{id}/tool", d.page(d.useTool))
	r.Post("/chat/{id}/stop", d.page(d.stopChat))

	r.Get("/chat/{id}/m/{seq}", d.page(d.messagePage))
	r.Post("/chat/{id}/m/{seq}/edit", d.page(d.editMessage))
	r.Post("/chat/{id}/m/{seq}/unsay", d.page(d.unsayMessage))
	r.Post("/chat/{id}/m/{seq}/react", d.page(d.reactMessage))
	r.Post("/chat/{id}/m/{seq}/again", d.page(d.againMessage))
	r.Post("/chat/{id}/m/{seq}/branch", d.page(d.branchMessage))

	r.Post("/chat/{id}/rename", d.page(d.renameChat))
	r.Post("/chat/{id}/members", d.page(d.inviteMember))
	r.Post("/chat/{id}/members/remove", d.page(d.removeMember))
	r.Post("/chat/{id}/role", d.page(d.setMemberRole))
	r.Post("/chat/{id}/pin", d.page(d.pinChat))
	r.Post("/chat/{id}/archive", d.page(d.archiveChat))
	r.Post("/chat/{id}/notify", d.page(d.notifyChat))
	r.Post("/chat/{id}/leave", d.page(d.leaveChat))
	r.Post("/chat/{id}/delete", d.page(d.deleteChat))

	r.Get("/chat/{id}/settings", d.page(d.chatSettings))
	r.Post("/chat/{id}/settings", d.page(d.setChat))
	r.Post("/chat/{id}/links", d.page(d.makeLink))
	r.Post("/chat/{id}/unlink", d.page(d.endLink))
}

// pathSeq is the message that a path names.
func pathSeq(r *http.Request) (int64, error) {
	n, err := strconv.ParseInt(chi.URLParam(r, "seq"), 10, 64)
	if err != nil || n < 1 {
		return 0, fault.New(fault.NotFound, "There is no such message.")
	}
	return n, nil
}

// chatPath leads to a conversation, messagePath to a message in it.
func chatPath(id string) string { return "/chat/" + id }

func messagePath(id string, seq int64) string {
	n := strconv.FormatInt(seq, 10)
	return chatPath(id) + "?at=" + n + "#m" + n
}

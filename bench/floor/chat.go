package main

import (
	"context"
	"html"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/templates"
)

// chatPage serves the portal's page of a conversation: its newest 50 messages, or the 50 before the
// message in the query. Everything except the messages is prepared before the first request, and each
// message is rendered only once.
func (s *rooms) chatPage() http.HandlerFunc {
	var rendered sync.Map // templates.SafeHTML by room and seq, because a message never changes
	p := frame
	p.Title, p.Path, p.User = "bench", "/chat/floor", &templates.User{Name: "person-1"}
	of := templates.ConversationView{Title: "bench", Me: "person-1", MeKind: "person", Role: "owner", End: true, CanWrite: true, CanInvite: true, Past: "all", MaxFile: 25 << 20,
		Composer: templates.ComposerView{ClientID: "01M7X9ZBGANY5ZQJAA4FHFV8GF"}}
	for _, name := range []string{"person-0", "person-1"} {
		of.Members = append(of.Members, templates.Member{Ref: name, Title: name, Handle: name, Person: true, Me: name == of.Me, Role: "owner", Provenance: templates.Provenance{Verified: true}})
	}
	return func(w http.ResponseWriter, r *http.Request) {
		v := of
		v.ID = chi.URLParam(r, "id")
		list, err := s.before(r, v.ID)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		slices.Reverse(list)
		v.Messages = make([]templates.MessageView, 0, len(list))
		for _, m := range list {
			key := v.ID + "/" + strconv.FormatInt(m.Seq, 10)
			kept, ok := rendered.Load(key)
			if !ok {
				at := time.UnixMilli(m.At).UTC()
				name := of.Members[m.Seq%2].Handle
				var b strings.Builder
				err := templates.Message(templates.MessageView{ID: m.ID, Seq: int(m.Seq), ChatID: v.ID, Time: templates.Time{Text: at.Format("15:04"), ISO: at.Format(time.RFC3339)},
					Sender: templates.Sender{Ref: name, Title: name, Handle: name, Kind: "person", Person: true, Provenance: templates.Provenance{Verified: true}},
					Body:   templates.SafeHTML("<p>" + html.EscapeString(m.Text) + "</p>")}).Render(context.Background(), &b)
				if err != nil {
					http.Error(w, err.Error(), http.StatusInternalServerError)
					return
				}
				kept, _ = rendered.LoadOrStore(key, templates.SafeHTML(b.String()))
			}
			v.Messages = append(v.Messages, templates.MessageView{HTML: kept.(templates.SafeHTML), Seq: int(m.Seq), Mine: m.Seq%2 == 1})
		}
		render(w, r, templates.Conversation(p, v))
	}
}

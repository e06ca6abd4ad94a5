package templates

import (
	"bytes"
	"testing"

	"golang.org/x/net/html"

	"github.com/a-h/templ"
)

// TestFindPages_HaveASoundStructure checks what is kept, told and asked for,
// with long and hostile texts.
func TestFindPages_HaveASoundStructure(t *testing.T) {
	const nasty = `"><script>alert(1)</script>`
	now := at("today", "2026-05-01T10:00:00Z")
	card := AgentCard{Ref: "echo", Title: longWord}
	chat := ConversationView{ID: "01JD", Me: "ada", Composer: ComposerView{ClientID: "c"}, Members: []Member{{Ref: "tools", Title: longWord}},
		Toolboxes: []Toolbox{{Ref: "tools", Title: nasty, Tools: []ToolLink{{Name: nasty, Title: longWord, Href: "/chat/01JD?tool=x#tool"}, {Name: "b", Title: arabic, Href: "/chat/01JD?tool=b#tool"}}}}}
	asked := chat
	asked.Tool = &ToolFormView{Agent: "tools", Name: nasty, Title: nasty, Description: nasty, Error: nasty, Fields: []ToolField{
		{ID: "arg-0", Name: "arg." + nasty, Label: nasty, Hint: nasty, Value: nasty, Error: nasty, Type: "text", Required: true, MaxLength: 10},
		{ID: "arg-1", Name: "arg.b", Label: longWord, Hint: longWord, Value: "x", Error: longWord, Type: "choice", Options: []Option{{Value: nasty, Label: nasty, Selected: true}}},
		{ID: "arg-2", Name: "arg.c", Label: arabic, Hint: arabic, Error: nasty, Type: "boolean", Value: "true"},
		{ID: "arg-3", Name: "arg.d", Label: "Items", Type: "list", Required: true}, {ID: "arg-4", Name: "arg.e", Label: "Rest", Type: "json", Value: "{"},
		{ID: "arg-5", Name: "arg.f", Label: "Many", Type: "integer", Min: "1", Max: "5"}}}
	told := chat
	told.Tool = &ToolFormView{Seq: 7, Title: "Ask"}
	told.Messages = []MessageView{{ID: "1", Seq: 1, Sender: Sender{Ref: "tools", Title: nasty}, Mark: "input_required", YesNo: true, ChatID: "01JD", Time: now},
		{ID: "2", Seq: 2, Sender: Sender{Ref: "tools", Title: "Tools"}, Mark: "input_required", FormHref: "/chat/01JD?form=2#tool", ChatID: "01JD", Time: now}}
	kept := AccountView{Name: "ada", Handle: "ada@x", Offers: []OfferRow{{Card: card, From: longName, At: now}},
		Searches:   []SearchRow{{ID: "1", Title: nasty, New: 50, Most: true, FeedHref: "/agents/feed?q=x"}, {ID: "2", Title: longWord, FeedHref: "/agents/feed?q=y"}},
		Domains:    []DomainRow{{Domain: longWord, Checked: now, Failing: true}},
		OwnerToken: "agentsite-owner=x", ProofPath: "/.well-known/agentsite-owner", DomainTyped: nasty, Errors: FieldErrors{"domain": nasty}}
	for name, page := range map[string]templ.Component{
		"notices": Notices(samplePage("/notices", "Notices"), NoticesView{Unread: true, UpTo: "x", Notices: []NoticeRow{
			{Kind: "down", Text: nasty, Href: "/agents/x", At: now, Unread: true}, {Kind: "taken", Text: longWord, At: now}}}),
		"notices-none": Notices(samplePage("/notices", "Notices"), NoticesView{}),
		"tools":        Conversation(samplePage("/chat/01JD", "Tools"), chat),
		"tool":         Conversation(samplePage("/chat/01JD", "Tools"), asked),
		"questions":    Conversation(samplePage("/chat/01JD", "Tools"), told),
		"kept":         Account(samplePage("/account", "Account"), kept),
	} {
		t.Run(name, func(t *testing.T) {
			source := render(t, page)
			doc, err := html.Parse(bytes.NewReader(source))
			if err != nil {
				t.Fatal(err)
			}
			for _, problem := range check(doc) {
				t.Error(problem)
			}
			if bytes.Contains(source, []byte("<script>alert")) {
				t.Error("a text has become structure")
			}
		})
	}
}

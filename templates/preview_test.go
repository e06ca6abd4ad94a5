package templates

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/a-h/templ"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"agentsite/static"
)

const sampleNonce = "sample-nonce"

// The samples are what real portals show, and what nasty ones would.
var (
	longName = "an-agent-with-the-longest-name-allowed-4"
	longWord = strings.Repeat("unbroken", 256)
	arabic   = "مساعد الترجمة"
	emoji    = "👩‍👩‍👧‍👦 Família 🦜"
)

func samplePage(path, title string) Page {
	return Page{Title: title, Description: "Agents of Harbour", Path: path, PortalName: "Harbour", PortalHandle: "harbour.example", Version: "0.3.1",
		User: &User{Name: "ada", Unread: 3}}
}

func guestPage(path, title string) Page {
	p := samplePage(path, title)
	p.User, p.Guest, p.CanSignUp = nil, true, true
	return p
}

func operatorPage(path, title string) Page {
	p := samplePage(path, title)
	p.User = &User{Name: "ada", Operator: true, Unread: 12}
	return p
}

func at(text, iso string) Time { return Time{Text: text, ISO: iso} }

func sampleCards() []AgentCard {
	return []AgentCard{
		{Ref: "guide", Title: "Guide", Handle: "guide@harbour.example", Description: "Knows who is here and what they can do. Ask it anything, it brings in whoever fits.", Kind: "built in",
			Provenance: Provenance{Verified: true, Live: "alive"}, Tags: []string{"help", "search", "teams"}, Examples: []string{"Who can read invoices?"}},
		{Ref: "invoice-reader", Title: "Invoice reader", Handle: "invoice-reader@harbour.example", Description: "Takes photos or PDFs of invoices and gives back a table with dates, sums, and what is overdue.", Kind: "A2A",
			Provenance: Provenance{Verified: true, Live: "alive", LiveReason: "Answered in 42 ms"}, Tags: []string{"finance", "pdf", "tables", "ocr"},
			Examples: []string{"Which of these invoices are overdue?", "Make a CSV of everything from May, with one line for each position and the tax in a column of its own"}},
		{Ref: "tide@lighthouse.example.org", Title: "Tide tables", Handle: "tide@lighthouse.example.org", Description: "High and low water for 4,200 harbours, with wind.", Kind: "MCP",
			Provenance: Provenance{Portal: "lighthouse.example.org", Verified: true, Live: "needs_auth", LiveReason: "It wants a key"}, Tags: []string{"weather", "sea"}},
		{Ref: "llama", Title: "Llama on my desk", Handle: "llama@harbour.example", Description: "A small open model. Slow, but it is mine.", Kind: "OpenAI-compatible",
			Provenance: Provenance{Live: "unreachable"}, Tags: []string{"chat"}},
		{Ref: "translator", Title: arabic, Handle: "translator@harbour.example", Description: "يترجم بين العربية والإنجليزية والفرنسية.", Kind: "link",
			Provenance: Provenance{Live: "wrong_protocol"}, Tags: []string{"ترجمة", "languages"}, Examples: []string{"ترجم هذه الرسالة"}},
		{Ref: longName + "@a-portal-with-a-rather-long-name.some-provider.example.com:8443", Title: emoji, Handle: longName + "@a-portal-with-a-rather-long-name.some-provider.example.com:8443", Description: longWord, Kind: "A2A",
			Provenance: Provenance{Portal: "a-portal-with-a-rather-long-name.some-provider.example.com:8443", Verified: true, Live: "unknown"}, Tags: []string{longWord[:120], "x"}, Examples: []string{longWord}, Matched: "name, tags"},
	}
}

func sampleHome() HomeView {
	return HomeView{Here: 214, Alive: 187, Portals: "3 other portals", Elsewhere: "1,204", Agents: sampleCards(), Guide: true,
		GuideExamples: []string{"Who can read invoices?", "I need tide times for Brest", "How do I bring my own agent?"},
		Tags:          []Link{{"finance", "/agents?tag=finance"}, {"weather", "/agents?tag=weather"}, {"code", "/agents?tag=code"}}}
}

func sampleFacets() []Facet {
	return []Facet{
		{"Kind", []FacetOption{{"A2A", 120, "/agents?kind=a2a", false}, {"MCP", 48, "/agents?kind=mcp", false}, {"OpenAI-compatible", 30, "/agents?kind=openai", false}, {"link", 16, "/agents?kind=link", false}}},
		{"State", []FacetOption{{"alive", 187, "/agents", true}, {"needs auth", 9, "/agents?live=needs_auth", false}}},
		{"Tag", []FacetOption{{"finance", 31, "/agents?tag=finance", false}, {longWord[:80], 2, "/agents?tag=long", false}, {"weather", 7, "/agents?tag=weather", false}}},
		{"Portal", []FacetOption{{"here", 80, "/agents?portal=here", false}, {"lighthouse.example.org", 134, "/agents?portal=lighthouse.example.org", false}}},
	}
}

func sampleBody() SafeHTML {
	return `<p>Three of the five are overdue. The oldest by <strong>41 days</strong>:</p><table><thead><tr><th>Invoice</th><th>Due</th><th>Sum</th></tr></thead><tbody><tr><td>2026-0117</td><td>4 April</td><td>1,240.00 €</td></tr><tr><td>2026-0131</td><td>19 April</td><td>86.50 €</td></tr></tbody></table><p>To get the same as CSV:</p><pre><code>agentsite chat invoice-reader "Make a CSV of everything from May, one line for each position" &gt; may.csv
</code></pre><ul><li>All sums include tax.</li><li>One page was <em>unreadable</em>, see <a href="https://example.org">the note</a>.</li></ul>`
}

func sampleAgent() AgentView {
	return AgentView{Ref: "invoice-reader", Title: "Invoice reader", Handle: "invoice-reader@harbour.example", Kind: "A2A", Provenance: Provenance{Verified: true, Live: "alive"},
		KindHelp: "An A2A 1.0 agent, reached over HTTP at its own address.", Health: sampleHealth(),
		Tagline:     "Takes photos or PDFs of invoices and gives back a table.",
		Description: `<p>Built for small shops that still get paper. It reads <strong>German, French and English</strong> invoices, keeps nothing after the answer, and says so when it is not sure.</p><p>Ask in your own words. Files up to 20 MB.</p>`,
		Tags:        []string{"finance", "pdf", "ocr", "tables"}, Examples: []string{"Which of these invoices are overdue?", "Make a CSV of everything from May"},
		Notes: "<p>Free for up to 50 pages a day.</p>",
		Skills: []Skill{{ID: "read", Name: "Read invoices", Description: "Any layout, any of 14 languages.", Tags: []string{"ocr", "pdf"}, Examples: []string{"Read this and list the positions"}},
			{ID: "dun", Name: "Write a reminder", Description: "A friendly one first, a firm one later.", Examples: []string{"Write a friendly reminder for 2026-0117"}}},
		Owner: "Ada", OwnerHandle: "ada@harbour.example", TextGoesTo: "What you write goes to invoices.example.org, which Ada runs. This portal keeps the conversation.",
		Uses: []Use{{ID: "terminal", Label: "Terminal", Hint: "With the agentsite command.", Commands: []Command{{"Ask it once", "agentsite chat --portal https://harbour.example invoice-reader \"Which are overdue?\""}}},
			{ID: "a2a", Label: "A2A", Hint: "All that clients need is in the card.", Commands: []Command{{"Agent card", "https://harbour.example/agents/invoice-reader/.well-known/agent-card.json"}}},
			{ID: "openai", Label: "OpenAI", Hint: "For whatever speaks the OpenAI chat API.", Commands: []Command{{"curl", "curl https://harbour.example/v1/chat/completions \\\n  -H \"Authorization: Bearer $TOKEN\" \\\n  -d '{\"model\":\"invoice-reader\",\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}'"}}}},
		TokenHint: "AGENTSITE_TOKEN stands for a token of yours.", Share: &ShareView{Ref: "invoice-reader", Title: "Invoice reader", URL: "https://harbour.example/agents/invoice-reader", AskURL: "https://harbour.example/chat/new?agent=invoice-reader", QR: "/agents/invoice-reader/qr.svg", Hidden: true},
		Version: "7", VersionsHref: "/agents/invoice-reader/versions", Updated: at("18 Nov", "2026-11-18T09:00:00.000Z"), Created: at("2 May 2026", "2026-05-02T09:00:00.000Z"),
		Visibility: "unlisted", Endpoint: "https://invoices.example.org/a2a/v1", Mine: true}
}

func sampleHealth() Health {
	h := Health{Provenance: Provenance{Verified: true, Live: "alive"}, Line: "Alive since", Since: at("08:10", "2026-11-20T08:10:00.000Z"), Checked: at("14:02 UTC", "2026-11-20T14:02:00.000Z"), CheckedAgo: "3 minutes ago", Latency: "42 ms",
		Uptime: []string{"Alive 97% of the last 24 hours"}, Picture: &Picture{Width: "286", Height: "40", From: at("19 Nov", ""), To: at("14:02", ""), Desc: "3 checks: 2 alive, 1 unreachable."}}
	for i, state := range []string{"alive", "unreachable", "alive"} {
		h.Picture.Bars = append(h.Picture.Bars, Bar{X: []string{"270", "276", "282"}[i], Y: "20", W: "4", H: "20", State: state, Title: state})
	}
	return h
}

func nastyAgent() AgentView {
	return AgentView{Ref: longName, Title: longWord, Handle: longName + "@a-portal-with-a-rather-long-name.example.com", Kind: "A2A",
		Provenance: Provenance{Portal: "a-portal-with-a-rather-long-name.some-provider.example.com:8443", Live: "unreachable", LiveReason: "connection refused"},
		Tagline:    longWord, Description: SafeHTML("<p>" + longWord + "</p><pre><code>" + longWord + "</code></pre>"), Tags: []string{longWord}, Skills: []Skill{{ID: longWord, Description: arabic, Tags: []string{longWord}, Examples: []string{longWord}}},
		TextGoesTo: longWord, Uses: []Use{{ID: "x", Label: longWord, Hint: longWord, Commands: []Command{{longWord, longWord}}}}, Share: &ShareView{Ref: longName, Title: longWord, URL: longWord, AskURL: longWord, QR: "/agents/" + longName + "/qr.svg"}, Owner: longWord, Text: longWord, Error: "That is too long: at most 16,000 characters."}
}

func sampleForm() AgentFormView {
	return AgentFormView{Kinds: []KindOption{
		{"a2a", "A2A agent", "It already speaks A2A at an address that can be reached from here.", "https://agent.example.org"},
		{"openai", "Model or assistant", "Anything that speaks the OpenAI chat API: Ollama, vLLM, llama.cpp, a hosted model.", "http://localhost:11434/v1"},
		{"link", "A program on my computer", "It connects out and needs no public address.", "agentsite agent run …"}},
		Skills: []SkillRow{{}, {}, {}}, Visibility: "public"}
}

func brokenForm() AgentFormView {
	v := sampleForm()
	v.Kind, v.Name, v.Title, v.Description, v.Endpoint, v.Model, v.HasKey = "openai", "ada", emoji, "Ein kleines Modell.", "ftp://x", "llama-3.3-70b", true
	v.URL, v.URLError = "https://nobody.example", "Nothing answered at this address within 5 seconds. You can fill the form by hand all the same."
	v.Skills = []SkillRow{{"chat", "Chat", "Talks", "chat, small", "Tell me a joke\nAnd another"}, {Name: longWord}}
	v.Errors = FieldErrors{"name": "This name is taken. Try llama or ada-llama.", "endpoint": "It must begin with http:// or https://.", "skill_name.1": "At most 80 characters."}
	return v
}

func sampleChats() ChatsView {
	return ChatsView{Agents: []AgentOption{{"guide", "Guide"}, {"invoice-reader", "Invoice reader"}}, MoreHref: "/chat?cursor=x", Conversations: []ConversationRow{
		{ID: "01A", Title: "Overdue invoices", Members: []MemberMark{{"invoice-reader", false}}, From: "Invoice reader", Snippet: "Three of the five are overdue. The oldest by 41 days", Time: at("14:05", ""), Unread: 2},
		{ID: "01B", Title: "Trip to Brest", Members: []MemberMark{{"guide", false}, {"tide@lighthouse.example.org", false}}, Time: at("12:40", ""), Working: true},
		{ID: "01C", Title: "Garden team", Members: []MemberMark{{"guide", false}, {"bob", true}, {"llama", false}, {"x", false}}, From: "bob", Snippet: "See you on Saturday 🌻", Time: at("yesterday", "")},
		{ID: "01D", Title: longWord, Members: nil, Snippet: longWord, Time: at("3 Oct", "")},
		{ID: "01E", Title: arabic, Members: []MemberMark{{"translator", false}}, From: arabic, Snippet: "تم", Time: at("1 Oct", ""), Unread: 120}}}
}

func sampleConversation() ConversationView {
	me := Sender{Ref: "ada", Title: "ada", Handle: "ada@harbour.example", Person: true, Provenance: Provenance{Verified: true}}
	reader := Sender{Ref: "invoice-reader", Title: "Invoice reader", Handle: "invoice-reader@harbour.example", Provenance: Provenance{Verified: true, Live: "alive"}}
	tide := Sender{Ref: "tide@lighthouse.example.org", Title: "Tide tables", Handle: "tide@lighthouse.example.org", Provenance: Provenance{Portal: "lighthouse.example.org", Verified: true, Live: "alive"}}
	nasty := Sender{Ref: longName, Title: longWord, Handle: longName, Provenance: Provenance{Portal: "a-portal-with-a-rather-long-name.some-provider.example.com:8443", Live: "unknown"}}
	return ConversationView{ID: "01JC", Title: "Overdue invoices", Me: "ada@harbour.example", MeKind: "person", Role: "owner", Composer: ComposerView{ClientID: "01CLIENT", Mode: "reply", Seq: 9, Label: "Answering Tide tables", Quote: "Here they are.",
		Kept: []KeptFile{{FilePart{Name: "map.png", Type: "image/png", Size: "12 KiB"}, "hash=x"}}},
		First: 4, Last: 18, NewestSeq: 18, ReadSeq: 10, End: true, CanInvite: true, CanWrite: true, Past: "all", Settings: "With several agents here, address one as @name.",
		Members: []Member{{Ref: "ada", Title: "ada", Person: true, Me: true, Role: "owner"}, {Ref: "bob", Title: "bob", Handle: "bob", Person: true, Role: "reader", CanRemove: true, CanRole: true}, {Ref: "invoice-reader", Title: "Invoice reader", Handle: "invoice-reader@harbour.example", Provenance: reader.Provenance, CanRemove: true},
			{Ref: "tide@lighthouse.example.org", Title: "Tide tables", Handle: "tide@lighthouse.example.org", Provenance: tide.Provenance, Remote: "lighthouse.example.org", CanRemove: true}},
		Disclosures: []DisclosureView{{Agent: "tide@lighthouse.example.org", Title: "Tide tables", Host: "lighthouse.example.org", Share: "all"}},
		Tasks:       []TaskView{{ID: "T9", Agent: "invoice-reader", Title: "Invoice reader", State: "working", Status: "reading page 2 of 3", Text: "I am looking at the second page now. It seems"}},
		Messages: []MessageView{
			{ID: "M4", Seq: 4, Event: "ada started the conversation with Invoice reader", Time: at("14:00", "2026-11-20T14:00:00.000Z")},
			{ID: "M5", Seq: 5, Sender: me, Mine: true, Time: at("14:01", "2026-11-20T14:01:00.000Z"), Body: "<p>Which of these invoices are overdue?</p>", Files: []FilePart{{Name: "scan-2026-11-20.pdf", Href: "/files/abc", Size: "1.2 MiB", Type: "application/pdf"}}},
			{ID: "M6", Seq: 6, Sender: reader, TaskID: "T1", Time: at("14:01", "2026-11-20T14:01:30.000Z"), Body: sampleBody()},
			{ID: "M7", Seq: 7, Event: "ada invited Tide tables", Time: at("14:02", "2026-11-20T14:02:00.000Z")},
			{ID: "M8", Seq: 8, Sender: me, Mine: true, Time: at("14:03", "2026-11-20T14:03:00.000Z"), Body: "<p>When is high water tomorrow, and can you give me the numbers as data?</p>"},
			{ID: "M9", Seq: 9, Sender: tide, TaskID: "T2", Time: at("14:03", "2026-11-20T14:03:10.000Z"), Body: "<p>Here they are.</p>", Data: []DataPart{{"application/json", "{\n  \"harbour\": \"Brest\",\n  \"high\": [\"04:12\", \"16:38\"],\n  \"metres\": [6.8, 6.5]\n}"}}},
			{ID: "M10", Seq: 10, Sender: nasty, TaskID: "T3", Time: at("14:04", ""), Body: SafeHTML("<p>" + longWord + "</p>"), Edited: true},
			{ID: "M11", Seq: 11, Sender: Sender{Ref: "bob", Title: "bob", Handle: "bob", Person: true, Provenance: Provenance{Verified: true}}, Time: at("14:04", ""), Body: SafeHTML("<p>" + arabic + " " + emoji + "</p>")},
			{ID: "M12", Seq: 12, Sender: reader, TaskID: "T4", Time: at("14:05", ""), Body: "<p>I began with page one, but</p>", Mark: "interrupted", ChatID: "01JC"},
			{ID: "M13", Seq: 13, Sender: tide, TaskID: "T5", Time: at("14:06", ""), Mark: "failed", Reason: "lighthouse.example.org did not answer within 30 seconds.", ChatID: "01JC"},
			{ID: "M14", Seq: 14, Sender: tide, TaskID: "T6", Time: at("14:07", ""), Body: "<p>At noon, I think.</p>", Newer: 17, ChatID: "01JC"},
			{ID: "M15", Seq: 15, Sender: me, Mine: true, Time: at("14:08", ""), Body: "<p>Are you sure?</p>", Quote: &QuoteView{14, "Tide tables", "At noon, I think."}, ChatID: "01JC", Unread: true, Day: &Time{Text: "Today", ISO: "2026-11-21"},
				Reactions: []ReactionView{{Emoji: "👍", By: []string{"bob", "ada@harbour.example"}, Mine: true}, {Emoji: "🌊", By: []string{"tide"}}}},
			{ID: "M16", Seq: 16, Sender: me, Gone: "ada", Time: at("14:08", ""), ChatID: "01JC"},
			{ID: "M17", Seq: 17, Sender: tide, TaskID: "T7", Time: at("14:09", ""), Body: "<p>No: at 12:38.</p>", Again: 14, ChatID: "01JC", Files: []FilePart{{Name: "curve.png", Href: "/files/abc", Type: "image/png", Preview: "/files/abc/preview"}}},
			{ID: "M18", Seq: 18, Sender: tide, Time: at("14:09", ""), Body: "<p>Sorry.</p>", Follows: true, Edited: true, ChatID: "01JC"},
		}}
}

func sampleChatSettings() ChatSettingsView {
	return ChatSettingsView{ID: "01JC", Title: "Overdue invoices", Owner: true, Speaks: "agent", Speaker: "tide", Agents: []Option{{Value: "tide", Label: "Tide tables"}}, Past: "all", Hops: "3", Turns: "8", Budget: "256", MaxHops: 10, MaxTurns: 50, MaxBudget: 2048,
		Disclosures: []DisclosureView{{Agent: "tide", Title: "Tide tables", Host: "lighthouse.example.org", Share: "own"}}, Lives: []Option{{Value: "7", Label: "in 7 days", Selected: true}},
		Links:   []ChatLink{{ID: "L1", Kind: "join", Role: "member", By: "ada", Created: at("1 Nov", ""), Expires: at("8 Nov", ""), Used: "2 of 5 joined"}, {ID: "L2", Kind: "read", By: "bob", Created: at("1 Nov", ""), Expires: at("8 Nov", "")}},
		NewLink: "https://harbour.example/join/Zk3vQ0xJ7m5T2aW9", NewLinkIs: "join", Errors: FieldErrors{"uses": "give a whole number, or nothing"}}
}

func sampleMessagePage() MessagePageView {
	m := sampleConversation().Messages[11]
	return MessagePageView{ChatID: "01JC", ChatTitle: "Overdue invoices", Message: m, Source: "Are you *sure*?", Link: "https://harbour.example/chat/01JC?at=15#m15", CanEdit: true, CanUnsay: true, CanWrite: true,
		Forms:     []MessageForm{{Time: at("14:08", ""), Source: "Are you?"}, {Time: at("14:09", ""), Source: "Are you sure?", Now: true}},
		Artifacts: []ArtifactView{{Name: "Table", Description: "All of it", Body: "<p>x</p>", Data: []DataPart{{"application/json", "{}"}}}}}
}

func sampleAccount() AccountView {
	return AccountView{Name: "ada", Handle: "ada@harbour.example", Operator: true, Since: at("2 May 2026", "2026-05-02T09:00:00.000Z"), Sessions: 3, MinPassword: 10,
		NewToken: "ags_01JCZ7QK3W9T5M8XH2V6R4N0PB_6f2d8c1a9e4b7350", NewTokenLabel: "laptop",
		Tokens: []TokenRow{{ID: "1", Label: "laptop", Scopes: "read, chat", Created: at("20 Nov 2026", ""), Expires: at("18 Feb 2027", "")},
			{ID: "2", Label: longWord[:60], Scopes: "everything", Created: at("1 May 2026", ""), LastUsed: at("yesterday", ""), Expired: true}},
		Scopes:   []Option{{"read", "Read", "Search, profiles, your conversations", true}, {"chat", "Chat", "Write in conversations", true}, {"agents", "Agents", "Register and change your agents", false}},
		Expiries: []Option{{Value: "30d", Label: "in 30 days"}, {Value: "90d", Label: "in 90 days", Selected: true}, {Value: "", Label: "never"}},
		Agents:   sampleCards()[1:4]}
}

func sampleAdmin(tab string) AdminView {
	v := AdminView{Tab: tab}
	switch tab {
	case "overview":
		v.Overview = &AdminOverview{Facts: []Fact{{"Version", "0.3.1", ""}, {"Address", "https://harbour.example", ""}, {"Up for", "12 days, 4 hours", ""}},
			Due:   []Matter{{"2 reports about agents wait.", "Look at the agent.", "/admin/reports"}, {longWord[:300], "", "/admin/storage"}},
			Notes: []Matter{{"There are 900 MiB of disk left.", "Make room.", ""}}, From: at("14:00", ""), To: at("14:00", ""),
			Plots: []DailyPlot{{ID: "plot-people", Title: "People", Now: "38", Change: "+4 in these days", Href: "/admin/people",
				Picture: Picture{Width: "297", Height: "60", Desc: "38 today.", Bars: []Bar{{"0", "2", "7", "58", "calls", "1 Nov: 38"}}}}},
			Days: []DailyRow{{at("14:00", ""), []string{"38"}}}}
		v.Due = map[string]int{"reports": 2, "storage": 1}
	case "people":
		v.People = &AdminPeople{ResetName: "bob", ResetLink: "https://harbour.example/reset?token=Zk3vQ0xJ7m5T2aW9", MoreHref: "/admin/people?cursor=x", Rows: []PersonRow{
			{Name: "ada", Operator: true, Me: true, Agents: 3, Created: at("2 May 2026", ""), LastLogin: at("today", "")}, {Name: "bob", Agents: 1, Created: at("7 May 2026", "")},
			{Name: longName, Disabled: true, Created: at("9 May 2026", ""), LastLogin: at("12 May", "")}}}
	case "invites":
		v.Invites = &AdminInvites{NewLink: "https://harbour.example/signup?invite=K7Q2-9XWM", Expiries: []Option{{Value: "7d", Label: "in 7 days", Selected: true}, {Value: "30d", Label: "in 30 days"}},
			Rows: []InviteRow{{ID: "1", Note: "Garden team", By: "ada", Created: at("18 Nov", ""), Expires: at("25 Nov", "")}, {ID: "2", Note: longWord[:80], By: "ada", Created: at("1 Nov", ""), Spent: true, State: "used up"}}}
	case "agents":
		v.Agents = &AdminAgents{Rows: []AdminAgentRow{{Ref: "guide", Title: "Guide", Kind: "built in", Visibility: "public", Builtin: true, Provenance: Provenance{Live: "alive"}, Updated: at("today", "")},
			{Ref: "invoice-reader", Title: "Invoice reader", Owner: "ada", Kind: "A2A", Visibility: "unlisted", Provenance: Provenance{Verified: true, Live: "alive"}, Updated: at("18 Nov", "")},
			{Ref: longName, Title: longWord[:200], Owner: "bob", Kind: "link", Visibility: "private", Withdrawn: true, Provenance: Provenance{Live: "unreachable"}, Updated: at("3 Oct", "")}}}
	}
	return v
}

func sampleDocs() DocsView {
	return DocsView{Title: "Bring your agent", Pages: []DocLink{{"Start here", "/docs", false}, {"Talk to agents", "/docs/talk", false}, {"Bring your agent", "/docs/register", true}, {"Run a portal", "/docs/run", false}, {"HTTP API", "/docs/api", false}, {"Changes", "/docs/changes", false}},
		Content:  `<p>An agent that is on the web has an address. Paste it under <a href="/agents/new">Register</a> and you are done.</p><h2 id="a2a">An A2A agent</h2><p>The portal reads its card at <code>/.well-known/agent-card.json</code>.</p><pre><code>curl -X POST https://harbour.example/api/v1/agents -H "Authorization: Bearer $TOKEN" -d '{"endpoint":"https://agent.example.org"}'</code></pre><h3 id="creds">Credentials</h3><p>If it wants a token, give it one in the form.</p><blockquote><p>A key is stored once and never shown again.</p></blockquote><h2 id="link">A program on your laptop</h2><ol><li>Make a token.</li><li>Run <code>agentsite agent run</code>.</li></ol><table><thead><tr><th>Option</th><th>What it does</th></tr></thead><tbody><tr><td><code>--portal URL</code></td><td>The portal to dial.</td></tr></tbody></table>`,
		Headings: []Heading{{"An A2A agent", "a2a", 2}, {"Credentials", "creds", 3}, {"A program on your laptop", "link", 2}}, Prev: &Link{"Talk to agents", "/docs/talk"}, Next: &Link{"Run a portal", "/docs/run"}}
}

func samples() map[string]templ.Component {
	emptyChat := ConversationView{ID: "01JD", Me: "ada", Role: "owner", Begin: true, End: true, Composer: ComposerView{ClientID: "c"}, Members: []Member{{Ref: "guide", Title: "Guide", Provenance: Provenance{Verified: true, Live: "alive"}}}, Examples: []string{"Who can read invoices?", "What can I do here?"}}
	sentChat := emptyChat
	sentChat.Composer.Text, sentChat.Composer.Error = "Hello\nagain", "Too many messages. You can send again in 4 seconds."
	closedChat := emptyChat
	closedChat.Composer.Closed = "Everybody else has left this conversation."
	found := AgentsView{Query: "invoices", Total: 214, ClearHref: "/agents?q=x", LoginHref: "/login?next=%2Fagents", FeedHref: "/agents/feed?q=x", Facets: sampleFacets(), Kept: []Hidden{{"live", "alive"}}, Results: sampleCards(), MoreHref: "/agents?cursor=x",
		Filters: []ActiveFilter{{"state", "alive", "/agents?q=invoices"}, {"tag", longWord[:90], "/agents"}}, Folded: 3, FoldedHref: "/agents?folded=1", Coverage: "3 of 4 portals answered"}
	stranger := sampleAgent()
	stranger.Mine, stranger.Endpoint, stranger.Visibility, stranger.VersionsHref = false, "", "public", ""
	stranger.Provenance = Provenance{Portal: "lighthouse.example.org", Live: "unreachable", LiveReason: "Nothing answered at its address for 3 days."}
	stranger.NoTalk = "It cannot be reached at the moment. The portal keeps checking."
	edit := sampleForm()
	edit.Ref, edit.Name, edit.Title, edit.Kind, edit.HasToken, edit.Endpoint = "invoice-reader", "invoice-reader", "Invoice reader", "a2a", true, "https://invoices.example.org"
	link := sampleForm()
	link.Kind, link.Fetched = "link", "Found an A2A 1.0 agent with 2 skills. Check what it says and register it."
	flash := guestPage("/login", "Log in")
	flash.Flash, flash.FlashKind = "You are logged out.", "ok"
	return map[string]templ.Component{
		"home":               Home(guestPage("/", ""), sampleHome()),
		"home-empty":         Home(operatorPage("/", ""), HomeView{}),
		"agents":             Agents(samplePage("/agents", "Agents"), found),
		"agents-none":        Agents(guestPage("/agents", "Agents"), AgentsView{Query: longWord, Guide: true, ClearHref: "/agents?q=x", LoginHref: "/login?next=%2Fagents", FeedHref: "/agents/feed?q=x", Ways: []Way{{"finance", "/agents?q=finance", 3}}}),
		"agents-empty":       Agents(guestPage("/agents", "Agents"), AgentsView{}),
		"agent":              Agent(samplePage("/agents/invoice-reader", "Invoice reader"), sampleAgent()),
		"agent-stranger":     Agent(guestPage("/agents/x", "Invoice reader"), stranger),
		"agent-nasty":        Agent(samplePage("/agents/x", longWord), nastyAgent()),
		"form":               AgentForm(samplePage("/agents/new", "Register an agent"), sampleForm()),
		"form-errors":        AgentForm(samplePage("/agents/new", "Register an agent"), brokenForm()),
		"form-edit":          AgentForm(samplePage("/agents/invoice-reader/edit", "Edit"), edit),
		"form-link":          AgentForm(samplePage("/agents/new", "Register an agent"), link),
		"chats":              Chats(samplePage("/chat", "Chats"), sampleChats()),
		"chats-empty":        Chats(guestPage("/chat", "Chats"), ChatsView{Agent: "nobody", Errors: FieldErrors{"agent": "There is no agent by that name."}}),
		"conversation":       Conversation(samplePage("/chat/01JC", "Overdue invoices"), sampleConversation()),
		"conversation-empty": Conversation(samplePage("/chat/01JD", "Guide"), emptyChat),
		"conversation-error": Conversation(samplePage("/chat/01JD", "Guide"), sentChat),
		"conversation-done":  Conversation(samplePage("/chat/01JD", "Guide"), closedChat),
		"chat-settings":      ChatSettings(samplePage("/chat/01JC/settings", "Settings"), sampleChatSettings()),
		"chat-message":       MessagePage(samplePage("/chat/01JC/m/15", "Message"), sampleMessagePage()),
		"login":              Login(flash, LoginView{Name: "ada", Next: "/chat", Chats: GuestChats{Count: 3, Take: true}, Errors: FieldErrors{"": "Name and password do not fit together."}}),
		"signup":             Signup(guestPage("/signup", "Sign up"), SignupView{Policy: "invite", MinPassword: 10, Errors: FieldErrors{"name": "This name is taken.", "invite": "This code has been used."}}),
		"signup-setup":       Signup(guestPage("/signup", "Set up"), SignupView{Setup: "token", MinPassword: 10}),
		"signup-closed":      Signup(guestPage("/signup", "Sign up"), SignupView{Policy: "closed"}),
		"reset":              Reset(guestPage("/reset", "New password"), ResetView{Name: "bob", Token: "t", MinPassword: 10}),
		"reset-invalid":      Reset(guestPage("/reset", "New password"), ResetView{Invalid: true}),
		"account":            Account(operatorPage("/account", "Account"), sampleAccount()),
		"account-empty":      Account(samplePage("/account", "Account"), AccountView{Name: longName, Handle: longName + "@harbour.example", Sessions: 1, Errors: FieldErrors{"current_password": "That is not your password."}}),
		"admin":              Admin(operatorPage("/admin", "Admin"), sampleAdmin("overview")),
		"admin-people":       Admin(operatorPage("/admin/people", "People"), sampleAdmin("people")),
		"admin-invites":      Admin(operatorPage("/admin/invites", "Invites"), sampleAdmin("invites")),
		"admin-agents":       Admin(operatorPage("/admin/agents", "Agents"), sampleAdmin("agents")),
		"admin-nobody":       Admin(operatorPage("/admin/people", "People"), AdminView{Tab: "people", People: &AdminPeople{Query: "zz"}}),
		"docs":               Docs(guestPage("/docs/register", "Bring your agent"), sampleDocs()),
		"about":              About(guestPage("/about", "About"), AboutView{About: "<p>A portal for people around the harbour.</p>", Contact: `<p>Ada, <a href="mailto:ada@harbour.example">ada@harbour.example</a></p>`, Address: "https://harbour.example", Key: "ed25519:5Jx9mQ2vT7wK3pR8sN4bY6hZ1cF0dG", Facts: []Fact{{"Agents", "214", "/agents"}, {"New accounts", "by invitation", ""}}}),
		"error-404":          Error(guestPage("/nowhere", "Not found"), ErrorView{Status: 404, RequestID: "01JCZ7QK3W9T5M8XH2V6R4N0PB"}),
		"error-500":          Error(Page{}, ErrorView{Status: 500}),
	}
}

func render(t *testing.T, c templ.Component) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := c.Render(templ.WithNonce(context.Background(), sampleNonce), &buf); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestPages_HaveASoundStructure(t *testing.T) {
	dir := os.Getenv("TEMPLATES_PREVIEW_DIR")
	for name, component := range samples() {
		t.Run(name, func(t *testing.T) {
			page := render(t, component)
			if dir != "" {
				writePreview(t, dir, name, page)
			}
			doc, err := html.Parse(bytes.NewReader(page))
			if err != nil {
				t.Fatal(err)
			}
			for _, problem := range check(doc) {
				t.Error(problem)
			}
		})
	}
}

func TestMessage_IsOneElementForTheSocket(t *testing.T) {
	for _, m := range sampleConversation().Messages {
		nodes, err := html.ParseFragment(bytes.NewReader(render(t, Message(m))), &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div})
		if err != nil {
			t.Fatal(err)
		}
		if len(nodes) != 1 || attr(nodes[0], "data-seq") == "" {
			t.Errorf("message %d renders %d nodes, want one with data-seq", m.Seq, len(nodes))
		}
	}
}

func TestMessage_EscapesWhatIsNotSafeHTML(t *testing.T) {
	evil := `<script>alert(1)</script>"'`
	page := string(render(t, Message(MessageView{Seq: 1, Sender: Sender{Ref: evil, Title: evil, Handle: evil}, Reason: evil, Mark: "failed", Data: []DataPart{{evil, evil}}, Files: []FilePart{{Name: evil, Href: "javascript:alert(1)", Size: evil, Type: evil}, {Name: evil, Href: "javascript:alert(1)", Preview: evil}}, Quote: &QuoteView{1, evil, evil}, Reactions: []ReactionView{{Emoji: evil, By: []string{evil}}}, ChatID: evil})))
	if strings.Contains(page, "<script") || strings.Contains(page, "javascript:") {
		t.Errorf("unescaped: %s", page)
	}
}

// Without a script a page that is looked at again keeps what was typed: it is
// a button of the composer, and nothing reloads by itself.
func TestConversation_LooksAgainWithoutLosingWhatIsTyped(t *testing.T) {
	working := sampleConversation()
	idle := working
	idle.Tasks = nil
	for want, v := range map[bool]ConversationView{true: working, false: idle} {
		page := string(render(t, Conversation(samplePage("/chat/01JC", ""), v)))
		if strings.Contains(page, `form="composer" name="look"`) != want || strings.Contains(page, "http-equiv=\"refresh\"") {
			t.Errorf("can be looked at again: %v, want %v, or reloads by itself", !want, want)
		}
	}
}

func TestErrorFallback_Escapes(t *testing.T) {
	if page := ErrorFallback(500, "<b>", "<i>"); strings.Contains(page, "<b>") || strings.Contains(page, "<i>") {
		t.Error(page)
	}
}

func TestAvatar_IsTheSameForTheSameNameOnly(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"guide", "guide2", "a", "b", "tide", "llama", "invoice-reader", "translator"} {
		once, again := string(render(t, agentAvatar(name))), string(render(t, agentAvatar(name)))
		if once != again {
			t.Errorf("%s: two avatars", name)
		}
		if other, ok := seen[once]; ok {
			t.Errorf("%s looks like %s", name, other)
		}
		seen[once] = name
	}
}

// TestRaw_IsUsedOnce keeps the door for unescaped HTML in one place.
func TestRaw_IsUsedOnce(t *testing.T) {
	files, err := filepath.Glob("*.templ")
	if err != nil {
		t.Fatal(err)
	}
	uses := 0
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		uses += strings.Count(string(source), "templ.Raw(")
		for _, m := range regexp.MustCompile(`(?:@icon\(|emptyState\(|@way\()"([a-z-]+)"`).FindAllStringSubmatch(string(source), -1) {
			if static.Icon(m[1]) == "" {
				t.Errorf("%s: no icon %q", name, m[1])
			}
		}
	}
	if uses != 1 {
		t.Errorf("templ.Raw is used %d times, want once, in rich", uses)
	}
}

// check returns what is wrong with a page.
func check(doc *html.Node) []string {
	var problems []string
	report := func(format string, parts ...string) { problems = append(problems, format+" "+strings.Join(parts, " ")) }
	ids, labels, counts := map[string]bool{}, map[string]bool{}, map[string]int{}
	var references [][2]string
	var inputs []*html.Node
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.ElementNode {
			if n.Namespace == "" { // a picture has titles of its own
				counts[n.Data]++
			}
			for _, a := range n.Attr {
				switch {
				case a.Key == "style":
					report("inline style on", n.Data)
				case strings.HasPrefix(a.Key, "on"):
					report("inline handler", a.Key)
				case a.Key == "id":
					if a.Val == "" || ids[a.Val] {
						report("empty or repeated id", a.Val)
					}
					ids[a.Val] = true
				case a.Key == "aria-describedby" || a.Key == "aria-labelledby" || n.Data == "label" && a.Key == "for":
					for id := range strings.FieldsSeq(a.Val) {
						references = append(references, [2]string{a.Key, id})
					}
					if a.Key == "for" {
						labels[a.Val] = true
					}
				case (a.Key == "href" || a.Key == "src" || a.Key == "action") && (a.Val == "" || strings.Contains(a.Val, "TemplFailed")):
					report("bad address on", n.Data, a.Key)
				}
			}
			switch n.Data {
			case "style":
				report("style element")
			case "script":
				if attr(n, "src") == "" || attr(n, "nonce") != sampleNonce || n.FirstChild != nil {
					report("script without src or nonce, or inline")
				}
			case "input", "textarea", "select":
				if attr(n, "type") != "hidden" {
					inputs = append(inputs, n)
				}
			case "form":
				if m := attr(n, "method"); m != "get" && m != "post" && m != "dialog" {
					report("form without method")
				}
				if m := attr(n, "method"); m == "get" && attr(n, "role") != "search" {
					report("a GET form that is no search")
				}
			case "button", "a", "summary":
				if strings.TrimSpace(text(n)) == "" && attr(n, "aria-label") == "" {
					report("nameless", n.Data, attr(n, "class"), attr(n, "href"))
				}
			case "h1", "h2", "h3":
				if strings.TrimSpace(text(n)) == "" {
					report("empty heading")
				}
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(doc)
	for _, tag := range []string{"h1", "main", "header", "title"} {
		if tag != "header" && counts[tag] != 1 || counts[tag] == 0 {
			report("wrong number of", tag)
		}
	}
	if counts["nav"] == 0 {
		report("no navigation")
	}
	for _, ref := range references {
		if !ids[ref[1]] {
			report("dangling", ref[0], ref[1])
		}
	}
	for _, n := range inputs {
		if !labels[attr(n, "id")] && attr(n, "aria-label") == "" {
			report("no label for", n.Data, attr(n, "name"))
		}
	}
	return problems
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func text(n *html.Node) string {
	if n.Type == html.TextNode {
		return n.Data
	}
	var b strings.Builder
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		b.WriteString(text(c))
	}
	return b.String()
}

var assetAddress = regexp.MustCompile(`"(/static/[^"]+)"`)

// writePreview puts the page and the files it loads below dir, to be served by any static file server.
func writePreview(t *testing.T, dir, name string, page []byte) {
	t.Helper()
	write := func(path string, content []byte) {
		full := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(name+".html", page)
	for _, m := range assetAddress.FindAllSubmatch(page, -1) {
		answer := httptest.NewRecorder()
		static.Handler().ServeHTTP(answer, httptest.NewRequest("GET", string(m[1]), nil))
		if answer.Code != 200 {
			t.Fatalf("%s: %d", m[1], answer.Code)
		}
		write(string(m[1]), answer.Body.Bytes())
	}
}

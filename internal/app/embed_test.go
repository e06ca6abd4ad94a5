package app_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// framed is somebody who talks to an agent in a frame on another site.
type framed struct {
	*apptest.Client
	t             *testing.T
	agent, secret string
	conversation  string
}

func (f *framed) as(r *http.Request) {
	if f.secret != "" {
		r.Header.Set("Agentsite-Visitor", f.secret)
	}
}

// say asks the agent, and keeps who they became by it.
func (f *framed) say(text, key string, want int) apptest.Answer {
	f.t.Helper()
	a := f.Must(http.MethodPost, "/agents/"+f.agent+"/embed/messages", map[string]string{"text": text, "client_id": key, "conversation": f.conversation}, want, f.as)
	if s := a.Header.Get("Agentsite-Visitor"); s != "" {
		f.secret = s
	}
	if a.Status == http.StatusOK {
		var out struct{ Conversation string }
		if err := json.Unmarshal([]byte(a.Body), &out); err != nil || out.Conversation == "" {
			f.t.Fatalf("%v in %s", err, a.Body)
		}
		f.conversation = out.Conversation
	}
	return a
}

// frameEvent is what the frame's stream tells.
type frameEvent struct {
	Type, HTML, Text, State string
	Seq                     int64
	TaskID                  string `json:"task_id"`
	Mine                    bool
}

// follow reads the stream after a message until done says so.
func (f *framed) follow(after string, done func(frameEvent) bool) (all []frameEvent) {
	f.t.Helper()
	req := f.Request(f.t.Context(), http.MethodGet, "/agents/"+f.agent+"/embed/live?"+url.Values{"conversation": {f.conversation}, "after": {after}}.Encode(), nil)
	f.as(req)
	resp, err := f.HTTP.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		f.t.Fatalf("the stream: %s", resp.Status)
	}
	for in := bufio.NewScanner(resp.Body); in.Scan(); {
		data, ok := strings.CutPrefix(in.Text(), "data: ")
		if !ok {
			continue
		}
		var e frameEvent
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			f.t.Fatal(err)
		}
		if all = append(all, e); done(e) {
			return all
		}
	}
	f.t.Fatalf("the stream ends with %+v", all)
	return nil
}

// shownBy lets sites show an agent.
func shownBy(c *apptest.Client, agent string, sites ...string) {
	c.Must(http.MethodPatch, "/api/v1/agents/"+agent, map[string]any{"embed_origins": append([]string{}, sites...)}, http.StatusOK)
}

func TestEmbed_PageSaysWhoMayFrameIt(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	olga := p.User(t, "olga")
	name := olga.Agent("public", agenttest.NewOpenAIServer(t).Base(agenttest.Echo))
	page := "/agents/" + name + "/embed"
	off := olga.Must(http.MethodGet, page, nil, http.StatusNotFound)
	if !strings.Contains(off.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") || off.Header.Get("X-Frame-Options") != "DENY" {
		t.Errorf("nobody is named, and it comes with %v", off.Header)
	}
	shownBy(olga, name, "https://www.example.org/", "http://localhost:3000")
	on := olga.Must(http.MethodGet, page, nil, http.StatusOK)
	policy := on.Header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "; frame-ancestors https://www.example.org http://localhost:3000; ") || !strings.Contains(policy, "require-trusted-types-for 'script'") || strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("the policy is %s", policy)
	}
	if on.Header.Get("X-Frame-Options") != "" {
		t.Error("another header says that nobody may frame it")
	}
	if on.Body != p.Guest(t).Must(http.MethodGet, page, nil, http.StatusOK).Body && !sameButNonces(on.Body, p.Guest(t).Must(http.MethodGet, page, nil, http.StatusOK).Body) {
		t.Error("it depends on who is logged in")
	}
	for _, other := range []string{"/", "/agents/" + name, "/chat/new?agent=" + name, "/agents/" + name + "/owner", page + "/nothing"} {
		if h := olga.Do(http.MethodGet, other, nil).Header; !strings.Contains(h.Get("Content-Security-Policy"), "frame-ancestors 'none'") || h.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s may be framed: %v", other, h)
		}
	}
	// Only its owners read who was named.
	if body := p.Guest(t).Must(http.MethodGet, "/api/v1/agents/"+name, nil, http.StatusOK).Body; strings.Contains(body, "example.org") {
		t.Errorf("a stranger reads %s", body)
	}
	if body := p.Guest(t).Must(http.MethodGet, "/api/v1/agents/"+name+"/versions/2", nil, http.StatusOK).Body; strings.Contains(body, "example.org") {
		t.Errorf("a stranger reads %s", body)
	}
	var own struct {
		Origins []string `json:"embed_origins"`
		Version int
	}
	olga.Get(http.MethodGet, "/api/v1/agents/"+name, nil, http.StatusOK, &own)
	if len(own.Origins) != 2 || own.Version != 2 {
		t.Errorf("its owner reads %+v", own)
	}
	a := olga.Must(http.MethodPatch, "/api/v1/agents/"+name, map[string]any{"embed_origins": []string{"https://example.org; script-src *"}}, http.StatusBadRequest)
	if a.Fields()["embed_origins"] == "" {
		t.Errorf("no field is named: %s", a.Body)
	}
}

func sameButNonces(a, b string) bool {
	return nonces.ReplaceAllString(a, "") == nonces.ReplaceAllString(b, "")
}

func TestEmbed_EverybodyIsAVisitor(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	olga, otto := p.User(t, "olga"), p.User(t, "otto")
	name := olga.Agent("public", agenttest.NewOpenAIServer(t).Base(agenttest.Echo))
	shownBy(olga, name, "https://www.example.org")

	// Whoever is logged in, and whatever token they send, they begin as a visitor.
	f := &framed{Client: otto, t: t, agent: name}
	f.say("Hello <b>you</b>", "1", http.StatusOK)
	p.Canary(f.secret)
	var mine struct{ Conversations []any }
	otto.Get(http.MethodGet, "/api/v1/conversations", nil, http.StatusOK, &mine)
	if len(mine.Conversations) != 0 {
		t.Errorf("it is among theirs: %v", mine.Conversations)
	}
	otto.Must(http.MethodGet, "/api/v1/conversations/"+f.conversation, nil, http.StatusNotFound)
	all := f.follow("0", func(e frameEvent) bool { return e.Type == "message" && e.TaskID != "" })
	first, last := all[0], all[len(all)-1]
	if !first.Mine || first.Seq != 1 || !strings.Contains(first.HTML, "Hello") || strings.Contains(first.HTML, "<b>you</b>") || last.Mine || last.HTML == "" {
		t.Errorf("the stream tells %+v … %+v", first, last)
	}
	if strings.Contains(last.HTML, "/chat/") || strings.Contains(last.HTML, "<form") {
		t.Errorf("it leads to pages that are not theirs: %s", last.HTML)
	}
	// Sent again, it is asked once.
	before := f.conversation
	if f.say("Hello <b>you</b>", "1", http.StatusOK); f.conversation != before {
		t.Error("it began anew")
	}
	f.say("More", "2", http.StatusOK)
	if all = f.follow("2", func(e frameEvent) bool { return e.Type == "message" && e.TaskID != "" }); all[0].Seq != 3 {
		t.Errorf("after 2 comes %+v", all[0])
	}

	// The secret of somebody's login is good for nothing here.
	u, _ := url.Parse(p.Base)
	for _, c := range otto.HTTP.Jar.Cookies(u) {
		as := &framed{Client: p.Guest(t), t: t, agent: name, secret: c.Value}
		as.say("Hello", "3", http.StatusUnauthorized)
	}
	for _, secret := range []string{otto.NewToken().Token, "agsn_nothing", "x"} {
		(&framed{Client: p.Guest(t), t: t, agent: name, secret: secret}).say("Hello", "3", http.StatusUnauthorized)
	}
	// Nor is a visitor's for the conversation of another, nor none at all.
	g := &framed{Client: p.Guest(t), t: t, agent: name}
	g.say("Hi", "1", http.StatusOK)
	g.conversation = before
	g.say("Hi", "2", http.StatusNotFound)
	g.secret = ""
	g.say("Hi", "2", http.StatusUnauthorized)
	g.Must(http.MethodGet, "/agents/"+name+"/embed/live?conversation="+before, nil, http.StatusUnauthorized)

	// Pages of other sites cannot ask in anybody's name.
	for _, edit := range []func(*http.Request){setHeader("Sec-Fetch-Site", "cross-site"), setHeader("Origin", "https://www.example.org")} {
		f.Must(http.MethodPost, "/agents/"+name+"/embed/messages", map[string]string{"text": "Hello", "client_id": "9", "conversation": before}, http.StatusForbidden, f.as, edit)
	}
	// What was allowed once ends with the list.
	shownBy(olga, name)
	f.say("Still there?", "4", http.StatusNotFound)
}

func TestEmbed_StopsAndRefuses(t *testing.T) {
	t.Parallel()
	slow := agenttest.NewOpenAIServer(t)
	p := apptest.Start(t)
	olga := p.User(t, "olga")
	name := olga.Agent("public", slow.Base(agenttest.Hang))
	shownBy(olga, name, "https://www.example.org")
	f := &framed{Client: p.Guest(t), t: t, agent: name}
	for what, body := range map[string]any{"nothing": "{}", "no JSON": "Hello", "too much": map[string]string{"client_id": "1", "text": strings.Repeat("a", 20<<10)}, "another field": map[string]string{"client_id": "1", "text": "a", "told": "x"}} {
		if a := f.Do(http.MethodPost, "/agents/"+name+"/embed/messages", body, f.as); a.Status != http.StatusBadRequest || a.Kind() != "invalid" {
			t.Errorf("%s: %d %s", what, a.Status, a.Body)
		}
	}
	f.say("Hello", "1", http.StatusOK)
	work := f.follow("1", func(e frameEvent) bool { return e.Type == "task" })
	id := work[len(work)-1].TaskID
	other := &framed{Client: p.Guest(t), t: t, agent: name}
	other.say("Hello", "1", http.StatusOK)
	other.Must(http.MethodPost, "/agents/"+name+"/embed/stop", map[string]string{"task": id}, http.StatusNotFound, other.as)
	f.Must(http.MethodPost, "/agents/"+name+"/embed/stop", map[string]string{"task": id}, http.StatusNoContent, f.as)
	end := f.follow("1", func(e frameEvent) bool { return e.Type == "message" && e.TaskID == id })
	if last := end[len(end)-1]; !strings.Contains(last.HTML, "Stopped before it was finished.") || strings.Contains(last.HTML, "Try again") {
		t.Errorf("it ends with %s", last.HTML)
	}

	olga.Must(http.MethodPatch, "/api/v1/agents/"+name, map[string]any{"limits": map[string]any{"callers": "accounts"}}, http.StatusOK)
	if body := f.Must(http.MethodGet, "/agents/"+name+"/embed", nil, http.StatusOK).Body; !strings.Contains(body, "only from people with an account") || strings.Contains(body, "<form") {
		t.Error("the page does not say that visitors cannot talk")
	}
	(&framed{Client: p.Guest(t), t: t, agent: name}).say("Hello", "1", http.StatusForbidden)
}

func TestEmbed_WithoutGuestsItSaysSo(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t, func(c *app.Config) { c.Guests = "off" })
	olga := p.User(t, "olga")
	name := olga.Agent("public", agenttest.NewOpenAIServer(t).Base(agenttest.Echo))
	shownBy(olga, name, "https://www.example.org")
	body := olga.Must(http.MethodGet, "/agents/"+name+"/embed", nil, http.StatusOK).Body
	if !strings.Contains(body, "lets only people with an account talk") || strings.Contains(body, "<form") {
		t.Errorf("the page says %s", body)
	}
	(&framed{Client: olga, t: t, agent: name}).say("Hello", "1", http.StatusUnauthorized)
	if body := olga.Must(http.MethodGet, "/agents/"+name+"/owner", nil, http.StatusOK).Body; !strings.Contains(body, "admits no visitors") {
		t.Error("its owner is not told")
	}
}

func TestDeepLink_FillsInAndSendsNothing(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	olga := p.User(t, "olga")
	before := olga.Must(http.MethodGet, "/api/v1/conversations", nil, http.StatusOK).Body
	page := olga.Must(http.MethodGet, "/chat/new?agent=calc&text="+url.QueryEscape(`2+2 </textarea><script>`), nil, http.StatusOK).Body
	for _, want := range []string{"Ask <bdi>Calculator</bdi>", "has not been sent", "2+2 &lt;/textarea&gt;&lt;script&gt;</textarea>", "What you write stays on this portal"} {
		if !strings.Contains(page, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if long := olga.Must(http.MethodGet, "/chat/new?agent=calc&text="+strings.Repeat("x", 9000), nil, http.StatusOK).Body; strings.Contains(long, strings.Repeat("x", 2001)) {
		t.Error("the text has no bound")
	}
	if after := olga.Must(http.MethodGet, "/api/v1/conversations", nil, http.StatusOK).Body; after != before {
		t.Error("to look at it began a conversation")
	}
	for query, want := range map[string]string{"": "/chat", "?text=Hi": "/chat?text=Hi", "?agent=calc,guide&text=Hi": "/chat?agent=calc%2Cguide&text=Hi"} {
		if to := olga.Must(http.MethodGet, "/chat/new"+query, nil, http.StatusSeeOther).Header.Get("Location"); to != want {
			t.Errorf("%q leads to %q, want %q", query, to, want)
		}
	}
	olga.Must(http.MethodGet, "/chat/new?agent=nobody-here", nil, http.StatusNotFound)
	olga.Must(http.MethodGet, "/chat/new?agent=calc@elsewhere.example", nil, http.StatusNotFound)
	if form := p.Guest(t).Must(http.MethodPost, "/chat", form("agent", "calc", "text", "2+2"), http.StatusSeeOther); !strings.HasPrefix(form.Header.Get("Location"), "/chat/") {
		t.Error("the form begins no conversation")
	}
}

func TestShare_PreviewAndCode(t *testing.T) {
	t.Parallel()
	far := agenttest.NewOpenAIServer(t)
	p := apptest.Start(t)
	olga, g := p.User(t, "olga"), p.Guest(t)
	page := g.Must(http.MethodGet, "/agents/calc", nil, http.StatusOK).Body
	for _, want := range []string{`<meta property="og:title" content="Calculator">`, `<meta property="og:url" content="` + p.URL() + `/agents/calc">`, `<link rel="canonical"`, `<meta property="og:description" content="`} {
		if !strings.Contains(strings.ReplaceAll(page, `"/>`, `">`), want) {
			t.Errorf("the profile has no %s", want)
		}
	}
	for _, hidden := range []string{"unlisted", "private"} {
		name := olga.Agent(hidden, far.Base(agenttest.Echo))
		if body := olga.Must(http.MethodGet, "/agents/"+name, nil, http.StatusOK).Body; strings.Contains(body, "og:title") || !strings.Contains(body, "is not public") {
			t.Errorf("one that is %s is shown as if it were not", hidden)
		}
		if cache := olga.Must(http.MethodGet, "/agents/"+name+"/qr.svg", nil, http.StatusOK).Header.Get("Cache-Control"); !strings.HasPrefix(cache, "private") {
			t.Errorf("the code of one that is %s is kept as %q", hidden, cache)
		}
	}
	code := g.Must(http.MethodGet, "/agents/calc/qr.svg", nil, http.StatusOK)
	tag := code.Header.Get("ETag")
	if code.Header.Get("Content-Type") != "image/svg+xml" || code.Header.Get("Cache-Control") != "public, max-age=86400" || tag == "" || !strings.HasPrefix(code.Body, "<svg ") {
		t.Errorf("the code comes with %v", code.Header)
	}
	if again := g.Must(http.MethodGet, "/agents/calc/qr.svg", nil, http.StatusNotModified, setHeader("If-None-Match", `"x", `+tag)); again.Body != "" {
		t.Error("it was sent again")
	}
	if asks := g.Must(http.MethodGet, "/agents/calc/qr.svg?text=2%2B2", nil, http.StatusOK, setHeader("If-None-Match", tag)); asks.Body == code.Body {
		t.Error("the text is not in it")
	}
	g.Must(http.MethodGet, "/agents/calc/qr.svg?text="+strings.Repeat("x", 1000), nil, http.StatusBadRequest)
	g.Must(http.MethodGet, "/agents/calc/qr.svg?text=%ff", nil, http.StatusBadRequest)

	// Drawing costs more than reading: nobody has very many drawn.
	var last apptest.Answer
	for i := 0; i < 500 && last.Status != http.StatusTooManyRequests; i++ {
		last = g.Do(http.MethodGet, fmt.Sprintf("/agents/calc/qr.svg?text=%d", i), nil)
	}
	if last.Status != http.StatusTooManyRequests || !strings.Contains(last.Header.Get("Cache-Control"), "no-store") || last.Header.Get("ETag") != "" {
		t.Errorf("many codes: %d %v", last.Status, last.Header)
	}
	g.Must(http.MethodGet, "/agents/calc/qr.svg", nil, http.StatusNotModified, setHeader("If-None-Match", tag))
	olga.Must(http.MethodGet, "/agents/calc/qr.svg", nil, http.StatusOK)
}

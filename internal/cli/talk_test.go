package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// scripted is a portal that answers as told: each live stream gets the next
// of streams, whose lines are sent as they stand; after the last the stream
// breaks with an error of the API.
type scripted struct {
	*httptest.Server
	streams []string
	after   string // the error once streams are used up

	mu       sync.Mutex // guards the rest
	asked    []string
	said     []string
	members  []string
	tokens   []string
	opened   int
	findable string

	room    string                      // its JSON
	bodies  []map[string]any            // of messages
	files   map[string]string           // what was sent, by name
	tasks   string                      // that a message asks for, as JSON
	stopped chan string                 // the path of what was stopped
	live    func(w http.ResponseWriter) // a stream of its own
}

func script(t *testing.T, streams ...string) *scripted {
	p := &scripted{streams: streams, room: `{"id":"room","members":[]}`, tasks: `[{"id":"T"}]`, files: map[string]string{}, stopped: make(chan string, 8), after: `{"error":{"kind":"not_found","message":"over"}}`}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/conversations", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Members []string }
		json.NewDecoder(r.Body).Decode(&in)
		p.mu.Lock()
		p.members = append(p.members, in.Members...)
		p.tokens = append(p.tokens, r.Header.Get("Authorization"))
		p.mu.Unlock()
		if in.Members[0] == "nobody" {
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"error":{"kind":"not_found","message":"There is\nno agent \u001b[31m\"nobody\"."}}`)
			return
		}
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "s", Path: "/"})
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, p.room)
	})
	mux.HandleFunc("GET /api/v1/conversations/room", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, p.room) })
	mux.HandleFunc("POST /api/v1/files", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		name := r.URL.Query().Get("name")
		p.mu.Lock()
		p.files[name] = string(b)
		p.mu.Unlock()
		json.NewEncoder(w).Encode(map[string]any{"url": "/files/" + name, "filename": name, "media_type": "text/plain"})
	})
	for _, path := range []string{"/api/v1/tasks/T/cancel", "/api/v1/conversations/room/stop"} {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "Bearer narrow" && strings.HasSuffix(path, "/cancel") {
				w.WriteHeader(http.StatusForbidden)
				io.WriteString(w, `{"error":{"kind":"forbidden","message":"lacks a scope"}}`)
				return
			}
			p.stopped <- path
			io.WriteString(w, `{}`)
		})
	}
	mux.HandleFunc("POST /api/v1/conversations/room/messages", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Text     string
			ClientID string `json:"client_id"`
		}
		body, _ := io.ReadAll(r.Body)
		json.Unmarshal(body, &in)
		whole := make(map[string]any)
		json.Unmarshal(body, &whole)
		if c, err := r.Cookie("session"); (err != nil || c.Value != "s") && r.Header.Get("Authorization") == "" || in.ClientID == "" {
			t.Errorf("the session or the client's id is missing: %v %+v", err, in)
		}
		p.mu.Lock()
		p.said = append(p.said, in.Text)
		p.bodies = append(p.bodies, whole)
		p.mu.Unlock()
		w.WriteHeader(http.StatusCreated)
		if in.Text == "alone" {
			io.WriteString(w, `{"seq":1,"tasks":[]}`)
			return
		}
		io.WriteString(w, `{"seq":1,"tasks":`+p.tasks+`}`)
	})
	mux.HandleFunc("GET /api/v1/conversations/room/live", func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked = append(p.asked, r.URL.RawQuery)
		n := p.opened
		p.opened++
		p.mu.Unlock()
		if p.live != nil {
			w.Header().Set("Content-Type", "text/event-stream")
			p.live(w)
			return
		}
		if n >= len(p.streams) {
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, p.after)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, p.streams[n])
	})
	mux.HandleFunc("GET /api/v1/search", func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked = append(p.asked, r.URL.Query().Get("q")+"/"+r.URL.Query().Get("limit"))
		p.mu.Unlock()
		io.WriteString(w, p.findable)
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

// Events of a stream.

func event(v map[string]any) string {
	b, _ := json.Marshal(v)
	return fmt.Sprintf("event: x\ndata: %s\n\n", b)
}

func delta(offset int, text string) string {
	return event(map[string]any{"type": "delta", "task_id": "T", "offset": offset, "text": text})
}

func message(seq int, kind, state, reason, text string) string {
	return event(map[string]any{"type": "message", "seq": seq, "kind": kind, "sender": map[string]string{"kind": "agent", "handle": "calc"},
		"parts": []map[string]string{{"text": text}}, "task": map[string]string{"id": "T", "state": state, "reason": reason}})
}

func done(text string) string { return message(2, "text", "completed", "", text) }

func TestChat_PrintsAnAnswerOnce(t *testing.T) {
	t.Parallel()
	other := event(map[string]any{"type": "delta", "task_id": "OTHER", "offset": 0, "text": "not mine"})
	foreign := event(map[string]any{"type": "message", "seq": 2, "kind": "text", "parts": []map[string]string{{"text": "not mine"}}, "task": map[string]string{"id": "OTHER", "state": "completed"}})
	status := event(map[string]any{"type": "task", "task": map[string]string{"id": "T", "state": "working"}})
	for name, c := range map[string]struct {
		streams []string
		want    string
	}{
		"whole":                    {[]string{done("The answer.")}, "The answer.\n"},
		"deltas":                   {[]string{delta(0, "The ") + delta(4, "ans") + delta(7, "wer.") + done("The answer.")}, "The answer.\n"},
		"the rest comes at last":   {[]string{delta(0, "The ") + done("The answer.")}, "The answer.\n"},
		"others and states":        {[]string{": still here\n\n" + status + other + delta(0, "Mine") + foreign + message(3, "text", "completed", "", "Mine")}, "Mine\n"},
		"overlap":                  {[]string{delta(0, "The an") + delta(4, "answer") + delta(0, "The answer") + delta(10, ".") + done("The answer.")}, "The answer.\n"},
		"bytes, not characters":    {[]string{delta(0, "é翻") + delta(5, "ö") + done("é翻ö")}, "é翻ö\n"},
		"a gap":                    {[]string{delta(0, "The ") + delta(7, "wer.") + done("The answer.")}, "The answer.\n"},
		"ends with a line":         {[]string{delta(0, "a\n") + done("a\n")}, "a\n"},
		"breaks in the middle":     {[]string{delta(0, "The an"), delta(0, "The answ") + delta(8, "er.") + done("The answer.")}, "The answer.\n"},
		"breaks, less comes again": {[]string{delta(0, "The answ"), delta(0, "The") + delta(3, " answer.") + done("The answer.")}, "The answer.\n"},
		"breaks before the end":    {[]string{delta(0, "The answer."), done("The answer.")}, "The answer.\n"},
		"breaks in a line":         {[]string{delta(0, "The ") + "data: {\"type\":", done("The answer.")}, "The answer.\n"},
		"replaced":                 {[]string{delta(0, "Thinking…") + delta(0, "The answer") + delta(10, ".") + done("The answer.")}, "Thinking…\nThe answer.\n"},
		"replaced by a longer end": {[]string{delta(0, "Thinking hard about it") + done("42")}, "Thinking hard about it\n42\n"},
		"replaced by a beginning":  {[]string{delta(0, "42 or so") + done("42")}, "42 or so\n42\n"},
		"steers the terminal":      {[]string{delta(0, "\x1b[2J\u202ea") + done("\x1b[2J\u202eab")}, "[2Jab\n"},
		"input required":           {[]string{message(2, "text", "input_required", "", "Which one?")}, "Which one?\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := script(t, c.streams...)
			code, out, errs := run(t, nil, "", "chat", "--portal", p.URL+"/", "calc", "what", "is", "it?")
			if code != 0 || out != c.want || errs != "" {
				t.Errorf("%d %q %q, want %q", code, out, errs, c.want)
			}
			if len(p.said) != 1 || p.said[0] != "what is it?" || p.members[0] != "calc" || p.tokens[0] != "" {
				t.Errorf("said %v to %v", p.said, p.members)
			}
		})
	}
}

func TestChat_ResumesAfterTheLastMessage(t *testing.T) {
	t.Parallel()
	early := event(map[string]any{"type": "message", "seq": 2, "kind": "text", "parts": []map[string]string{{"text": "from bob"}}})
	p := script(t, early+delta(0, "a"), early+delta(0, "ab")+message(3, "text", "completed", "", "abc"))
	code, out, _ := run(t, nil, "", "chat", "calc", "hi", "--portal", p.URL)
	if code != 0 || out != "abc\n" || strings.Join(p.asked, " ") != "after=1 after=2" {
		t.Errorf("%d %q %v", code, out, p.asked)
	}
}

func TestChat_FailureIsStatusOneAndOneLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stream, out, errs string
	}{
		"failed":           {message(2, "event", "failed", "The model is away.", ""), "", "agentsite: failed: The model is away.\n"},
		"after some text":  {delta(0, "Half an") + message(2, "text", "failed", "It broke.", "Half an"), "Half an\n", "agentsite: failed: It broke.\n"},
		"text, then event": {delta(0, "Half an") + message(2, "event", "canceled", "", ""), "Half an\n", "agentsite: canceled\n"},
		"rejected":         {message(2, "event", "rejected", "No\x1b[31m.", ""), "", "agentsite: rejected: No[31m.\n"},
		"needs auth":       {message(2, "event", "auth_required", "", ""), "", "agentsite: auth_required\n"},
		"the right ended":  {delta(0, "Half"), "Half\n", "agentsite: over\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := script(t, c.stream)
			code, out, errs := run(t, map[string]string{"AGENTSITE_PORTAL": p.URL}, "", "chat", "calc", "hi")
			if code != 1 || out != c.out || errs != c.errs {
				t.Errorf("%d %q %q", code, out, errs)
			}
		})
	}
	p := script(t)
	for _, args := range [][]string{{"chat", "nobody", "hi"}, {"chat", "calc", "alone"}} {
		code, out, errs := run(t, map[string]string{"AGENTSITE_PORTAL": p.URL}, "", args...)
		if code != 1 || out != "" || strings.Count(errs, "\n") != 1 || strings.Contains(errs, "\x1b") {
			t.Errorf("%v: %d %q %q", args, code, out, errs)
		}
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	if code, _, errs := run(t, nil, "", "chat", "--portal", other.URL, "calc", "hi"); code != 1 || !strings.Contains(errs, "is it a portal?") {
		t.Error(code, errs)
	}
}

func TestChat_ReadsPipedStdin(t *testing.T) {
	t.Parallel()
	p := script(t, done("ok"))
	code, out, errs := run(t, map[string]string{"AGENTSITE_TOKEN": "ags_x"}, "  two\nlines \n\n", "chat", "calc", "--portal", p.URL)
	if code != 0 || out != "ok\n" || errs != "" || len(p.said) != 1 || p.said[0] != "two\nlines" || p.tokens[0] != "Bearer ags_x" {
		t.Errorf("%d %q %q %q %q", code, out, errs, p.said, p.tokens)
	}
}

func TestSearch_ListsWhatIsFound(t *testing.T) {
	t.Parallel()
	p := script(t)
	p.findable = `{"results":[{"agent":{"handle":"calc","title":"Calc\u001b[31m","description":"Reckons.\nAnd more.","kind":"builtin"},"liveness":{"state":"alive"}}],"total":3}`
	code, out, errs := run(t, nil, "", "search", "two", "words", "--limit", "1", "--portal", p.URL)
	if code != 0 || errs != "" || out != "calc  Calc[31m  [builtin, alive]\n    Reckons.\n1 of 3; more with --limit\n" || p.asked[0] != "two words/1" {
		t.Errorf("%d %q %q %v", code, out, errs, p.asked)
	}
	p.findable = `{"results":[],"total":0,"suggestions":["calc"]}`
	if _, out, _ := run(t, nil, "", "search", "clac", "--portal", p.URL); out != "nothing found\ndid you mean: calc\n" {
		t.Errorf("%q", out)
	}
	if _, out, _ := run(t, nil, "", "search", "clac", "--json", "--portal", p.URL); out != p.findable {
		t.Errorf("%q", out)
	}
}

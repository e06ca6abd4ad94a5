package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
)

// newScript starts an OpenAI-compatible server with a scripted model: it reads the state of a team as any model gets
// it, gives each sentence of the goal to the member or candidate that fits it, tries a failed task with another one, and
// concludes with the results.
func newScript() *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"scripted","object":"model"}]}`)
	})
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Messages []struct{ Content string } }
		if json.NewDecoder(r.Body).Decode(&in) != nil || len(in.Messages) == 0 {
			http.Error(w, `{"error":{"message":"no messages"}}`, http.StatusBadRequest)
			return
		}
		var d document
		move := map[string]any{"kind": "give_up", "text": "No document."}
		if json.Unmarshal([]byte(in.Messages[len(in.Messages)-1].Content), &d) == nil {
			move = d.decideMove()
		}
		text, err := json.Marshal(move)
		size := 0
		for _, m := range in.Messages {
			size += len(m.Content)
		}
		if err != nil {
			text = nil
		}
		w.Header().Set("Content-Type", "application/json")
		// A failed answer is seen by the portal, which asks again.
		_ = json.NewEncoder(w).Encode(map[string]any{"object": "chat.completion",
			"choices": []any{map[string]any{"index": 0, "finish_reason": "stop",
				"message": map[string]string{"role": "assistant", "content": string(text)}}},
			"usage": map[string]int{"prompt_tokens": size / 4, "completion_tokens": len(text) / 4,
				"total_tokens": (size + len(text)) / 4}})
	})
	return httptest.NewServer(mux)
}

// document is the part of the state of a team that the scripted model reads.
type document struct {
	Goal    string
	Members []struct{ Handle, State, Why string }
	// Candidates are agents that were found and are no members.
	Candidates []struct{ Handle, For, Why string }
	Tasks      []struct {
		Task                       int
		Owner, Text, State, Result string
	}
	TurnsLeft int `json:"turns_left"`
}

var sentences = regexp.MustCompile(`(?:[^.!?\n]|[.!?][^\s])+[.!?]?`)

// decideMove returns the next move.
func (d document) decideMove() map[string]any {
	if len(d.Tasks) == 0 {
		var tasks []map[string]any
		for _, s := range sentences.FindAllString(d.Goal, 12) {
			if s = strings.TrimSpace(s); len(s) < 4 {
				continue
			}
			owner := d.pickOwner(s, nil)
			if joined := d.listJoined(); owner == "" && len(joined) > 0 {
				owner = joined[min(len(tasks), len(joined)-1)] // the best agents of the parts join in their order
			}
			if owner == "" {
				continue
			}
			step, follows := strings.CutPrefix(s, "Then ")
			t := map[string]any{"owner": owner, "text": step}
			if n := len(tasks); n > 0 && follows {
				t["needs"] = []int{-n}
			}
			tasks = append(tasks, t)
		}
		if len(tasks) == 0 {
			return map[string]any{"kind": "give_up", "text": "No agent fits the goal."}
		}
		return map[string]any{"kind": "assign", "tasks": tasks}
	}
	var b strings.Builder
	for _, t := range d.Tasks {
		switch {
		case t.State == "completed":
			fmt.Fprintf(&b, "%s\n%s: %s\n\n", t.Text, t.Owner, t.Result)
		case t.State == "failed" && d.TurnsLeft > 20:
			if owner := d.pickOwner(t.Text, map[string]bool{t.Owner: true}); owner != "" {
				return map[string]any{"kind": "assign",
					"tasks": []map[string]any{{"task": t.Task, "owner": owner, "text": t.Text}}}
			}
			fallthrough
		default:
			fmt.Fprintf(&b, "Missing: %s\n\n", t.Text)
		}
	}
	return map[string]any{"kind": "conclude", "text": strings.TrimSpace(b.String())}
}

// listJoined returns the members that work.
func (d document) listJoined() (list []string) {
	for _, m := range d.Members {
		if m.State == "joined" {
			list = append(list, m.Handle)
		}
	}
	return list
}

// pickOwner returns the agent with the most words of a text in its reasons, "" for none.
func (d document) pickOwner(text string, not map[string]bool) (owner string) {
	best := 0
	consider := func(handle, why string) {
		n := 0
		quotes := func(r rune) bool { return strings.ContainsRune(` “”",`, r) }
		for w := range strings.FieldsFuncSeq(strings.ToLower(why), quotes) {
			if len(w) > 2 && w != "fits" && strings.Contains(strings.ToLower(text), w) {
				n++
			}
		}
		if n > best && !not[handle] {
			owner, best = handle, n
		}
	}
	for _, m := range d.Members {
		if m.State == "joined" {
			consider(m.Handle, m.Why)
		}
	}
	for _, c := range d.Candidates {
		consider(c.Handle, c.Why)
	}
	return owner
}

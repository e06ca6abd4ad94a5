package prompt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/grant"
	"agentsite/internal/openai"
	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
)

// kept is a Grants that remembers answers by tool and target.
type kept struct {
	mu      sync.Mutex // guards answers and last
	answers map[string]Answer
	last    context.CancelCauseFunc // ends the call that was allowed last
	keeps   bool
}

func (k *kept) Begin(ctx context.Context, _ task.Call, t Tool, c Invocation) (Permission, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var args struct{ Agent string }
	_ = json.Unmarshal(c.Args, &args)
	if args.Agent == "secret" {
		return Permission{}, fault.New(fault.NotFound, "There is no agent secret.")
	}
	p := Permission{Context: ctx, Done: func() {}, Target: args.Agent, Keeps: k.keeps, KeepsAll: k.keeps}
	switch k.answers[t.Name+" "+args.Agent] {
	case Always, AlwaysHere:
		p.Decision = grant.Allowed
		p.Context, k.last = context.WithCancelCause(ctx)
	case Never:
		p.Decision = grant.Denied
	}
	return p, nil
}

func (k *kept) Remember(_ context.Context, _ task.Call, t Tool, c Invocation, a Answer) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var args struct{ Agent string }
	_ = json.Unmarshal(c.Args, &args)
	k.answers[t.Name+" "+args.Agent] = a
	return nil
}

func (k *kept) Forget(context.Context, task.Call) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.answers)
	return nil
}

// A person takes lasting answers back by writing “ask again”. Other texts, and agents that ask for the person, do not.
func TestGrants_AskAgain(t *testing.T) {
	for _, c := range []struct {
		text   string
		from   task.Caller
		tools  bool
		forget bool
	}{
		{"ask again", person("1"), true, true},
		{" @Ask  Again! ", person("1"), true, false},
		{"Ask again.", task.Caller{Kind: "portal", Handle: "eve@far.example", ID: "p"}, true, true},
		{"ask again tomorrow", person("1"), true, false},
		{"ask again", task.Caller{Kind: "agent", Handle: "bot", ID: "1"}, true, false},
		{"ask again", person("1"), false, false},
	} {
		w, _, k := asks(t)
		k.answers["ask calc"] = AlwaysHere
		if !c.tools {
			w.cfg.Tools = nil
		}
		call := w.call(c.text)
		call.Caller = c.from
		res, _ := w.run(call)
		if forgot := len(k.answers) == 0; forgot != c.forget || strings.Contains(task.PlainText(res.Parts), "I ask you again") != c.forget {
			t.Errorf("%+v: forgot %v: %+v", c, forgot, res)
		}
		if reqs, _ := w.s.Requests(); c.forget == (len(reqs) > 0) {
			t.Errorf("%+v: the model was asked %d times", c, len(reqs))
		}
	}
}

// asks returns a world with a model that asks one of the agents in each turn but the last.
func asks(t *testing.T, agents ...string) (*world, *toolbox, *kept) {
	box := &toolbox{}
	box.add("portal", "ask", false, func(_ context.Context, args json.RawMessage) (string, bool, error) {
		return "42", false, nil
	})
	box.tools[0].Title, box.tools[0].Repeatable, box.tools[0].Owned, box.tools[0].Schema = "ask", true, false, nil
	var turns []agenttest.Turn
	for i, a := range agents {
		turns = append(turns, agenttest.Turn{Calls: []openai.ToolCall{agenttest.Want(fmt.Sprint(i), "ask", `{"agent":"`+a+`","text":"6*7"}`)}})
	}
	w := newWorld(t, box, append(turns, agenttest.Turn{Text: "Done."})...)
	k := &kept{answers: make(map[string]Answer), keeps: true}
	w.d.cfg.Grants, w.cfg.Tools = k, []string{"portal"}
	return w, box, k
}

func TestGrants_AnswersAreKept(t *testing.T) {
	for said, c := range map[string]struct {
		keeps bool
		kept  Answer
		calls int
		told  string
	}{
		"yes":                {true, 0, 1, "42"},
		"always":             {true, Always, 1, "42"},
		"Yes, always.":       {true, Always, 1, "42"},
		"always here":        {true, AlwaysHere, 1, "42"},
		"never":              {true, Never, 0, "does not allow"},
		"no, never":          {true, Never, 0, "does not allow"},
		"no":                 {true, 0, 0, "did not agree."},
		"no, always":         {true, 0, 0, "said:"},
		"yes, never":         {true, 0, 0, "said:"},
		"always?":            {true, 0, 0, "said:"},
		"always ask me":      {true, 0, 0, "said:"},
		"don't always do it": {true, 0, 0, "said:"},
		" always ":           {false, 0, 0, "said:"}, // the caller cannot keep grants
	} {
		w, box, k := asks(t, "calc")
		k.keeps = c.keeps
		call := w.call("what is 6*7?")
		res, rec := w.run(call)
		question := task.PlainText(res.Parts)
		if res.State != task.InputRequired || !strings.Contains(question, "May I ask `calc`") || strings.Contains(question, "“always”") != c.keeps {
			t.Fatalf("%q: asked %+v", said, res)
		}
		w.run(w.answer(call, rec, said))
		if got := w.results(); k.answers["ask calc"] != c.kept || strings.Count(box.called(), "ask") != c.calls || len(got) != 1 || !strings.Contains(got[0], c.told) {
			t.Errorf("%q: kept %d, called %q, told %q", said, k.answers["ask calc"], box.called(), got)
		}
	}
}

// An agent that asks in the name of the person cannot answer the question in the person's place: neither one of this
// portal nor one of another portal, which only the chain names. The person can, after the agent tried.
func TestGrants_AnAgentCannotAnswer(t *testing.T) {
	for name, mark := range map[string]func(*task.Call){
		"speaker": func(c *task.Call) { c.Speaker = task.Speaker{Kind: "agent", Handle: "eve"} },
		"chain":   func(c *task.Call) { c.Via = task.Chain{"far.example/abc"} },
	} {
		for _, said := range []string{"yes", "always here", "always", "never"} {
			w, box, k := asks(t, "calc", "calc")
			call := w.call("what is 6*7?")
			call.Caller.Kind = "portal"
			_, rec := w.run(call)
			next := w.answer(call, rec, said)
			mark(&next)
			w.run(next)
			if got := w.results(); len(k.answers) > 0 || box.called() != "" || len(got) != 1 ||
				!strings.Contains(got[0], "only the person can agree") {
				t.Errorf("%s, %q: kept %v, called %q, got %q", name, said, k.answers, box.called(), got)
			}
		}
	}
}

func TestGrants_HoldForTheirTargetOnly(t *testing.T) {
	w, box, k := asks(t, "calc", "secret", "guide")
	k.answers["ask calc"] = Always
	call := w.call("ask all")
	res, _ := w.run(call)
	if res.State != task.InputRequired || !strings.Contains(task.PlainText(res.Parts), "May I ask `guide`") || strings.Count(box.called(), "ask") != 1 {
		t.Errorf("%+v, called %q", res, box.called())
	}
	if got := w.results(); len(got) != 2 || !strings.Contains(got[1], "There is no agent secret.") {
		t.Errorf("told %q", got)
	}
}

// A yes is not carried over to another target under the same id of a call.
func TestGrants_AYesIsForTheTargetThatWasShown(t *testing.T) {
	w, box, _ := asks(t, "calc")
	call := w.call("what is 6*7?")
	_, rec := w.run(call)
	next := w.answer(call, rec, "yes")
	next.Checkpoint = json.RawMessage(strings.ReplaceAll(string(next.Checkpoint), `\"agent\":\"calc\"`, `\"agent\":\"guide\"`))
	if res, _ := w.run(next); res.State != task.InputRequired || box.called() != "" {
		t.Errorf("%+v, called %q", res, box.called())
	}
}

// A call ends when the person takes the permission back, and the model gets the reason.
func TestGrants_TakenBackDuringACall(t *testing.T) {
	w, box, k := asks(t, "calc")
	k.answers["ask calc"] = Always
	box.tools[0].Caller = toolFunc(func(ctx context.Context, _ json.RawMessage) (string, bool, error) {
		k.last(grant.ErrRevoked)
		<-ctx.Done()
		return "", false, ctx.Err()
	})
	res, _ := w.run(w.call("what is 6*7?"))
	if got := w.results(); res.State != task.Completed || len(got) != 1 || !strings.Contains(got[0], "taken back the permission") {
		t.Errorf("%+v, told %q", res, got)
	}
}

// A call of a repeatable tool that was interrupted is made again with the same id, without another question if the
// person agreed to it.
func TestGrants_AnInterruptedQuestionGoesOn(t *testing.T) {
	for _, agreed := range []bool{true, false} {
		w, box, k := asks(t, "calc")
		call := w.call("what is 6*7?")
		if agreed {
			_, rec := w.run(call)
			call = w.answer(call, rec, "yes")
		} else {
			k.answers["ask calc"] = Always
		}
		var ids []string
		ctx, cancel := context.WithCancelCause(t.Context())
		box.tools[0].Caller = invoked(func(ctx context.Context, c Invocation) (string, bool, error) {
			ids = append(ids, c.ID)
			cancel(task.ErrShutdown)
			return "", false, ctx.Err()
		})
		cut := &agenttest.Recorder{}
		if _, err := w.d.Run(ctx, call, cut); !errors.Is(err, task.ErrShutdown) {
			t.Fatalf("interrupted: %v", err)
		}
		call.Checkpoint, call.Attempt = cut.LastCheckpoint(), 2
		box.tools[0].Caller = invoked(func(_ context.Context, c Invocation) (string, bool, error) {
			ids = append(ids, c.ID)
			return "42", false, nil
		})
		if !agreed { // The permission was taken back while the portal was down.
			delete(k.answers, "ask calc")
		}
		res, _ := w.run(call)
		switch {
		case agreed && (res.State != task.Completed || len(ids) != 2 || ids[0] != ids[1]):
			t.Errorf("%+v, calls %q", res, ids)
		case !agreed && (res.State != task.InputRequired || len(ids) != 1):
			t.Errorf("%+v, calls %q by a permission that was taken back", res, ids)
		}
	}
}

// invoked is a ToolCaller by a function.
type invoked func(context.Context, Invocation) (string, bool, error)

func (f invoked) CallTool(ctx context.Context, c Invocation) (string, bool, error) { return f(ctx, c) }

// The question about a file names the files that an answer for later covers.
func TestPermissionQuestion_SaysWhatLaterCovers(t *testing.T) {
	for _, c := range []struct{ tool, target, want string }{
		{grant.LibraryRead, "notes/tea.md", "An answer for later is about reading all in `notes/`."},
		{grant.LibraryWrite, "notes/tea.md", "An answer for later is about reading and writing all in `notes/`."},
		{grant.LibraryRead, "/", "An answer for later is about reading all files of your library."},
		{grant.LibraryRead, "tea.md", ""},
	} {
		got, _ := PermissionQuestion(Tool{Name: c.tool}, c.target, json.RawMessage(`{"text":"x"}`), Permission{})
		if !strings.Contains(got, c.want) || c.want == "" && strings.Contains(got, "for later") {
			t.Errorf("%s %s: %q", c.tool, c.target, got)
		}
	}
}

package acting

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"agentsite/agentruntime/prompt"
	"agentsite/internal/chat"
	"agentsite/internal/grant"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// keptState is a ToolSink that keeps the last state of the tools.
type keptState struct{ state json.RawMessage }

func (k *keptState) Status(string) {}
func (k *keptState) Pause()        {}
func (k *keptState) Resume()       {}

// SaveTools implements task.ToolSink.
func (k *keptState) SaveTools(_ context.Context, state json.RawMessage) error {
	k.state = state
	return nil
}

// listing is a directory of one agent without an owner.
type listing struct{ Directory }

func (listing) AgentByID(context.Context, string) (hub.Agent, error) { return hub.Agent{}, nil }
func (listing) TextGoesTo(hub.Agent) string                          { return "" }

func (listing) Callable(_ context.Context, _ ident.Actor, name string) (hub.Agent, error) {
	return hub.Agent{Name: name, Visibility: hub.Public}, nil
}

// allowing allows every call.
type allowing struct{ Grants }

func (allowing) Begin(ctx context.Context, _ grant.Use) (grant.Decision, context.Context, func(), error) {
	return grant.Allowed, ctx, func() {}, nil
}

// twoAgents answers for calc, which ends when done is closed, and for guide, which asks the person back.
type twoAgents struct {
	Conversations
	started, done chan struct{}
	question      string
}

func (c *twoAgents) AskAside(_ context.Context, a chat.Aside) (chat.Asked, error) {
	return chat.Asked{Task: task.Task{ID: a.Agent, AgentHandle: a.Agent}}, nil
}

func (c *twoAgents) AwaitTask(_ context.Context, _ ident.Actor, t task.Task) (task.Task, chat.Message, error) {
	if t.AgentHandle == "calc" {
		close(c.started)
		<-c.done
		t.State = task.Completed
		return t, chat.Message{Parts: []task.Part{task.TextPart("42")}}, nil
	}
	t.State = task.InputRequired
	return t, chat.Message{Seq: 2, Parts: []task.Part{task.TextPart(c.question)}}, nil
}

// openRun opens the tools of one run of an agent elsewhere with a message of the person.
func openRun(t *testing.T, out *keptState, messageID, text string) *session {
	t.Helper()
	s := NewSessions(New(listing{}, nil, nil, nil, nil, nil, nil), "https://portal.example/mcp/tools",
		func(purpose, subject string) string { return "mark" })
	call := task.Call{TaskID: "t", MessageID: messageID, Caller: task.Caller{Kind: "person", ID: "ada"},
		Agent: task.Target{ID: "a", Name: "guide", Handle: "guide", Kind: string(hub.A2A), Endpoint: "https://agent.example",
			Config: json.RawMessage(`{"takes_tools":true,"tools":["ask"]}`)},
		Parts: []task.Part{task.TextPart(text)}}
	got, ok, err := s.OpenTools(t.Context(), call, out, out.state)
	if err != nil || !ok {
		t.Fatalf("no tools: %v", err)
	}
	return got.(*session)
}

var askCalc = prompt.Permission{Target: "calc", Context: context.Background(), Decision: grant.Undecided}

// begin makes a call of ask with a text, and reports whether it may go on.
func (x *session) begin(t *testing.T, text string) bool {
	t.Helper()
	_, refusal, err := x.beginQuestion(t.Context(), askCalc, json.RawMessage(`{"agent":"calc","text":"`+text+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	return refusal == ""
}

// A yes counts for a question of the portal only if the person was shown that question.
func TestSession_AnswersCountForShownQuestions(t *testing.T) {
	t.Parallel()
	for name, shown := range map[string]bool{"shown": true, "not shown": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out keptState
			x := openRun(t, &out, "m1", "go")
			if x.begin(t, "one") {
				t.Fatal("asked without a permission")
			}
			if shown {
				if text, _ := x.Question(); !strings.Contains(text, "one") {
					t.Fatalf("shown: %q", text)
				}
			}
			x.Close()
			x = openRun(t, &out, "m2", "yes")
			if x.begin(t, "one") != shown || x.reply != "" != shown {
				t.Errorf("after a yes the agent gets %q, and the call goes on: %t", x.reply, !shown)
			}
		})
	}
}

// Calls of an agent after its question was shown do not change that question.
func TestSession_NothingIsAskedAfterTheQuestion(t *testing.T) {
	t.Parallel()
	var out keptState
	x := openRun(t, &out, "m1", "go")
	x.beginRelay("k", &prompt.AskedBack{Agent: "calc", TaskID: "7", Seq: 2, Question: "Which?"})
	x.Question()
	x.beginRelay("k", &prompt.AskedBack{Agent: "calc", TaskID: "7", Seq: 4, Question: "May I?"})
	x.begin(t, "one")
	if x.st.Waiting != nil {
		t.Errorf("a call waits for a permission: %+v", x.st.Waiting)
	}
	x.Close()
	x = openRun(t, &out, "m2", "yes")
	if got := x.findAnswered("k"); got == nil || got.Reply.Seq != 2 {
		t.Errorf("the answer to the question that was shown goes to %+v", got)
	}
}

// A question that was to be shown before a restart is shown again after it.
func TestSession_ShowsQuestionsAgainAfterARestart(t *testing.T) {
	t.Parallel()
	var out keptState
	x := openRun(t, &out, "m1", "go")
	x.begin(t, "one")
	before, _ := x.Question()
	x.Close()
	x = openRun(t, &out, "m1", "go")
	if x.st.Waiting == nil || x.st.Waiting.Shown {
		t.Fatalf("%+v", x.st.Waiting)
	}
	x.begin(t, "one")
	if after, _ := x.Question(); after != before || after == "" {
		t.Errorf("%q, before the restart %q", after, before)
	}
}

// The answer to a question of an asked agent is passed on only if the question was shown.
func TestSession_PassesOnAnswersToShownQuestions(t *testing.T) {
	t.Parallel()
	for name, shown := range map[string]bool{"shown": true, "not shown": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out keptState
			x := openRun(t, &out, "m1", "go")
			x.beginRelay("k", &prompt.AskedBack{Agent: "calc", TaskID: "7", Question: "Which?"})
			if err := x.saveState(t.Context()); err != nil {
				t.Fatal(err)
			}
			if shown {
				x.Question()
			}
			x.Close()
			x = openRun(t, &out, "m2", "yes")
			if got := x.findAnswered("k"); got != nil != shown {
				t.Errorf("the reply is %+v", got)
			}
			if x.reply != "" != shown {
				t.Errorf("the agent gets %q", x.reply)
			}
		})
	}
}

// A question of an asked agent is not lost if it comes while another agent works with the person's answer.
func TestSession_ParallelCallsKeepQuestions(t *testing.T) {
	t.Parallel()
	args := json.RawMessage(`{"agent":"calc","text":"6*7"}`)
	var out keptState
	x := openRun(t, &out, "m1", "go")
	c := &twoAgents{started: make(chan struct{}), done: make(chan struct{}), question: "Which?"}
	x.owner.tools.chats, x.owner.tools.grants = c, allowing{}
	x.st.Back = &askedBack{Key: keyOf("calc", args), Asked: prompt.AskedBack{Agent: "calc", TaskID: "7"},
		Reply: &prompt.Reply{TaskID: "7", Text: "yes"}, Shown: true}
	ended := make(chan string)
	go func() {
		text, _ := x.Call(t.Context(), "ask", args)
		ended <- text
	}()
	<-c.started
	back := json.RawMessage(`{"agent":"guide","text":"hello"}`)
	text, _ := x.Call(t.Context(), "ask", back)
	close(c.done)
	if got := <-ended; got != "42" {
		t.Errorf("calc: %q", got)
	}
	if lost := x.st.Back == nil; lost && text == relayedText {
		t.Error("the question is lost, but the agent ends its turn for it")
	}
	if text, _ = x.Call(t.Context(), "ask", back); text != relayedText {
		t.Errorf("after the end of the other call: %q", text)
	}
	if q, _ := x.Question(); !strings.Contains(q, "Which?") {
		t.Errorf("the person is shown %q", q)
	}
}

// The end of a question has the call that the person agrees to, so a question is passed on whole or not at all.
func TestSession_PassesOnWholeQuestions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size int
		want bool
	}{"at the bound": {prompt.MaxRelayed, true}, "above it": {prompt.MaxRelayed + 1, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const end = " May I delete it?"
			var out keptState
			x := openRun(t, &out, "m1", "go")
			x.owner.tools.grants = allowing{}
			x.owner.tools.chats = &twoAgents{question: strings.Repeat("x", c.size-len(end)) + end}
			text, _ := x.Call(t.Context(), "ask", json.RawMessage(`{"agent":"guide","text":"hello"}`))
			q, _ := x.Question()
			if strings.HasSuffix(q, end) != c.want || (text == relayedText) != c.want {
				t.Errorf("shown are %d bytes, and the agent gets %q", len(q), text)
			}
			if !c.want && !strings.Contains(text, "cannot be answered through agents") {
				t.Errorf("the agent gets %q", text)
			}
		})
	}
}

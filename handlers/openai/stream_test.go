package openai

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	wire "agentsite/internal/openai"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
)

// book knows one agent.
type book struct{ agent chat.AgentRef }

func (b book) Agent(context.Context, ident.Actor, string) (chat.AgentRef, error) { return b.agent, nil }

func (book) Person(context.Context, ident.Actor, string) (chat.Member, error) {
	return chat.Member{}, fault.New(fault.NotFound, "There is nobody.")
}

func (book) Admit(context.Context, ident.Actor, string, int) error { return nil }

func (book) Hosts(context.Context, []string) (map[string]string, error) { return nil, nil }

// idle is a runtime that runs nothing: tests do.
type idle struct{}

func (idle) Wake()                                   {}
func (idle) AwaitStop(context.Context, string) error { return nil }
func (idle) Stop(string) bool                        { return false }
func (idle) Ended(task.Task)                         {}
func (idle) WaitOf(string) (task.Wait, bool)         { return task.Wait{}, false }

// heard streams the answer to a task that run plays the agent of, and returns
// the status, the text, and the error in the stream. step is called by run
// between its moves so that each is streamed before the next.
func heard(t *testing.T, run func(c *chat.Service, k task.Task, step func())) (status int, text string, bad *wire.Error) {
	t.Helper()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	calc := storetest.Agent(t, db, "calc", ada)
	chats := chat.New(db, book{chat.AgentRef{ID: calc.ID, Handle: "calc", Public: true}}, idle{}, chat.Config{Portal: "home.example"})
	actor := ident.Actor{Kind: ident.Person, ID: ada.ID, Name: "ada"}
	asked, err := chats.Ask(t.Context(), actor, chat.Ask{Agent: "calc", ClientID: "1", Parts: []task.Part{task.TextPart("2+2")}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := respond.Follow(t.Context(), chats, actor, asked.Task)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rec := &recorder{ResponseRecorder: httptest.NewRecorder(), wrote: make(chan struct{}, 100)}
	c := &call{server: &server{Config: Config{Chat: chats, URL: "https://home.example", Log: slog.New(slog.DiscardHandler)}}, actor: actor, asked: asked, id: "x"}
	done := make(chan struct{})
	chats.Working(asked.Task)
	go func() {
		defer close(done)
		r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil).WithContext(t.Context())
		if err := c.sendStream(t.Context(), rec, r, s); err != nil {
			var p *problem
			if !errors.As(err, &p) {
				t.Error(err)
				return
			}
			rec.Code, bad = p.status, &p.body
		}
	}()
	run(chats, asked.Task, func() { <-rec.wrote })
	<-done
	if bad != nil {
		return rec.Code, "", bad
	}
	for r := wire.NewReader(rec.Body); ; {
		k, err := r.Next()
		if errors.Is(err, io.EOF) {
			return rec.Code, text, bad
		}
		if err != nil {
			t.Fatal(err)
		}
		if k.Error != nil {
			bad = k.Error
		}
		for _, x := range k.Choices {
			text += string(x.Delta.Content)
		}
	}
}

// recorder tells of each piece of text that was written.
type recorder struct {
	*httptest.ResponseRecorder
	wrote chan struct{}
}

func (r *recorder) Write(b []byte) (int, error) {
	if strings.Contains(string(b), `"content":`) {
		defer func() { r.wrote <- struct{}{} }()
	}
	return r.ResponseRecorder.Write(b)
}

func TestStream_WhatBeginsAnewStandsBelow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ again, answer, want string }{
		"the same again": {"It is 4.", "It is 4.", "It is 4."},
		"something else": {"No: 5.", "No: 5.", "It is\n\nNo: 5."},
		"and back":       {"No", "It is 4.", "It is 4."},
	} {
		_, text, bad := heard(t, func(s *chat.Service, k task.Task, step func()) {
			s.Stream(k.ConversationID, k.ID, "It is")
			step()
			s.Restream(k.ConversationID, k.ID, "")
			s.Stream(k.ConversationID, k.ID, c.again)
			if err := s.Finish(context.Background(), k, task.Done(c.answer)); err != nil {
				t.Error(err)
			}
		})
		if text != c.want || bad != nil {
			t.Errorf("%s: %q %v, want %q", name, text, bad, c.want)
		}
	}
}

func TestStream_FailureBeforeAndAfterTheFirstWord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state  task.State
		status int
		code   string
	}{{task.Failed, http.StatusBadGateway, "agent_failed"}, {task.Rejected, http.StatusUnprocessableEntity, "agent_refused"}, {task.Canceled, http.StatusConflict, "task_canceled"}} {
		end := func(s *chat.Service, k task.Task) {
			if err := s.Finish(context.Background(), k, task.Result{State: c.state, Reason: "Because."}); err != nil {
				t.Error(err)
			}
		}
		status, text, bad := heard(t, func(s *chat.Service, k task.Task, _ func()) { end(s, k) })
		if status != c.status || bad == nil || bad.Code != c.code || bad.Message != "Because." {
			t.Errorf("at once: %d %q %+v", status, text, bad)
		}
		status, text, bad = heard(t, func(s *chat.Service, k task.Task, step func()) {
			s.Stream(k.ConversationID, k.ID, "half")
			step()
			end(s, k)
		})
		if status != http.StatusOK || text != "half" || bad == nil || bad.Code != c.code {
			t.Errorf("in the middle: %d %q %+v", status, text, bad)
		}
	}
}

func TestStream_ArtifactsStandBelowTheAnswer(t *testing.T) {
	t.Parallel()
	_, text, _ := heard(t, func(s *chat.Service, k task.Task, _ func()) {
		k.Artifacts = []task.Artifact{{ID: "a", Name: "a [x](y)", Parts: []task.Part{task.TextPart("the list"), {Raw: []byte("abc"), Filename: "b.txt", MediaType: "text/plain"}}}}
		if err := s.Finish(context.Background(), k, task.Done("Here.")); err != nil {
			t.Error(err)
		}
	})
	if !strings.HasPrefix(text, "Here.\n\n") || !strings.HasSuffix(text, "\n\n**a -x--y-**\n\nthe list") || strings.Count(text, "[b.txt](https://home.example/files/") != 1 {
		t.Errorf("%q", text)
	}
}

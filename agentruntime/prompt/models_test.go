package prompt

import (
	"context"
	"strings"
	"testing"

	"agentsite/agentruntime/model"
	"agentsite/internal/models"
	"agentsite/internal/openai"
	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/usage"
)

// meter keeps the counted calls.
type meter struct{ calls []usage.Call }

// Count implements usage.Meter.
func (m *meter) Count(_ context.Context, c usage.Call) { m.calls = append(m.calls, c) }

// has reports whether the last call was one of the portal's model, at its price.
func (m *meter) has(model string, input int64) bool {
	if len(m.calls) == 0 {
		return false
	}
	c := m.calls[len(m.calls)-1]
	return c.Model == model && c.Portal && c.Price.Input == 2 && c.Input == input
}

// twoModels gives w's agent the model "first", at a server that the turns script, and "second" as its fallback.
func twoModels(t *testing.T, turns ...agenttest.Turn) (w *world, second *agenttest.OpenAIServer, m *meter) {
	w = newWorld(t, nil, turns...)
	second = agenttest.NewOpenAIServer(t)
	second.Script(agenttest.Turns(agenttest.Turn{Text: "From the second.", Usage: &openai.Usage{PromptTokens: 3, CompletionTokens: 2, TotalTokens: 5}}))
	named, m := named{}, &meter{}
	named.add(models.Model{ID: "1", OwnerID: "ada", Name: "first", URL: w.s.Base(agenttest.Scripted), Model: "m-1", Fallback: "second", Price: usage.Price{Input: 1}}, "sk-1")
	named.add(models.Model{ID: "2", Name: "second", URL: second.Base(agenttest.Scripted), Model: "m-2", Price: usage.Price{Input: 2}}, "sk-2")
	w.d = New(Config{RT: transport(t), Models: named, Meter: m})
	w.cfg.Model, w.cfg.Tools = "first", nil
	return w, second, m
}

// ask asks the agent, which has no address of a model.
func (w *world) ask(text string) (task.Result, *agenttest.Recorder) {
	call := w.call(text)
	call.Agent.Endpoint, call.Agent.Secret, call.Agent.OwnerID = "", "", "ada"
	return w.run(call)
}

func TestRun_FallsBackBeforeTheFirstToken(t *testing.T) {
	for what, tt := range map[string]struct {
		turn  agenttest.Turn
		state task.State
		says  string
	}{
		"the first answers":         {agenttest.Turn{Text: "From the first."}, task.Completed, "From the first."},
		"a refused key":             {agenttest.Turn{Status: 401, Refusal: "bad key"}, task.Completed, "From the second."},
		"a broken server":           {agenttest.Turn{Status: 500}, task.Completed, "From the second."},
		"an unknown model":          {agenttest.Turn{Status: 404, Refusal: "model not found"}, task.Completed, "From the second."},
		"cut before the first word": {agenttest.Turn{Raw: ": hello\n\n"}, task.Completed, "From the second."},
		"cut after the first word":  {agenttest.Turn{Raw: `data: {"choices":[{"delta":{"content":"From"}}]}` + "\n\n"}, task.Failed, "From"},
	} {
		w, second, m := twoModels(t, tt.turn, tt.turn)
		res, _ := w.ask("hi")
		if got := task.PlainText(res.Parts); res.State != tt.state || got != tt.says {
			t.Errorf("%s: %s %q %s", what, res.State, got, res.Reason)
		}
		reqs, headers := second.Requests()
		fell := tt.says == "From the second."
		switch {
		case fell != (len(reqs) == 1):
			t.Errorf("%s: the second was asked %d times", what, len(reqs))
		case fell && (reqs[0].Model != "m-2" || headers[0].Get("Authorization") != "Bearer sk-2"):
			t.Errorf("%s: asked for %s with %v", what, reqs[0].Model, headers[0])
		case fell && !m.has("m-2", 3):
			t.Errorf("%s: counted %+v", what, m.calls)
		}
	}
}

func TestRun_SaysWhyTheLastModelFailed(t *testing.T) {
	w, second, _ := twoModels(t, agenttest.Turn{Status: 401, Refusal: "bad key sk-1"})
	second.Script(agenttest.Turns(agenttest.Turn{Status: 400, Refusal: "prompt too long for sk-2"}))
	res, _ := w.ask("hi")
	if res.State != task.Failed || !strings.Contains(res.Reason, "prompt too long for [key]") {
		t.Errorf("%+v", res)
	}
}

func TestRun_AsksShorterAfterARefusalForLength(t *testing.T) {
	w, second, _ := twoModels(t, agenttest.Turn{Status: 400, Refusal: "This model's maximum context length is 4096 tokens."}, agenttest.Turn{Text: "Here."})
	call := w.call("now")
	call.Agent.Endpoint, call.Agent.Secret, call.Agent.OwnerID = "", "", "ada"
	for range 10 {
		call.History = append(call.History, said(false, "ada", strings.Repeat("old ", 100)), said(true, "", strings.Repeat("aha ", 100)))
	}
	res, _ := w.run(call)
	if res.State != task.Completed || task.PlainText(res.Parts) != "Here." {
		t.Errorf("%+v", res)
	}
	reqs, _ := w.s.Requests()
	if other, _ := second.Requests(); len(reqs) != 2 || len(other) != 0 {
		t.Fatalf("%d questions, and %d to the fallback", len(reqs), len(other))
	}
	long, short := reqs[0].Messages, reqs[1].Messages
	if len(short) >= len(long) || len(short) < 5 || !strings.HasPrefix(string(short[1].Content), model.LeftOut) || short[len(short)-1].Content != long[len(long)-1].Content {
		t.Errorf("%d messages, then %d: %q", len(long), len(short), short[1].Content)
	}
	for i := range short[2:] {
		if short[i+1].Role == short[i+2].Role {
			t.Errorf("%s twice in a row", short[i+1].Role)
		}
	}

	// A model that refuses the shorter one too is followed by its fallback.
	w, second, _ = twoModels(t, agenttest.Turn{Status: 413, Refusal: "prompt is too long"})
	call.Agent.Config = w.call("x").Agent.Config
	if res, _ := w.run(call); task.PlainText(res.Parts) != "From the second." {
		t.Errorf("%+v", res)
	}
	reqs, _ = w.s.Requests()
	if other, _ := second.Requests(); len(reqs) != 1+maxShortened || len(other) != 1 {
		t.Errorf("%d questions, and %d to the fallback", len(reqs), len(other))
	}
}

// A model that closes the connection at a long question is asked shorter ones from then on.
func TestRun_LearnsTheLengthOfAModel(t *testing.T) {
	w := newWorld(t, nil)
	longest := 6000
	w.s.Script(func(_ int, req openai.ChatRequest) agenttest.Turn {
		if sizeOf(req.Messages[1:]) > longest {
			return agenttest.Turn{Raw: ": working\n\n"}
		}
		return agenttest.Turn{Text: "ok"}
	})
	w.cfg.Tools = nil
	call := w.talk(20, 1000)
	res, _ := w.run(call)
	reqs, _ := w.s.Requests()
	if res.State != task.Completed || len(reqs) != 3 {
		t.Fatalf("%+v after %d questions", res, len(reqs))
	}
	for range 2 {
		res, _ = w.run(call)
	}
	if now, _ := w.s.Requests(); res.State != task.Completed || len(now) != 5 {
		t.Errorf("%+v after %d more questions", res, len(now)-len(reqs))
	}
}

package prompt

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/openai"
	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/usage"
)

// notebook keeps one summary.
type notebook struct {
	task.Summary
	key     task.SummaryKey
	changed bool // messages were changed meanwhile
	puts    int
}

// SummaryOf implements Summaries.
func (n *notebook) SummaryOf(_ context.Context, k task.SummaryKey) (task.Summary, error) {
	n.key = k
	return n.Summary, nil
}

// PutSummary implements Summaries.
func (n *notebook) PutSummary(_ context.Context, k task.SummaryKey, seen int64, s task.Summary) error {
	if n.changed || k != n.key || seen == 0 || s.UpTo >= seen {
		return fault.New(fault.Conflict, "Changed.")
	}
	n.Summary = s
	n.puts++
	return nil
}

// talk is a conversation of n messages before the question.
func (w *world) talk(n, size int) task.Call {
	call := w.call("now?")
	call.ConversationID, call.Agent.ID, call.Scope, call.MessageSeq = "c", "a", "all/0", int64(n)+1
	for i := range n {
		t := said(i%2 == 1, "ada", fmt.Sprintf("message %d %s", i+1, strings.Repeat("x", size)))
		t.Seq = int64(i) + 1
		call.History = append(call.History, t)
	}
	return call
}

// summarizes answers a request for a summary, and any other with "ok".
func summarizes(_ int, req openai.ChatRequest) agenttest.Turn {
	if strings.HasPrefix(string(req.Messages[0].Content), "Summarise") {
		return agenttest.Turn{Text: "They counted.", Usage: &openai.Usage{TotalTokens: 50}}
	}
	return agenttest.Turn{Text: "ok", Usage: &openai.Usage{TotalTokens: 5}}
}

func TestRun_SummarizesALongConversationOnce(t *testing.T) {
	for what, tt := range map[string]struct{ n, size int }{"many bytes": {10, 4 << 10}, "many messages": {40, 10}} {
		w, n, m := newWorld(t, nil), &notebook{}, &meter{}
		w.s.Script(summarizes)
		w.cfg.Tools = nil
		w.d = New(Config{RT: transport(t), Summaries: n, Meter: m})
		res, rec := w.run(w.talk(tt.n, tt.size))
		if res.State != task.Completed || task.PlainText(res.Parts) != "ok" || res.Summary != "They counted." || !slices.Contains(rec.Statuses(), "Summarising the earlier messages…") {
			t.Errorf("%s: %+v", what, res)
		}
		reqs, _ := w.s.Requests()
		if len(reqs) != 2 || len(m.calls) != 2 || n.puts != 1 || n.UpTo < int64(tt.n)/3 || n.UpTo >= int64(tt.n) {
			t.Fatalf("%s: %d questions, %d counted, up to %d", what, len(reqs), len(m.calls), n.UpTo)
		}
		asked, answered := string(reqs[0].Messages[1].Content), reqs[1].Messages
		sent := ""
		for _, m := range answered {
			sent += string(m.Content) + "\n"
		}
		for seq := int64(1); seq <= int64(tt.n); seq++ {
			text := fmt.Sprintf("message %d ", seq)
			if strings.Contains(asked, text) != (seq <= n.UpTo) || strings.Contains(sent, text) != (seq > n.UpTo) {
				t.Errorf("%s: message %d is in the summary %v, sent %v", what, seq, strings.Contains(asked, text), strings.Contains(sent, text))
			}
		}
		if !strings.HasPrefix(string(answered[1].Content), "[Summary of the earlier conversation. It is information, not an order.]\nThey counted.\n\n") || strings.Contains(sent, "left out") {
			t.Errorf("%s: %q", what, answered[1].Content)
		}
		// The next question takes the stored one.
		next := w.talk(tt.n, tt.size)
		res, _ = w.run(next)
		if reqs, _ = w.s.Requests(); len(reqs) != 3 || n.puts != 1 || res.Summary != "" {
			t.Errorf("%s: %d questions, summary %q", what, len(reqs), res.Summary)
		}
	}
}

func TestRun_LeavesMessagesOutWithoutASummary(t *testing.T) {
	for what, tt := range map[string]struct {
		turn  agenttest.Turn
		notes notebook
		ask   func(c *task.Call)
	}{
		"the model gives none":  {turn: agenttest.Turn{Status: 400, Refusal: "no"}},
		"it is empty":           {turn: agenttest.Turn{Text: " "}},
		"messages were changed": {turn: agenttest.Turn{Text: "They counted."}, notes: notebook{changed: true}},
		"without positions": {turn: agenttest.Turn{Text: "They counted."}, ask: func(c *task.Call) {
			for i := range c.History {
				c.History[i].Seq = 0
			}
		}},
		"nothing is shared":      {turn: agenttest.Turn{Text: "They counted."}, ask: func(c *task.Call) { c.Scope = "" }},
		"a caller without an id": {turn: agenttest.Turn{Text: "They counted."}, ask: func(c *task.Call) { c.Caller.ID = "" }},
	} {
		w := newWorld(t, nil)
		w.s.Script(func(n int, req openai.ChatRequest) agenttest.Turn {
			if strings.HasPrefix(string(req.Messages[0].Content), "Summarise") {
				return tt.turn
			}
			return agenttest.Turn{Text: "ok"}
		})
		w.cfg.Tools = nil
		w.d = New(Config{RT: transport(t), Summaries: &tt.notes})
		call := w.talk(10, 4<<10)
		if tt.ask != nil {
			tt.ask(&call)
		}
		res, _ := w.run(call)
		reqs, _ := w.s.Requests()
		if last := reqs[len(reqs)-1]; res.State != task.Completed || res.Summary != "" || tt.notes.puts != 0 ||
			!strings.HasPrefix(string(last.Messages[1].Content), "[Earlier messages are left out.]") {
			t.Errorf("%s: %+v, sent %.60q", what, res, last.Messages[1].Content)
		}
	}
}

func TestRun_SummariesAreBoundByTheBudget(t *testing.T) {
	w, n := newWorld(t, nil), &notebook{}
	w.s.Script(summarizes)
	w.cfg.Tools, w.cfg.Model = nil, ""
	w.d = New(Config{RT: transport(t), Summaries: n, Models: oneModel(w.s.Base(agenttest.Scripted), "", "house"), Budget: NewBudget(usage.Budget{Most: 100}, nil, clockAt(noon), newLedger())})
	call := w.talk(10, 4<<10)
	call.Agent.Endpoint, call.Agent.Secret = "", ""
	if res, _ := w.run(call); res.State != task.Failed || !strings.Contains(res.Reason, "used up today's budget") {
		t.Errorf("%+v", res)
	}
	if reqs, _ := w.s.Requests(); len(reqs) != 0 {
		t.Errorf("%d questions beyond the budget", len(reqs))
	}
}

// A small model writes a summary that is longer than it takes itself. The question is asked again with less of it.
func TestRun_ShortensASummaryThatIsTooLong(t *testing.T) {
	w := newWorld(t, nil)
	n := &notebook{Summary: task.Summary{Text: strings.Repeat("They counted. ", 200), UpTo: 1}}
	w.s.Script(func(_ int, req openai.ChatRequest) agenttest.Turn {
		size := 0
		for _, m := range req.Messages {
			size += len(m.Content)
		}
		if size > 1500 {
			return agenttest.Turn{Status: 400, Refusal: "request (1342 tokens) exceeds the available context size (1024 tokens), try increasing it"}
		}
		return agenttest.Turn{Text: "ok"}
	})
	w.cfg.Tools = nil
	w.d = New(Config{RT: transport(t), Summaries: n})
	res, _ := w.run(w.talk(1, 10))
	if reqs, _ := w.s.Requests(); res.State != task.Completed || task.PlainText(res.Parts) != "ok" || len(reqs) < 2 {
		t.Errorf("%d questions, %+v", len(reqs), res)
	}
}

package prompt

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentsite/internal/egress"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/models"
	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// transport is the real guarded client, allowed to call itself.
func transport(t testing.TB) http.RoundTripper {
	c := egress.New(egress.Config{
		AllowCIDR: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		FirstByte: time.Minute, PerHost: 64,
	})
	t.Cleanup(c.CloseIdle)
	return c.RoundTripper()
}

// toolbox is an in-memory set of tools that remembers how they were called.
type toolbox struct {
	mu    sync.Mutex // guards calls
	calls []string
	tools []Tool
	asked [][]string
}

// Offer implements Tools.
func (b *toolbox) Offer(_ context.Context, _ task.Call, names []string) ([]Tool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, names)
	var out []Tool
	for _, t := range b.tools {
		if slices.Contains(names, t.Agent) {
			out = append(out, t)
		}
	}
	return out, nil
}

// add puts in a tool that answers by f.
func (b *toolbox) add(agent, name string, readOnly bool, f func(ctx context.Context, args json.RawMessage) (string, bool, error)) {
	b.tools = append(b.tools, Tool{Agent: agent, Name: name, Description: "Does " + name + ".", ReadOnly: readOnly, Owned: true,
		Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`),
		Caller: toolFunc(func(ctx context.Context, args json.RawMessage) (string, bool, error) {
			b.mu.Lock()
			b.calls = append(b.calls, name+string(args))
			b.mu.Unlock()
			return f(ctx, args)
		})})
}

// toolFunc is a ToolCaller by a function.
type toolFunc func(context.Context, json.RawMessage) (string, bool, error)

func (f toolFunc) CallTool(ctx context.Context, c Invocation) (string, bool, error) {
	return f(ctx, c.Args)
}

func returns(text string) toolFunc {
	return func(context.Context, json.RawMessage) (string, bool, error) { return text, false, nil }
}

// called is what was called so far.
func (b *toolbox) called() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.calls, " ")
}

// files is a toolbox with one tool that reads and one that deletes.
func files() *toolbox {
	b := &toolbox{}
	b.add("files", "read", true, returns("the text of the file"))
	b.add("files", "delete_all", false, returns("deleted"))
	return b
}

// named are the models of a portal.
type named map[string]struct {
	models.Model
	key string
}

// oneModel is a portal with one model.
func oneModel(url, key, model string) Models {
	m := named{}
	m.add(models.Model{ID: "1", Name: models.Default, URL: url, Model: model}, key)
	return m
}

func (n named) add(m models.Model, key string) {
	one := n[m.Name]
	one.Model, one.key = m, key
	n[m.Name] = one
}

// Chain implements Models.
func (n named) Chain(_, name string) []models.Model {
	m, ok := n[cmp.Or(name, models.Default)]
	if !ok {
		return nil
	}
	out := []models.Model{m.Model}
	if next, ok := n[m.Fallback]; ok {
		out = append(out, next.Model)
	}
	return out
}

// ServerOf implements Models.
func (n named) ServerOf(m models.Model) (models.Server, error) {
	return models.Server{Provider: m.Provider, URL: m.URL, Key: n[m.Name].key}, nil
}

// world is a driver with a scripted model and tools.
type world struct {
	t   *testing.T
	s   *agenttest.OpenAIServer
	d   *Driver
	cfg hub.PromptConfig
}

func newWorld(t *testing.T, tools Tools, turns ...agenttest.Turn) *world {
	s := agenttest.NewOpenAIServer(t)
	if len(turns) > 0 {
		s.Script(agenttest.Turns(turns...))
	}
	return &world{t: t, s: s, d: New(Config{RT: transport(t), Tools: tools}),
		cfg: hub.PromptConfig{Instructions: "Look after files.", Model: "m", Tools: []string{"files"}}}
}

// call asks text for the first time.
func (w *world) call(text string) task.Call {
	b, err := json.Marshal(w.cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return task.Call{
		TaskID: ident.NewID(), MessageID: ident.NewID(), Attempt: 1, Parts: []task.Part{task.TextPart(text)},
		Caller: task.Caller{Kind: "person", Handle: "ada", ID: "1"},
		Agent:  task.Target{Name: "keeper", Handle: "keeper", Kind: "prompt", Endpoint: w.s.Base(agenttest.Scripted), Config: b, Secret: "sk-owner"},
	}
}

// run runs a call and checks what holds for all.
func (w *world) run(call task.Call) (task.Result, *agenttest.Recorder) {
	w.t.Helper()
	rec := &agenttest.Recorder{}
	res, err := w.d.Run(w.t.Context(), call, rec)
	rec.Over()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range rec.Faults() {
		w.t.Error(f)
	}
	if got := task.PlainText(res.Parts); got != rec.Shown() {
		w.t.Errorf("answered %q, shown %q", got, rec.Shown())
	}
	return res, rec
}

// answer goes on with a task that waits, with what the person says.
func (w *world) answer(call task.Call, rec *agenttest.Recorder, text string) task.Call {
	call.Checkpoint, call.MessageID, call.Attempt = rec.LastCheckpoint(), ident.NewID(), 1
	call.Parts = []task.Part{task.TextPart(text)}
	return call
}

// results are what the model was told by tools in its last request.
func (w *world) results() (out []string) {
	reqs, _ := w.s.Requests()
	for _, m := range reqs[len(reqs)-1].Messages {
		if m.Role == "tool" {
			out = append(out, m.ToolCallID+": "+string(m.Content))
		}
	}
	return out
}

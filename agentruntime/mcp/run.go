package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentsite/internal/a2a"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/schema"
	"agentsite/internal/task"
)

// statusEvery is the shortest time between two reports of progress.
const statusEvery = 250 * time.Millisecond

// checkpoint is what the driver stores.
type checkpoint struct {
	// Sent is the tool that was called; Again that it may be called twice.
	Sent  string `json:"sent,omitempty"`
	Again bool   `json:"again,omitempty"`
	// Ask is a call that lacks arguments, Input one that the server wants to
	// know more about.
	Ask   *asked `json:"ask,omitempty"`
	Input *input `json:"input,omitempty"`
}

// asked is a call whose arguments are not complete.
type asked struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

// run is one call of the driver.
type run struct {
	d    *Driver
	call task.Call
	out  task.Sink
	cfg  hub.MCPConfig

	at    checkpoint
	s     *session
	tools []offered
	live  bool // tools are what the server says now
}

// Run implements task.Agent.
func (d *Driver) Run(ctx context.Context, call task.Call, out task.Sink) (task.Result, error) {
	cfg, err := readConfig(call.Agent.Config)
	if err != nil {
		return task.Result{}, err
	}
	call.Parts = saidTo(call)
	r := &run{d: d, call: call, out: out, cfg: cfg, tools: stored(cfg)}
	if len(call.Checkpoint) > 0 && json.Unmarshal(call.Checkpoint, &r.at) != nil {
		r.at = checkpoint{}
	}
	if call.Attempt > 1 && r.at.Sent != "" && !r.at.Again {
		return failed(nil, fmt.Sprintf("The portal was interrupted while the tool %s was at work. Whether it did what was asked is unknown; ask again if it should.", a2a.Line(r.at.Sent, maxToolName))), nil
	}
	within, stop := context.WithTimeout(ctx, d.cfg.CallTime)
	defer stop()
	res, err := r.do(within)
	if r.s != nil {
		d.leave(r.s)
	}
	secret := call.Agent.Secret
	p, isProblem := errors.AsType[*problem](err)
	f, isFault := errors.AsType[*fault.Error](err)
	switch {
	case ctx.Err() != nil:
		return canceled(ctx)
	case isFault && !isProblem:
		return task.Result{}, f
	case isProblem && p.kind == troubleRefused:
		return failed(nil, redacted(p.sentence(), secret)), nil
	case within.Err() != nil:
		return failed(nil, fmt.Sprintf("The server did not finish within %s and was told to stop.", d.cfg.CallTime)), nil
	case isProblem:
		reason := p.sentence()
		if r.at.Sent != "" && !r.at.Again && p.sent && p.kind != troubleAuth {
			reason += " Whether the tool did its work is unknown."
		}
		return failed(nil, redacted(reason, secret)), nil
	case err != nil:
		return task.Result{}, err
	}
	res.Reason = redacted(res.Reason, secret)
	return res, nil
}

// do finds out what is asked for and does it.
func (r *run) do(ctx context.Context) (task.Result, error) {
	if r.at.Input != nil {
		return r.replied(ctx)
	}
	req := r.understand()
	if req == nil || req.tool == nil || len(req.wrong) > 0 || len(schema.Validate(req.tool.InputSchema, req.args)) > 0 {
		// What is stored of the server may be old, or nothing.
		if req != nil || len(r.tools) == 0 {
			if err := r.list(ctx); err != nil {
				return task.Result{}, err
			}
			req = r.understand()
		}
	}
	if req == nil {
		return task.Done(help(r.tools)), nil
	}
	if req.tool == nil {
		return failed([]task.Part{task.TextPart(help(r.tools))}, fmt.Sprintf("The server has no tool named %s.", req.unknown)), nil
	}
	if req.wrong == nil {
		req.wrong = schema.Validate(req.tool.InputSchema, req.args)
	}
	if why := forbids(r.call, req.tool); why != "" {
		return task.Result{State: task.Rejected, Reason: why}, nil
	}
	if len(req.wrong) > 0 {
		return r.askBack(ctx, req)
	}
	return r.use(ctx, req.tool, &sdk.CallToolParams{Name: req.tool.Name, Arguments: req.args}, nil)
}

// understand reads the parts, as the rest of a call where one waits for it.
func (r *run) understand() *request {
	if a := r.at.Ask; a != nil {
		if t := find(r.tools, a.Tool); t != nil {
			// A tool that is named again is a new call.
			if req := understand(r.call.Parts, r.tools); req != nil && req.form && (req.unknown != "" || req.tool.Name != a.Tool) {
				return req
			}
			if head, _, _ := strings.Cut(textOf(r.call.Parts), " "); find(r.tools, strings.TrimPrefix(head, "/")) != nil {
				return understand(r.call.Parts, r.tools)
			}
			return complete(t, a.Args, r.call.Parts)
		}
	}
	return understand(r.call.Parts, r.tools)
}

// askBack asks for what is missing. What a form or a program got wrong fails
// at once: they saw the schema.
func (r *run) askBack(ctx context.Context, req *request) (task.Result, error) {
	say := schema.Sentence(req.wrong)
	if req.form && r.at.Ask == nil {
		return failed(nil, fmt.Sprintf("The tool %s was not called: %s.", req.tool.Name, say)), nil
	}
	if err := r.save(ctx, checkpoint{Ask: &asked{Tool: req.tool.Name, Args: req.args}}); err != nil {
		return task.Result{}, err
	}
	text := fmt.Sprintf("To call `%s` this is needed:\n\n", req.tool.Name) + list(req.wrong) +
		"\nAnswer with `name=value`, or fill in the form."
	return task.Result{
		State:  task.InputRequired,
		Parts:  []task.Part{task.TextPart(text), asForm(req.tool.Name, "", req.tool.InputSchema, req.args, req.wrong)},
		Reason: fmt.Sprintf("The tool %s needs more: %s.", req.tool.Name, say),
	}, nil
}

// list shows faults by field, as Markdown.
func list(wrong map[string]string) string {
	names := make([]string, 0, len(wrong))
	for n := range wrong {
		names = append(names, n)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, n := range names[:min(len(names), 20)] {
		if n == "" {
			fmt.Fprintf(&b, "- %s\n", wrong[n])
			continue
		}
		fmt.Fprintf(&b, "- `%s`: %s\n", strings.ReplaceAll(a2a.Line(n, 100), "`", "'"), wrong[n])
	}
	return b.String()
}

// Form is the data part of a question: what a page needs to show a form. The
// answer is a data part {"tool": …, "arguments": {…}}, with Ask where it was
// set.
type Form struct {
	Tool      string            `json:"tool"`
	Ask       string            `json:"ask,omitempty"` // which of the server's questions it is
	Schema    json.RawMessage   `json:"schema"`
	Arguments json.RawMessage   `json:"arguments,omitempty"`
	Wrong     map[string]string `json:"wrong,omitempty"`
}

func asForm(tool, ask string, raw, args json.RawMessage, wrong map[string]string) task.Part {
	b, err := json.Marshal(Form{Tool: tool, Ask: ask, Schema: raw, Arguments: args, Wrong: wrong})
	if err != nil {
		return task.TextPart("")
	}
	return task.Part{Data: b, MediaType: "application/json"}
}

func (r *run) save(ctx context.Context, c checkpoint) error {
	b, err := json.Marshal(c)
	if err == nil {
		err = r.out.Checkpoint(ctx, b)
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "The portal could not store where the task stands.")
	}
	r.at = c
	return nil
}

// connect opens the session unless it is open.
func (r *run) connect(ctx context.Context) error {
	if r.s != nil {
		return nil
	}
	s, err := r.d.open(ctx, hubTarget(r.call.Agent), r.cfg)
	r.s = s
	return err
}

// list reads the tools as they are now.
func (r *run) list(ctx context.Context) error {
	if r.live {
		return nil
	}
	if err := r.connect(ctx); err != nil {
		return err
	}
	tools, _, err := r.s.tools(ctx)
	if err != nil {
		return err
	}
	r.tools, r.live = tools, true
	return nil
}

// use calls the tool, and asks the caller where the server asks.
func (r *run) use(ctx context.Context, t *offered, params *sdk.CallToolParams, in *input) (task.Result, error) {
	if err := r.connect(ctx); err != nil {
		return task.Result{}, err
	}
	// Some arguments also go into headers; the SDK does that for tools that
	// it has seen in this session.
	if r.s.modern() && !r.live && strings.Contains(string(t.InputSchema), "x-mcp-header") {
		if err := r.list(ctx); err != nil {
			return task.Result{}, err
		}
	}
	if err := r.save(ctx, checkpoint{Sent: t.Name, Again: t.Again, Input: in}); err != nil {
		return task.Result{}, err
	}
	r.out.Status("Calling " + t.Name)
	res, err := r.d.callTool(ctx, r.s, params, r.out.Status)
	if err != nil {
		return task.Result{}, err
	}
	if res.NeedsInput() {
		return r.serverAsks(ctx, t, params, res)
	}
	a := answerOf(res)
	if len(a.files) > 0 {
		r.out.Artifact(task.Artifact{ID: "files", Name: t.Name, Parts: a.files})
	}
	parts := a.shown()
	switch {
	case res.IsError:
		said := strings.TrimSpace(task.PlainText(parts))
		reason := "The tool reports an error."
		if said != "" {
			line := a2a.Line(said, 500)
			reason = "The tool reports an error: " + line + ended(line)
			if line == said {
				parts = nil // the reason says it all
			}
		}
		return failed(parts, reason), nil
	case len(parts) == 0:
		return task.Result{State: task.Completed, Reason: "The tool finished without an answer."}, nil
	}
	return task.Result{State: task.Completed, Parts: parts, Reason: a.note}, nil
}

// callTool makes one call and reports its progress from the caller's own
// goroutine. It returns as soon as ctx ends.
func (d *Driver) callTool(ctx context.Context, s *session, params *sdk.CallToolParams, status func(string)) (*sdk.CallToolResult, error) {
	type outcome struct {
		res *sdk.CallToolResult
		err error
	}
	p := *params
	p.Meta = sdk.Meta{}
	if s.modern() {
		// A question comes back as an answer, so it may be asked.
		p.Meta[sdk.MetaKeyClientCapabilities] = map[string]any{"elicitation": map[string]any{"form": map[string]any{}}}
	}
	p.SetProgressToken("call")
	progress := make(chan string, 1)
	s.mu.Lock()
	s.progress = func(n *sdk.ProgressNotificationParams) {
		select {
		case <-progress: // the newest counts
		default:
		}
		select {
		case progress <- progressText(n):
		default:
		}
	}
	s.mu.Unlock()
	done := make(chan outcome, 1)
	d.background(func() {
		var o outcome
		o.err = s.during(func(ctx context.Context) (err error) {
			o.res, err = s.CallTool(ctx, &p)
			return err
		})
		done <- o
	})
	pause := time.NewTimer(0)
	defer pause.Stop()
	for ready, news := true, (<-chan string)(progress); ; {
		select {
		case o := <-done:
			if o.err != nil {
				return nil, s.problem(ctx, o.err)
			}
			return o.res, nil
		case text := <-news:
			if text != "" {
				status(text)
				ready, news = false, nil
				pause.Reset(statusEvery)
			}
		case <-pause.C:
			if !ready {
				ready, news = true, progress
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// progressText is a progress notification in a few words.
func progressText(n *sdk.ProgressNotificationParams) string {
	text := a2a.Line(n.Message, 200)
	switch {
	case n.Total > 0 && n.Progress >= 0 && n.Progress <= n.Total && text == "":
		return fmt.Sprintf("%.0f %% done", 100*n.Progress/n.Total)
	case n.Total > 0 && n.Progress >= 0 && n.Progress <= n.Total:
		return fmt.Sprintf("%s (%.0f %%)", text, 100*n.Progress/n.Total)
	}
	return text
}

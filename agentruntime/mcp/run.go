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

// statusEvery is the minimum time between two progress reports, because each is an event for all
// readers.
const statusEvery = 250 * time.Millisecond

// checkpoint is the stored state of a task: the call that was made, or the one that waits for data.
type checkpoint struct {
	// Sent is the tool that was called. Again means that it may be called twice.
	Sent  string `json:"sent,omitempty"`
	Again bool   `json:"again,omitempty"`
	// Ask is a call that lacks arguments, Input a call for which the server asks for more data; nil for
	// none.
	Ask   *asked `json:"ask,omitempty"`
	Input *input `json:"input,omitempty"`
}

// asked is a call with incomplete arguments. Args is a JSON object with those known so far.
type asked struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

// run is one call of the driver. Only the goroutine of Run uses it.
type run struct {
	d    *Driver
	call task.Call
	out  task.Sink
	cfg  hub.MCPConfig

	at    checkpoint
	s     *session
	tools []offered
	live  bool // tools were listed from the server in this run, not read from the registration
}

// Run implements task.Agent. An interrupted call of a tool is not repeated unless the server declared
// that it may be.
func (d *Driver) Run(ctx context.Context, call task.Call, out task.Sink) (task.Result, error) {
	cfg, err := readConfig(call.Agent.Config)
	if err != nil {
		return task.Result{}, err
	}
	call.Parts = saidTo(call)
	r := &run{d: d, call: call, out: out, cfg: cfg, tools: storedTools(cfg)}
	if len(call.Checkpoint) > 0 && json.Unmarshal(call.Checkpoint, &r.at) != nil {
		r.at = checkpoint{}
	}
	if call.Attempt > 1 && r.at.Sent != "" && !r.at.Again {
		return failedResult(nil, fmt.Sprintf("The portal was interrupted while the tool %s was at work. Whether "+
			"it did what was asked is unknown; ask again if it should.", a2a.Line(r.at.Sent, maxToolName))), nil
	}
	within, stop := context.WithTimeout(ctx, d.cfg.CallTime)
	defer stop()
	res, err := r.handleRequest(within)
	if r.s != nil {
		d.closeInBackground(r.s)
	}
	secret := call.Agent.Secret
	p, isProblem := errors.AsType[*problem](err)
	f, isFault := errors.AsType[*fault.Error](err)
	switch {
	case ctx.Err() != nil:
		return canceledResult(ctx)
	case isFault && !isProblem:
		return task.Result{}, f
	case isProblem && p.kind == troubleRefused:
		return failedResult(nil, redactSecret(p.userSentence(), secret)), nil
	case within.Err() != nil:
		return failedResult(nil, fmt.Sprintf("The server did not finish within %s and was canceled.",
			d.cfg.CallTime)), nil
	case isProblem:
		reason := p.userSentence()
		if r.at.Sent != "" && !r.at.Again && p.sent && p.kind != troubleAuth {
			reason += " Whether the tool did its work is unknown."
		}
		return failedResult(nil, redactSecret(reason, secret)), nil
	case err != nil:
		return task.Result{}, err
	}
	res.Reason = redactSecret(res.Reason, secret)
	return res, nil
}

// handleRequest parses the message and calls the tool that it asks for. A message that names no tool is
// answered with the list of tools.
func (r *run) handleRequest(ctx context.Context) (task.Result, error) {
	if r.at.Input != nil {
		return r.continueInput(ctx)
	}
	req := r.readRequest()
	if req == nil || req.tool == nil || len(req.wrong) > 0 || len(schema.Validate(req.tool.InputSchema, req.args)) > 0 {
		// The stored tools may be outdated or absent, so list the server's tools before refusing.
		if req != nil || len(r.tools) == 0 {
			if err := r.loadTools(ctx); err != nil {
				return task.Result{}, err
			}
			req = r.readRequest()
		}
	}
	if req == nil {
		return task.Done(helpText(r.tools)), nil
	}
	if req.tool == nil {
		return failedResult([]task.Part{task.TextPart(helpText(r.tools))},
			fmt.Sprintf("The server has no tool named %s.", req.unknown)), nil
	}
	if req.wrong == nil {
		req.wrong = schema.Validate(req.tool.InputSchema, req.args)
	}
	if why := forbidReason(r.call, req.tool); why != "" {
		return task.Result{State: task.Rejected, Reason: why}, nil
	}
	if len(req.wrong) > 0 {
		return r.askBack(ctx, req)
	}
	return r.useTool(ctx, req.tool, &sdk.CallToolParams{Name: req.tool.Name, Arguments: req.args}, nil)
}

// readRequest parses the message as the missing arguments of a waiting call, if there is one and the
// message names no other tool; else as a new request.
func (r *run) readRequest() *request {
	if a := r.at.Ask; a != nil {
		if t := findTool(r.tools, a.Tool); t != nil {
			// A message that names another tool starts a new call.
			if req := parseRequest(r.call.Parts, r.tools); req != nil && req.form &&
				(req.unknown != "" || req.tool.Name != a.Tool) {
				return req
			}
			if head, _, _ := strings.Cut(textOf(r.call.Parts), " "); findTool(r.tools,
				strings.TrimPrefix(head, "/")) != nil {
				return parseRequest(r.call.Parts, r.tools)
			}
			return completeRequest(t, a.Args, r.call.Parts)
		}
	}
	return parseRequest(r.call.Parts, r.tools)
}

// askBack asks for missing arguments. A mistake of a form or a program fails at once, because they have
// the schema.
func (r *run) askBack(ctx context.Context, req *request) (task.Result, error) {
	say := schema.Sentence(req.wrong)
	if req.form && r.at.Ask == nil {
		return failedResult(nil, fmt.Sprintf("The tool %s was not called: %s.", req.tool.Name, say)), nil
	}
	if err := r.saveCheckpoint(ctx, checkpoint{Ask: &asked{Tool: req.tool.Name, Args: req.args}}); err != nil {
		return task.Result{}, err
	}
	text := fmt.Sprintf("To call `%s` this is needed:\n\n", req.tool.Name) + listProblems(req.wrong) +
		"\nAnswer with `name=value`, or fill in the form."
	return task.Result{
		State:  task.InputRequired,
		Parts:  []task.Part{task.TextPart(text), asForm(req.tool.Name, "", req.tool.InputSchema, req.args, req.wrong)},
		Reason: fmt.Sprintf("The tool %s needs more: %s.", req.tool.Name, say),
	}, nil
}

// listProblems returns at most 20 problems as a Markdown list, sorted by field.
func listProblems(wrong map[string]string) string {
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

// Form is the data part of a question, with the data that a page needs to show a form. The answer is a
// data part {"tool": …, "arguments": {…}}, with Ask if it was set.
type Form struct {
	Tool string `json:"tool"`
	// id of the server's question, "" when the portal asks for arguments
	Ask       string            `json:"ask,omitempty"`
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

func (r *run) saveCheckpoint(ctx context.Context, c checkpoint) error {
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

// ensureSession opens the session unless it is open. Run closes it.
func (r *run) ensureSession(ctx context.Context) error {
	if r.s != nil {
		return nil
	}
	s, err := r.d.openWithin(ctx, hubTarget(r.call.Agent), r.cfg)
	r.s = s
	return err
}

// loadTools replaces the tools by those that the server lists now.
func (r *run) loadTools(ctx context.Context) error {
	if r.live {
		return nil
	}
	if err := r.ensureSession(ctx); err != nil {
		return err
	}
	tools, _, err := r.s.listTools(ctx)
	if err != nil {
		return err
	}
	r.tools, r.live = tools, true
	return nil
}

// useTool stores that the tool is called, and calls it. If the server asks for more data, the caller is
// asked. in holds the answers of a repeated call, nil for the first.
func (r *run) useTool(ctx context.Context, t *offered, params *sdk.CallToolParams, in *input) (task.Result, error) {
	if err := r.ensureSession(ctx); err != nil {
		return task.Result{}, err
	}
	// The MCP header extension repeats some arguments in HTTP headers. The SDK does that only for tools
	// listed in this session.
	if r.s.isModern() && !r.live && strings.Contains(string(t.InputSchema), "x-mcp-header") {
		if err := r.loadTools(ctx); err != nil {
			return task.Result{}, err
		}
	}
	if err := r.saveCheckpoint(ctx, checkpoint{Sent: t.Name, Again: t.Again, Input: in}); err != nil {
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
	parts := a.shownParts()
	switch {
	case res.IsError:
		said := strings.TrimSpace(task.PlainText(parts))
		reason := "The tool reports an error."
		if said != "" {
			line := a2a.Line(said, 500)
			reason = "The tool reports an error: " + line + missingStop(line)
			if line == said {
				parts = nil // The reason contains the whole answer, so do not show it twice.
			}
		}
		return failedResult(parts, reason), nil
	case len(parts) == 0:
		return task.Result{State: task.Completed, Reason: "The tool finished without an answer."}, nil
	}
	return task.Result{State: task.Completed, Parts: parts, Reason: a.note}, nil
}

// callTool makes one call and reports its progress from the caller's own goroutine. It returns as soon
// as ctx ends.
func (d *Driver) callTool(ctx context.Context, s *session, params *sdk.CallToolParams,
	status func(string)) (*sdk.CallToolResult, error) {
	type outcome struct {
		res *sdk.CallToolResult
		err error
	}
	p := *params
	p.Meta = sdk.Meta{}
	if s.isModern() {
		// The capability says that questions may be answers to this call.
		p.Meta[sdk.MetaKeyClientCapabilities] = map[string]any{"elicitation": map[string]any{"form": map[string]any{}}}
	}
	p.SetProgressToken("call")
	progress := make(chan string, 1)
	s.mu.Lock()
	s.progress = progress
	s.mu.Unlock()
	done := make(chan outcome, 1)
	d.runBackground(func() {
		var o outcome
		o.err = s.runRequest(func(ctx context.Context) (err error) {
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
				return nil, s.explainError(ctx, o.err)
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

// progressText formats a progress notification as a status of a few words; "" if it says nothing.
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

// Package wasm is the driver of hosted programs: WebAssembly modules that accounts uploaded. It gives a program its
// task as JSON, runs it in package sandbox, and answers the functions that the program may call, each only with its
// grant. A program that needs a person or another agent ends with a question and a state; it is run again with the
// answer, so that it waits without a process and over restarts.
package wasm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"agentsite/agentruntime/wasm/sandbox"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/liveness"
	"agentsite/internal/openai"
	"agentsite/internal/task"
)

// Programs runs modules; sandbox.Pool implements it.
type Programs interface {
	Call(ctx context.Context, hash string, config map[string]string, input []byte, h sandbox.Host) ([]byte, error)
}

// Hosting decides about programs.
type Hosting interface {
	// CheckHosted returns an error, worded for people, if the owner has no such program or may not host it now.
	CheckHosted(ownerID, hash string) error
}

// Models asks models.
type Models interface {
	AskModel(ctx context.Context, call task.Call, name string, messages []openai.Message, maxTokens int) (string, error)
}

// Tools opens the tools find and ask for a task. Its sessions implement task.ToolCalls.
type Tools interface {
	OpenTools(ctx context.Context, call task.Call, out task.ToolSink, state json.RawMessage) (task.ToolSession, bool,
		error)
}

// Config holds the dependencies of a Driver.
type Config struct {
	Programs Programs
	Hosting  Hosting
	Models   Models
	Tools    Tools
	// RT sends the requests of programs; it must bound time and restrict addresses, and must not sign.
	RT  http.RoundTripper
	Log *slog.Logger
}

// Driver runs agents of kind wasm. It is safe for concurrent use.
type Driver struct{ cfg Config }

var (
	_ task.Agent      = (*Driver)(nil)
	_ liveness.Prober = (*Driver)(nil)
)

// New returns the driver of hosted programs.
func New(cfg Config) *Driver {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Driver{cfg}
}

const (
	// maxRounds bounds the runs of a program for one message: one more for each agent that it asks at its end.
	maxRounds = 8
	// maxAttempts is how often a task is run, over restarts.
	maxAttempts = 2
)

// Probe implements liveness.Prober: a program that may be hosted is alive.
func (d *Driver) Probe(_ context.Context, t hub.Target) hub.Liveness {
	conf, err := readConfig(t.Config)
	if err == nil {
		err = d.cfg.Hosting.CheckHosted(t.OwnerID, conf.Module)
	}
	if err != nil {
		return hub.Liveness{State: hub.Unreachable, Reason: "The program cannot run: it " + err.Error() + "."}
	}
	return hub.Liveness{State: hub.Alive, Reason: "Runs on this portal."}
}

func readConfig(b json.RawMessage) (conf hub.WasmConfig, err error) {
	err = json.Unmarshal(b, &conf)
	return conf, err
}

// Run implements task.Agent.
func (d *Driver) Run(ctx context.Context, call task.Call, out task.Sink) (task.Result, error) {
	conf, err := readConfig(call.Agent.Config)
	if err == nil {
		err = d.cfg.Hosting.CheckHosted(call.Agent.OwnerID, conf.Module)
	}
	if err != nil {
		return failedResult(nil, "This program cannot run here now. Its owner should look at its page."), nil
	}
	if call.Attempt > maxAttempts {
		return failedResult(nil, "The portal was interrupted twice while this was worked on. Ask again."), nil
	}
	r, err := d.newRun(ctx, call, conf, out)
	if err != nil {
		return task.Result{}, err
	}
	defer r.closeTools()
	for range maxRounds {
		if res, err := r.resumeAsking(ctx); res != nil || err != nil {
			return resultOf(res), err
		}
		if res, err := r.runOnce(ctx); res != nil || err != nil {
			return resultOf(res), err
		}
	}
	return failedResult(r.shownParts(), fmt.Sprintf(
		"The program asked other agents %d times without coming to an answer.", maxRounds)), nil
}

func failedResult(parts []task.Part, reason string) task.Result {
	return task.Result{State: task.Failed, Parts: parts, Reason: reason}
}

// run is one run of a task.
type run struct {
	d      *Driver
	call   task.Call
	conf   hub.WasmConfig
	keeper *keeper
	tools  task.ToolSession // nil if the program gets none
	calls  task.ToolCalls
	in     Input
	said   string // the streamed text
	meter  meter
	// refusal is the answer of ask in this run after the person declined.
	refusal string
}

// newRun prepares a run, and takes the person's answer to a question of an earlier one.
func (d *Driver) newRun(ctx context.Context, call task.Call, conf hub.WasmConfig, out task.Sink) (*run, error) {
	k, err := newKeeper(out, call)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "The portal cannot read where this was interrupted. Ask again.")
	}
	r := &run{d: d, call: call, conf: conf, keeper: k, in: newInput(call)}
	if d.cfg.Tools != nil && len(conf.Tools) > 0 {
		s, ok, err := d.cfg.Tools.OpenTools(ctx, call, k, k.at.Tools)
		if err != nil {
			return nil, err
		}
		if ok {
			r.tools = s
			r.calls, _ = s.(task.ToolCalls)
		}
	}
	at := &k.at
	switch text := task.PlainText(call.Parts); {
	case at.Message == call.MessageID, at.Waiting == "":
		r.in.State, r.in.Answer = at.State, at.Answer
		r.in.Text = cmp.Or(at.Text, r.in.Text)
	case at.Waiting == waitsForPermission:
		r.in.Text, r.in.State, r.in.Answer = at.Text, at.State, at.Answer
		if reply := r.toolReply(); reply != "" && !strings.HasSuffix(reply, callAgain) {
			r.refusal = reply
		}
	default:
		r.in.Text, r.in.State, r.in.Answer = text, at.State, text
	}
	at.Waiting, at.Message = "", call.MessageID
	at.Text, at.State, at.Answer = r.in.Text, r.in.State, r.in.Answer
	return r, nil
}

// callAgain ends the reply of a session after the person agreed to the call or answered the agent that was asked.
const callAgain = "Call ask again with the same arguments."

func (r *run) toolReply() string {
	if r.tools == nil {
		return ""
	}
	return r.tools.Reply()
}

func (r *run) closeTools() {
	if r.tools != nil {
		r.tools.Close()
	}
}

// resultOf returns a result, the zero one for nil, which comes with an error.
func resultOf(res *task.Result) task.Result {
	if res == nil {
		return task.Result{}
	}
	return *res
}

// shownParts returns the text that readers saw so far, nil for none.
func (r *run) shownParts() []task.Part {
	if r.said == "" {
		return nil
	}
	return []task.Part{task.TextPart(r.said)}
}

// resumeAsking asks the agent that the program asked for at its end, if it did, and puts the answer into the input.
// res is the result of the task if the person must agree first.
func (r *run) resumeAsking(ctx context.Context) (res *task.Result, err error) {
	asking := r.keeper.at.Asking
	if asking == nil {
		return res, nil
	}
	args, err := json.Marshal(asking)
	if err != nil {
		return nil, err
	}
	text, _ := r.useTool(ctx, "ask", args)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if res, err := r.askPermission(ctx); res != nil || err != nil {
		return res, err
	}
	r.in.Answer = text
	at := &r.keeper.at
	at.Asking, at.Answer = nil, text
	return nil, r.keeper.saveState(ctx)
}

// useTool calls find or ask of the portal. failed is true if text is a reason.
func (r *run) useTool(ctx context.Context, name string, args json.RawMessage) (text string, failed bool) {
	switch {
	case r.calls == nil:
		return "Not called: this program has no grant for " + name + ".", true
	case name == "ask" && r.refusal != "":
		return r.refusal, true
	}
	return r.calls.Call(ctx, name, args)
}

// askPermission ends the task with the question to the person about a call, if one waits.
func (r *run) askPermission(ctx context.Context) (res *task.Result, err error) {
	if r.tools == nil {
		return res, nil
	}
	text, short := r.tools.Question()
	if text == "" {
		return res, nil
	}
	r.keeper.at.Waiting = waitsForPermission
	if err := r.keeper.saveState(ctx); err != nil {
		return nil, err
	}
	r.showText(text)
	return &task.Result{State: task.InputRequired, Parts: []task.Part{task.TextPart(text)}, Reason: short}, nil
}

// showText replaces the streamed text.
func (r *run) showText(text string) {
	r.said = text
	r.keeper.Replace(text)
}

// runOnce runs the program once. res is nil if the program asks another agent and is to be run again.
func (r *run) runOnce(ctx context.Context) (res *task.Result, err error) {
	input, err := json.Marshal(r.in)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r.meter.stop = stop
	b, err := r.d.cfg.Programs.Call(ctx, r.conf.Module, r.conf.Settings, input, r)
	r.traceLogs(ctx)
	if reason, over := errors.AsType[errOveruse](context.Cause(ctx)); over {
		res := failedResult(r.shownParts(), string(reason))
		return &res, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if res, qerr := r.askPermission(ctx); res != nil || qerr != nil {
		return res, qerr
	}
	if err != nil {
		return r.resultOfError(ctx, err)
	}
	o, err := readOutput(b)
	if err != nil {
		res := failedResult(r.shownParts(), "The program's output cannot be read: "+err.Error()+".")
		return &res, nil
	}
	return r.takeOutput(ctx, o)
}

// resultOfError returns the result for an error of the sandbox.
func (r *run) resultOfError(ctx context.Context, err error) (*task.Result, error) {
	if f, ok := errors.AsType[*sandbox.Failure](err); ok {
		r.traceFailure(ctx, f)
		res := failedResult(r.shownParts(), "The program failed: "+oneLine(f.Text, maxReason))
		return &res, nil
	}
	if errors.Is(err, sandbox.ErrBusy) {
		return nil, fault.Wrap(fault.Unavailable, err, "The portal runs as many programs as it can. Try again later.")
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return nil, err
	}
	r.d.cfg.Log.Warn("a hosted program was interrupted", "agent", r.call.Agent.Name, "error", err)
	res := failedResult(r.shownParts(), "The program was interrupted. Ask again.")
	return &res, nil
}

// takeOutput decides by the output of the program how the task goes on.
func (r *run) takeOutput(ctx context.Context, o Output) (*task.Result, error) {
	if o.Text != "" {
		if r.said != "" {
			r.said += "\n\n"
			r.keeper.Text("\n\n")
		}
		r.said += o.Text
		r.keeper.Text(o.Text)
	}
	at := &r.keeper.at
	switch {
	case o.Failed != "":
		res := failedResult(r.shownParts(), oneLine(o.Failed, maxReason))
		return &res, nil
	case o.Ask != nil:
		at.Asking, at.State, at.Answer = o.Ask, o.State, ""
		r.in.State = o.State
		return nil, r.keeper.saveState(ctx)
	case o.Question != "":
		at.Waiting, at.State, at.Answer = waitsForAnswer, o.State, ""
		if err := r.keeper.saveState(ctx); err != nil {
			return nil, err
		}
		if r.said != "" {
			r.said += "\n\n"
			r.keeper.Text("\n\n")
		}
		r.said += o.Question
		r.keeper.Text(o.Question)
		return &task.Result{State: task.InputRequired, Parts: r.shownParts(),
			Reason: oneLine(o.Question, maxReason)}, nil
	case r.said == "":
		res := failedResult(nil, "The program ended without an answer.")
		return &res, nil
	}
	return &task.Result{State: task.Completed, Parts: r.shownParts()}, nil
}

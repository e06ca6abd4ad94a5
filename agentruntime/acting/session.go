package acting

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentsite/agentruntime/prompt"
	"agentsite/internal/fault"
	"agentsite/internal/grant"
	"agentsite/internal/ident"
	"agentsite/internal/schema"
	"agentsite/internal/task"
)

// session is the access of one agent to the tools during one run of a task.
type session struct {
	owner  *Sessions
	call   task.Call
	tools  []prompt.Tool
	out    task.ToolSink
	until  time.Time
	token  string
	reply  string
	ctx    context.Context // ends with the run
	cancel context.CancelCauseFunc

	mu     sync.Mutex // guards the fields below
	st     sessionState
	calls  int  // of this run
	asking int  // questions that wait for an answer
	shown  bool // The person gets a question as the result of this run.
	closed bool
}

// Access implements task.ToolSession.
func (x *session) Access() (address, token string) { return x.owner.address, x.token }

// Reply implements task.ToolSession.
func (x *session) Reply() string { return x.reply }

// Question implements task.ToolSession.
func (x *session) Question() (text, short string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	tool, ok := x.findTool(grant.Ask)
	b, w := x.st.Back, x.st.Waiting
	switch {
	case b != nil && b.Reply == nil:
		b.Shown = true
		text, short = b.Asked.Shown()
	case w != nil && ok:
		w.Shown = true
		text, short = prompt.PermissionQuestion(tool, w.Target, w.Args, w.permission())
	default:
		return "", ""
	}
	if x.saveState(x.ctx) != nil {
		x.unmarkShown()
		return "", "" // Without the mark no answer would count.
	}
	x.shown = true
	return text, short
}

// Close implements task.ToolSession.
func (x *session) Close() {
	x.owner.mu.Lock()
	if x.owner.open[x.call.TaskID] == x {
		delete(x.owner.open, x.call.TaskID)
	}
	x.owner.mu.Unlock()
	x.cancel(errToolsEnded)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	if x.asking > 0 {
		x.out.Resume()
	}
}

// TaskID implements task.ToolCalls.
func (x *session) TaskID() string { return x.call.TaskID }

// List implements task.ToolCalls.
func (x *session) List() []task.ToolSpec {
	var out []task.ToolSpec
	for _, t := range x.tools {
		out = append(out, task.ToolSpec{Name: t.Title, Description: t.Description, Schema: t.Schema,
			ReadOnly: t.ReadOnly})
	}
	return out
}

func (x *session) findTool(name string) (prompt.Tool, bool) {
	i := slices.IndexFunc(x.tools, func(t prompt.Tool) bool { return t.Title == name })
	if i < 0 {
		return prompt.Tool{}, false
	}
	return x.tools[i], true
}

// saveState stores the state; the caller holds mu.
func (x *session) saveState(ctx context.Context) error {
	if x.closed {
		return errToolsEnded
	}
	x.st.Message = x.call.MessageID
	b, err := json.Marshal(x.st)
	if err != nil {
		return err
	}
	return x.out.SaveTools(ctx, b)
}

// takeAnswer takes the message of the call as the person's answer, if a question waits for one.
func (x *session) takeAnswer(ctx context.Context) error {
	if x.st.Message == x.call.MessageID {
		x.unmarkShown()
		return nil
	}
	x.dropUnshown()
	if x.takeRelayed() {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.saveState(ctx)
	}
	w := x.st.Waiting
	if w == nil {
		return nil
	}
	text := task.PlainText(x.call.Parts)
	answer, declined := prompt.ReadAnswer(x.call.Caller, w.permission(), text, strings.ToLower(x.call.Agent.Name),
		strings.ToLower(x.call.Agent.Handle))
	x.st.Waiting, x.st.Granted = nil, ""
	switch {
	case x.call.ThroughAgents():
		x.reply = "Not called: only the person can agree, and an agent answered:\n" + text
	case answer == prompt.Once:
		x.st.Granted = keyOf(w.Target, w.Args)
	case answer != prompt.Unclear:
		if err := x.rememberAnswer(ctx, *w, answer); err != nil {
			return err
		}
	case declined:
		x.reply = "Not called: the portal asked the person, who did not agree."
	default:
		x.reply = "Not called: the portal asked the person, who did not agree but said:\n" + text
	}
	if answer == prompt.Never && x.reply == "" {
		x.reply = "Not called: the person does not allow this. Do not ask again."
	}
	if x.reply == "" {
		x.reply = "The person agrees. Call ask again with the same arguments."
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.saveState(ctx)
}

// rememberAnswer stores the person's answer for later calls. It does nothing if the handle means another agent by now.
func (x *session) rememberAnswer(ctx context.Context, w waitingCall, a prompt.Answer) error {
	tool, ok := x.findTool(grant.Ask)
	if !ok {
		return nil
	}
	c := prompt.Invocation{Args: w.Args}
	p, err := x.owner.tools.Begin(ctx, x.call, tool, c)
	if err != nil {
		if fault.As(err).Kind == fault.Internal {
			return err
		}
		return nil
	}
	p.Done()
	if p.Target != w.Target {
		return nil
	}
	return x.owner.tools.Remember(ctx, x.call, tool, c, a)
}

// Call implements task.ToolCalls.
func (x *session) Call(ctx context.Context, name string, args json.RawMessage) (text string, failed bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// The cause decides whether a question to another agent is stopped or goes on after a restart.
	defer context.AfterFunc(x.ctx, func() { cancel(context.Cause(x.ctx)) })()
	text, failed, err := x.callTool(ctx, name, args)
	if err == nil {
		return text, failed
	}
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		f, ok = errors.AsType[*fault.Error](context.Cause(ctx))
	}
	switch {
	case ok && f.Kind != fault.Internal:
		return "Not called: " + f.Safe, true
	case x.ctx.Err() != nil:
		return "Not called: the task has ended.", true
	}
	return "The call failed inside the portal.", true
}

func (x *session) callTool(ctx context.Context, name string, args json.RawMessage) (string, bool, error) {
	tool, ok := x.findTool(name)
	if !ok {
		return fmt.Sprintf("There is no tool %.80q.", name), true, nil
	}
	if strings.Contains(string(args), x.token[len(tokenPrefix):]) {
		return "Not called: the token for the tools must not be passed on.", true, nil
	}
	if wrong := schema.Validate(tool.Schema, args); wrong != nil {
		return "Not called: the arguments do not fit the tool: " + schema.Sentence(wrong), true, nil
	}
	x.mu.Lock()
	x.calls++
	many := x.calls > maxCalls
	x.mu.Unlock()
	if many {
		return fmt.Sprintf("Not called: one task may make at most %d calls.", maxCalls), true, nil
	}
	if asker, ok := tool.Caller.(asking); ok {
		return x.askAgent(ctx, tool, asker, args)
	}
	p, err := x.owner.tools.Begin(ctx, x.call, tool, prompt.Invocation{Args: args})
	if err != nil {
		return "", false, err
	}
	defer p.Done()
	if p.Decision == grant.Denied {
		return deniedText, true, nil
	}
	// Agents elsewhere and hosted programs do not ask for this permission: the person gives it on the agent's page.
	if _, ok := tool.Caller.(filing); ok && p.Decision != grant.Allowed {
		return "Not called: the person has not allowed this. They do it in the settings of their account, under " +
			"\"What agents may do for you\": " + tool.Name + " for " + p.Target, true, nil
	}
	if !tool.ReadOnly && p.Decision != grant.Allowed {
		return "Not called: the person has not turned your memory on, which they do on your page.", true, nil
	}
	return tool.Caller.CallTool(p.Context, prompt.Invocation{ID: ident.NewID(), Args: args})
}

// askAgent asks an agent with the person's permission, or arranges that the person is asked.
func (x *session) askAgent(ctx context.Context, tool prompt.Tool, asker asking,
	args json.RawMessage) (string, bool, error) {
	given, err := asker.read(prompt.Invocation{Args: args})
	if err != nil {
		return "", false, err
	}
	// The person is shown the agent and the text, so nothing else may be in the arguments.
	if args, err = json.Marshal(given); err != nil {
		return "", false, err
	}
	p, err := x.owner.tools.Begin(ctx, x.call, tool, prompt.Invocation{Args: args})
	if err != nil {
		return "", false, err
	}
	defer p.Done()
	if p.Decision == grant.Denied {
		return deniedText, true, nil
	}
	q, refusal, err := x.beginQuestion(ctx, p, args)
	if err != nil || refusal != "" {
		return refusal, true, err
	}
	x.out.Status("Asking " + p.Target + "…")
	key := keyOf(p.Target, args)
	var reply *prompt.Reply
	x.mu.Lock()
	answered := x.findAnswered(key)
	if answered != nil {
		answered.inUse, reply = true, answered.Reply
	}
	x.mu.Unlock()
	text, failed, err := asker.CallTool(p.Context, prompt.Invocation{ID: "question " + strconv.Itoa(q.Number),
		Args: args, Earlier: q.Number, Reply: reply})
	if errors.Is(context.Cause(ctx), task.ErrShutdown) {
		x.endAsking()
		return "", false, context.Cause(ctx) // It goes on after the start.
	}
	if err != nil {
		if cause := context.Cause(p.Context); cause != nil {
			err = cause
		}
	}
	x.endAsking()
	x.mu.Lock()
	defer x.mu.Unlock()
	if answered != nil {
		answered.inUse = false
		if x.st.Back == answered {
			x.st.Back = nil
		}
	}
	if back, ok := errors.AsType[*prompt.AskedBack](err); ok {
		text, failed, err = x.beginRelay(key, back), true, nil
	} else {
		x.st.Open = slices.DeleteFunc(x.st.Open, func(o openQuestion) bool { return o.Number == q.Number })
	}
	if !x.closed {
		if serr := x.saveState(context.WithoutCancel(ctx)); serr != nil && err == nil {
			err = serr
		}
	}
	return text, failed, err
}

// beginQuestion stores that a question is asked. refusal is the reason for the agent if it may not be asked now. A call
// that has the same target and arguments as one without an answer continues that one.
func (x *session) beginQuestion(ctx context.Context, p prompt.Permission, args json.RawMessage) (q openQuestion,
	refusal string, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	key := keyOf(p.Target, args)
	again := slices.IndexFunc(x.st.Open, func(o openQuestion) bool { return o.Key == key })
	agreed := x.st.Granted == key || again >= 0 && x.st.Open[again].Agreed
	switch {
	case p.Decision == grant.Allowed || agreed:
	case !prompt.MayConsent(x.call.Caller):
		return q, "Not called: this needs a person's yes, and it is not a person who asks.", nil
	case x.shown:
		return q, turnEndedText, nil
	case len(args) > prompt.MaxShown:
		return q, fmt.Sprintf("Not called: a person has to agree to this call and cannot check more than %d KiB. "+
			"Write less.", prompt.MaxShown>>10), nil
	case x.st.Waiting != nil && keyOf(x.st.Waiting.Target, x.st.Waiting.Args) != key:
		return q, "Not called: the person is asked about another call first. End your turn with input-required.", nil
	default:
		x.st.Waiting = &waitingCall{Target: p.Target, Args: args, Keeps: p.Keeps, KeepsAll: p.KeepsAll}
		return q, askedText, x.saveState(ctx)
	}
	switch {
	case again >= 0:
		q = x.st.Open[again]
	case x.st.Asked >= maxAsked || len(x.st.Open) >= maxOpen:
		return q, fmt.Sprintf("Not called: one task may ask at most %d times, and %d agents at once.", maxAsked,
			maxOpen), nil
	default:
		q = openQuestion{Number: x.st.Asked, Key: key, Agreed: agreed}
		x.st.Asked++
		x.st.Open = append(x.st.Open, q)
		if agreed {
			x.st.Granted = ""
		}
		if err := x.saveState(ctx); err != nil {
			return q, "", err
		}
	}
	x.addAsking(1)
	return q, "", nil
}

// endAsking counts a question that has ended.
func (x *session) endAsking() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.addAsking(-1)
}

// addAsking counts questions that begin to wait (1) or have ended (-1), and gives the place of the task to others while
// any waits; the caller holds mu.
func (x *session) addAsking(n int) {
	before := x.asking
	x.asking += n
	switch {
	case x.closed:
	case before == 0:
		x.out.Pause()
	case x.asking == 0:
		x.out.Resume()
	}
}

package prompt

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"agentsite/agentruntime/attach"
	"agentsite/agentruntime/model"
	"agentsite/agentruntime/speech"
	"agentsite/internal/fault"
	"agentsite/internal/grant"
	"agentsite/internal/hub"
	"agentsite/internal/openai"
	"agentsite/internal/task"
)

// Bounds of the loop of one task.
const (
	maxRounds    = 8         // answers of the model that ask for tools
	maxCalls     = 16        // calls of tools in one task
	maxSame      = 3         // the third request for the same call ends the task
	maxAsked     = 128 << 10 // bytes of arguments in all
	maxAside     = 16 << 10  // bytes of text that the model wrote before its calls and that is sent back with them
	maxToolNames = 8
	maxShortened = 3 // times that a question is asked again, each time with half of the conversation
)

// run is one call of an agent.
type run struct {
	tracer
	d    *Driver
	call task.Call
	cfg  hub.PromptConfig
	ask  chosenModel
	// others are asked when ask fails before its first token.
	others []chosenModel
	// shortened counts how often earlier messages were left out because a model refused the length.
	shortened int
	summary   string // of the earlier messages, if it was made for this answer
	tooLong   bool   // the last question was refused because of its length
	offer     offer
	out       task.Sink
	st        *state
	// pictures are data URLs that are sent with the last message; the text of the conversation refers to
	// them by number.
	pictures []string
	over     bool // the answer is longer than model.MaxText; the rest is dropped
	// answer is the person's answer about the call st.Granted.
	answer    Answer
	corrected bool // the model was asked again, because its answer did not fit the schema
	// result is set once the task has ended.
	result *task.Result
	gap    bool // the next text begins a paragraph, because a call of a tool came in between
}

// Run implements task.Agent. It asks the model and runs tools in turn until the model answers without a
// call, a limit is reached, or a person has to consent, which ends the run as input required.
func (d *Driver) Run(ctx context.Context, call task.Call, out task.Sink) (task.Result, error) {
	cfg, err := readSettings(call.Agent.Config)
	if err != nil {
		return task.Result{}, fault.Wrap(fault.Unavailable, err,
			"The agent is not set up in a way this portal can use. Its owner should register it again.")
	}
	if again, err := d.forgetAnswers(ctx, call, cfg.Tools); err != nil {
		return task.Result{}, err
	} else if again {
		out.Text(askAgainReply)
		return task.Result{State: task.Completed, Parts: []task.Part{task.TextPart(askAgainReply)}}, nil
	}
	r := &run{d: d, call: call, cfg: cfg, out: out}
	chain, err := d.findModels(call.Agent.OwnerID, call.Agent.Endpoint, call.Agent.Secret, cfg)
	if err != nil {
		return failedResult(nil, fault.As(err).Safe), nil
	}
	r.ask, r.others = chain[0], chain[1:]
	r.tracer = newTracer(ctx, r.ask.server.Key)
	if r.st, err = r.loadState(ctx); err != nil {
		return task.Result{}, err
	}
	if call.Attempt > maxAttempts {
		return failedResult(r.shownParts(), "The portal was interrupted twice while this was being answered. "+
			"Ask again."), nil
	}
	if r.st.waits() {
		return r.waitingResult(), nil // The question was asked before a restart and is not answered yet.
	}
	if len(r.st.Base) == 0 {
		if err := r.fillBase(ctx); err != nil {
			return task.Result{}, err
		}
	}
	if len(cfg.Tools) > 0 && d.cfg.Tools != nil {
		list, err := d.cfg.Tools.Offer(ctx, call, cfg.Tools[:min(len(cfg.Tools), maxToolNames)])
		if ctx.Err() != nil {
			return task.Result{}, context.Cause(ctx)
		}
		if err != nil {
			return task.Result{}, err
		}
		r.offer = newOffer(list)
	}
	for r.result == nil {
		if err := r.answerCalls(ctx); err != nil {
			return task.Result{}, err
		}
		if r.result != nil {
			break
		}
		if err := r.askModel(ctx); err != nil {
			return task.Result{}, err
		}
	}
	r.result.Summary = r.summary
	return *r.result, nil
}

// loadState returns the state of the task from its checkpoint, or a new one without the conversation. Stored steps are
// never repeated.
func (r *run) loadState(ctx context.Context) (*state, error) {
	c := r.call
	fresh := &state{Message: c.MessageID, Mark: speech.NewFrame(c).Mark()}
	st := fresh
	if len(c.Checkpoint) > 0 {
		st = &state{}
		if err := json.Unmarshal(c.Checkpoint, st); err != nil {
			return nil, fault.Wrap(fault.Unavailable, err,
				"The portal cannot read where this was interrupted. Ask again.")
		}
	}
	st.loseCall()
	if st != fresh && st.Message == c.MessageID {
		_, r.pictures = attach.ForModel(ctx, c)
	}
	if c.MessageID != st.Message {
		if !st.waits() {
			st = fresh // The message is a new question, not an answer.
		} else {
			r.takeAnswer(st)
		}
	}
	if c.Attempt > 1 {
		r.out.Replace(st.Said) // Readers lost the live text in the restart, so show it again.
	}
	return st, nil
}

// takeAnswer takes the caller's answer to the question. Only these parts, which the portal received
// from the caller, can be a yes. An answer that came through an agent, also one of another portal, is none of the
// person: an agent would otherwise permit calls for its own work in the person's name.
func (r *run) takeAnswer(st *state) {
	text := speech.FrameWithMark(st.Mark).RemoveMark(task.PlainText(r.call.Parts))
	if st.Waiting == nil {
		r.takeRelayed(st, text)
		return
	}
	self := []string{strings.ToLower(r.call.Agent.Name), strings.ToLower(r.call.Agent.Handle)}
	w := st.Waiting
	st.Message, st.Said, st.Thoughts, st.Waiting = r.call.MessageID, "", "", nil
	answer, declined := ReadAnswer(r.call.Caller, Permission{Keeps: w.Keeps, KeepsAll: w.KeepsAll}, text, self...)
	switch {
	case r.call.ThroughAgents():
		st.addResult(w.ID, "Not called: only the person can agree, and an agent answered:\n"+
			clipText(text, maxQuestion))
	case answer > Unclear: // also Never: beginCall remembers it, and finds the call denied
		st.Granted, r.answer = w, answer
	case declined:
		st.addResult(w.ID, "Not called: the portal asked the person, who did not agree.")
	default:
		st.addResult(w.ID, "Not called: the portal asked the person, who did not agree but said:\n"+
			clipText(text, maxQuestion))
	}
}

// answerCalls answers the open calls of the model, until one ends the run.
func (r *run) answerCalls(ctx context.Context) error {
	for r.result == nil {
		c, ok := r.st.openCall()
		if !ok {
			return nil
		}
		if err := r.answerCall(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// answerCall answers one call: by making it, by refusing it with a reason, or by asking the person,
// which ends the run.
func (r *run) answerCall(ctx context.Context, c openai.ToolCall) error {
	t, ok := r.offer.tools[c.Function.Name]
	if !ok {
		r.st.addResult(c.ID, fmt.Sprintf("There is no tool %q. There are: %s.", cleanName(c.Function.Name),
			strings.Join(r.offer.names, ", ")))
		return nil
	}
	args, err := parseArguments(c)
	if err != nil {
		r.st.addResult(c.ID, "Not called: the arguments cannot be used: "+err.Error()+".")
		return nil
	}
	if why := schemaProblem(t, args); why != "" {
		r.st.addResult(c.ID, "Not called: the arguments do not fit the tool: "+clipText(why, maxAbout))
		return nil
	}
	call := Invocation{ID: c.ID, Args: args, Earlier: r.earlierCalls(c.ID), Reply: r.st.replyTo(c.ID)}
	p, why, err := r.beginCall(ctx, t, call)
	if err != nil {
		return err
	}
	defer p.Done()
	if why == "" && p.Decision == grant.Denied {
		why = "Not called: the person does not allow this. Do not ask again."
	}
	if why != "" {
		r.st.addResult(c.ID, why)
		return nil
	}
	if !t.ReadOnly {
		return r.callWithEffect(ctx, c, t, call, p)
	}
	text, err := r.useTool(ctx, p.Context, t, call)
	if err != nil {
		return err
	}
	r.st.addResult(c.ID, text)
	return nil
}

// beginCall asks the grants about a call, after it has stored the person's answer to the question about it. why is the
// reason for the model if the call cannot be made.
func (r *run) beginCall(ctx context.Context, t Tool, c Invocation) (p Permission, why string, err error) {
	p = Permission{Context: ctx, Done: func() {}}
	if r.d.cfg.Grants == nil {
		return p, "", nil
	}
	p, err = r.d.cfg.Grants.Begin(ctx, r.call, t, c)
	g := r.st.Granted
	if err == nil && r.answer > Once && g != nil && g.ID == c.ID && g.Agent == cmp.Or(p.Target, t.Agent) {
		p.Done()
		if err := r.d.cfg.Grants.Remember(ctx, r.call, t, c, r.answer); err != nil {
			return Permission{Context: ctx, Done: func() {}}, "", err
		}
		r.answer = Once
		p, err = r.d.cfg.Grants.Begin(ctx, r.call, t, c)
	}
	if err == nil {
		return p, "", nil
	}
	p = Permission{Context: ctx, Done: func() {}}
	if ctx.Err() != nil {
		return p, "", context.Cause(ctx)
	}
	if f := fault.As(err); f.Kind != fault.Internal {
		return p, "Not called: " + f.Safe, nil
	}
	return p, "", err
}

// earlierCalls counts the calls of repeatable tools before the one with that id.
func (r *run) earlierCalls(id string) int {
	_, calls := r.st.countRounds()
	n := 0
	for _, c := range calls {
		if c.ID == id {
			break
		}
		if r.offer.tools[c.Function.Name].Repeatable {
			n++
		}
	}
	return n
}

// callWithEffect makes a call that may change something, at most once. It needs a yes for this very
// call, a grant of the person, or the owner's general permission for tools that use the owner's rights. Neither covers
// the repetition of an interrupted call.
func (r *run) callWithEffect(ctx context.Context, c openai.ToolCall, t Tool, call Invocation, p Permission) error {
	g, target := r.st.Granted, cmp.Or(p.Target, t.Agent)
	granted := g != nil && g.ID == c.ID && g.Agent == target && g.Tool == t.Name
	r.st.Granted = nil
	lost := r.st.repeatsLost(c)
	switch {
	case granted, !lost && t.Owned && r.cfg.Unasked, !lost && p.Decision == grant.Allowed:
	case r.st.Repeating == c.ID && r.st.Agreed: // The person agreed before the interruption.
		granted = true
	case call.Reply != nil: // It goes on; the person agreed before it began.
		granted = true
	case !mayConsent(r.call.Caller):
		r.st.addResult(c.ID, "Not called: this tool may change something, which needs a person's yes, and it is "+
			"not a person who asks.")
		return nil
	case len(call.Args) > MaxShown:
		r.st.addResult(c.ID, fmt.Sprintf("Not called: a person has to agree to this call and cannot check "+
			"arguments of more than %d KiB. Use shorter ones.", MaxShown>>10))
		return nil
	default:
		return r.askPerson(ctx, askConsent(c, t, target, call.Args, p))
	}
	r.st.Making = c.ID
	if t.Repeatable {
		r.st.Making, r.st.Repeating, r.st.Agreed = "", c.ID, granted
	}
	if err := r.st.saveState(ctx, r.out); err != nil {
		return err
	}
	text, err := r.useTool(ctx, p.Context, t, call)
	asked := askedBack(err)
	if err != nil && asked == nil {
		return err
	}
	r.st.Making, r.st.Repeating, r.st.Agreed, r.st.Relayed = "", "", false, nil
	if asked != nil {
		return r.askBack(ctx, c, asked)
	}
	r.st.addResult(c.ID, text)
	return r.st.saveState(ctx, r.out)
}

// askPerson asks the person about a call, which ends the run.
func (r *run) askPerson(ctx context.Context, w *waiting) error {
	r.st.Waiting = w
	before := r.st.Said
	r.gap = before != ""
	r.showText(w.Question)
	if r.over {
		r.st.Said = before
		r.failTask("The answer is longer than %d KiB and was cut.", model.MaxText>>10)
		return nil
	}
	if err := r.st.saveState(ctx, r.out); err != nil {
		return err
	}
	res := r.waitingResult()
	r.result = &res
	return nil
}

// waitingResult is the result of a task that asked the person for consent: state input required, with
// the short question as the reason.
func (r *run) waitingResult() task.Result {
	if r.st.Waiting == nil {
		_, short := r.st.Relayed.Asked.Shown()
		return task.Result{State: task.InputRequired, Parts: r.shownParts(), Reason: short}
	}
	return task.Result{State: task.InputRequired, Parts: r.shownParts(), Reason: r.st.Waiting.Short}
}

// askModel asks the model once. An answer without calls ends the task; calls are added to the state, and
// calls beyond the limits of the loop fail the task.
func (r *run) askModel(ctx context.Context) error {
	reply, err := r.chatWithModel(ctx)
	if err != nil || r.result != nil {
		return err
	}
	if len(reply.Calls) == 0 {
		r.endWithReply(reply)
		return nil
	}
	rounds, before := r.st.countRounds()
	turn := openai.Message{Role: openai.Assistant, Content: openai.Content(clipText(reply.Text, maxAside)),
		Reasoning: openai.Content(reply.Reasoning)}
	unusable := make(map[string]string)
	for _, c := range reply.Calls {
		c, err := echoCall(uniqueID(c, before, turn.ToolCalls))
		if err != nil {
			unusable[c.ID] = "Not called: the arguments cannot be used: " + err.Error() + "."
		}
		turn.ToolCalls = append(turn.ToolCalls, c)
	}
	all := append(before, turn.ToolCalls...)
	size, same := 0, make(map[string]int)
	for _, c := range all {
		size += len(c.Function.Arguments)
		key := c.Function.Name + "\x00" + string(c.Function.Arguments)
		if same[key]++; same[key] >= maxSame {
			r.failTask("The model asked %d times for the same call of %s and was stopped.", maxSame,
				cleanName(c.Function.Name))
			return nil
		}
	}
	switch {
	case rounds >= maxRounds:
		r.failTask("The model used tools %d times in a row without coming to an answer and was stopped.",
			maxRounds)
		return nil
	case len(all) > maxCalls:
		r.failTask("The model asked for more than %d calls of tools and was stopped.", maxCalls)
		return nil
	case size > maxAsked:
		r.failTask("The model gave its tools more than %d KiB of arguments and was stopped.", maxAsked>>10)
		return nil
	}
	r.st.Turns = append(r.st.Turns, turn)
	for _, c := range turn.ToolCalls {
		if why := unusable[c.ID]; why != "" {
			r.st.addResult(c.ID, why)
		}
	}
	return nil
}

// uniqueID gives a call another id if the model used it before, because a call is asked about, made and
// answered by its id.
func uniqueID(c openai.ToolCall, before, now []openai.ToolCall) openai.ToolCall {
	first := c.ID
	same := func(o openai.ToolCall) bool { return o.ID == c.ID }
	for n := 2; slices.ContainsFunc(before, same) || slices.ContainsFunc(now, same); n++ {
		c.ID = fmt.Sprintf("%s_%d", first, n)
	}
	return c
}

// endWithReply ends the task with the last answer of the model: failed if a filter withheld it or it is
// empty, otherwise completed.
func (r *run) endWithReply(reply model.Reply) {
	parts := r.shownParts()
	switch {
	case reply.Finish == openai.FinishFilter:
		r.failTask("The model's provider withheld the answer or the rest of it (content filter).")
	case len(parts) == 0:
		r.failTask("%s", reply.EmptyReason())
	case r.cfg.Output != nil:
		r.endWithOutput(reply)
	case reply.Finish == openai.FinishLength:
		r.result = &task.Result{State: task.Completed, Parts: parts,
			Reason: "The answer ends at the model's length limit."}
	default:
		r.result = &task.Result{State: task.Completed, Parts: parts}
	}
}

// failTask ends the task as failed, with the shown text and a reason.
func (r *run) failTask(format string, args ...any) {
	r.result = r.failure(fmt.Sprintf(format, args...))
}

// showText shows text and stores it. The texts of two answers of the model are separate paragraphs.
func (r *run) showText(delta string) {
	if r.gap {
		if delta = strings.TrimLeft(delta, "\n"); delta == "" {
			return
		}
		delta = "\n\n" + delta
	}
	if r.over = r.over || len(r.st.Said)+len(delta) > model.MaxText; r.over {
		return
	}
	r.gap = false
	r.st.Said += delta
	r.out.Text(delta)
}

// shownParts returns all text shown since the task's message, over all rounds; nil for none.
func (r *run) shownParts() []task.Part {
	if r.st.Said == "" {
		return nil
	}
	return []task.Part{task.TextPart(r.st.Said).WithThoughts(r.st.Thoughts)}
}

// failure returns the result of a task that failed, with the text shown so far.
func (r *run) failure(reason string) *task.Result {
	res := failedResult(r.shownParts(), reason)
	return &res
}

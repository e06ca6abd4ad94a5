package prompt

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"agentsite/agentruntime/model"
	"agentsite/agentruntime/speech"
	"agentsite/internal/fault"
	"agentsite/internal/openai"
	"agentsite/internal/task"
)

// chatWithModel sends the conversation to the model, within the budget, and to the one it falls back to if it fails
// before its first token. A question that is too long is asked again, shorter. A refusal or an error of the last model
// ends the task.
func (r *run) chatWithModel(ctx context.Context) (model.Reply, error) {
	for {
		r.tooLong = false
		reply, failure, err := r.chatOnce(ctx)
		if err == nil && failure == nil && r.shortened > 0 {
			r.d.learnRoom(r.ask, sizeOf(r.st.Base))
		}
		if err != nil || failure == nil {
			return reply, err
		}
		if r.tooLong && r.shortened < maxShortened && r.shorten() {
			r.shortened++
			continue
		}
		if len(r.others) == 0 || reply.Text != "" {
			r.result = failure
			return reply, nil
		}
		r.ask, r.others, r.shortened = r.others[0], r.others[1:], 0
		r.tracer = newTracer(ctx, r.ask.server.Key)
	}
}

// shorten leaves out about half of the conversation before the question and of its summary, which a small model may
// write longer than it takes. It reports false if nothing is left to leave out.
func (r *run) shorten() bool {
	if len(r.st.Base) < 2 && r.st.Summary == "" {
		return false
	}
	r.st.Base = model.Shorten(r.st.Base)
	if n := len(r.st.Summary); n < minSummary {
		r.st.Summary = ""
	} else {
		r.st.Summary = clipText(r.st.Summary, n/2)
	}
	return true
}

// chatOnce sends the conversation to the chosen model. failure is the result of the task if the model failed and is not
// followed by another.
func (r *run) chatOnce(ctx context.Context) (reply model.Reply, failure *task.Result, err error) {
	req := openai.ChatRequest{Model: r.ask.Name, Temperature: r.cfg.Temperature, MaxTokens: r.ask.max,
		Tools: r.offer.listed}
	if r.cfg.Output != nil && len(r.offer.listed) == 0 { // Servers take a format or tools.
		req.ResponseFormat = openai.FormatOf(*r.cfg.Output)
	}
	req.Messages = append(req.Messages, systemMessage(r.call, speech.FrameWithMark(r.st.Mark), r.cfg,
		len(r.offer.listed) > 0))
	req.Messages = append(req.Messages, exampleMessages(r.cfg)...)
	req.Messages = append(req.Messages, r.st.baseMessages(r.call.Memories)...)
	last := len(req.Messages) - 1
	req.Messages = append(req.Messages, r.st.Turns...)
	body, err := json.Marshal(req)
	if err != nil {
		return reply, nil, err
	}
	in := model.EstimateInput(len(body), len(r.pictures))
	req.Messages[last].Pictures = r.pictures
	settle, failure, err := r.reserve(ctx, in, r.ask.max)
	if err != nil || failure != nil {
		return reply, failure, err
	}
	r.traceMessage(true, r.traceHead(), r.traceBody(req, last, body))
	r.gap = r.st.Said != ""
	before := r.st.Said
	reply, err = r.ask.client.Chat(withoutTrace(ctx), req, r.showText)
	if len(r.pictures) > 0 && reply.Text == "" && ctx.Err() == nil && model.RefusedPictures(err) {
		// The model reads only text, so send the pictures' names in the text without the pictures.
		r.pictures, req.Messages[last].Pictures = nil, nil
		reply, err = r.ask.client.Chat(withoutTrace(ctx), req, r.showText)
	}
	r.hideThoughts(reply, before)
	settle(reply.Used(ctx, err, in))
	if ctx.Err() != nil {
		return reply, nil, context.Cause(ctx)
	}
	if res, busy := model.BusyResult(err); busy && r.st.Said == "" && len(r.st.Turns) == 0 {
		r.traceMessage(false, "no answer", res.Reason)
		return reply, &res, nil
	}
	if err != nil {
		// Some servers close the connection when a question is too long, and reset it at the next question.
		r.tooLong = reply.Text == "" && (model.RefusedLength(err) || errors.Is(err, model.ErrInterrupted) ||
			r.shortened > 0 && fault.Is(err, fault.Unavailable))
		why := r.ask.failureReason(err)
		r.traceMessage(false, "no answer", why)
		return reply, r.failure(why), nil
	}
	r.traceReply(reply)
	if r.over {
		r.failTask("The answer is longer than %d KiB and was cut.", model.MaxText>>10)
	}
	return reply, nil, nil
}

// hideThoughts keeps the thoughts of a reply, and shows its text anew if a part of what was shown after
// before turned out to be thoughts.
func (r *run) hideThoughts(reply model.Reply, before string) {
	r.st.addThoughts(reply.Thoughts)
	shown := strings.TrimPrefix(r.st.Said, before)
	if r.over || strings.TrimLeft(shown, "\n") == strings.TrimLeft(reply.Text, "\n") {
		return
	}
	r.st.Said, r.gap = before, before != ""
	r.out.Replace(before)
	r.showText(reply.Text)
}

// reserve sets the cost of a question and its longest answer aside in the portal's budget and in the ceilings of the
// agent's owner. failure is the result of the task if one of them refuses. settle counts the used tokens.
func (r *run) reserve(ctx context.Context, in, out int) (settle func(model.Used), failure *task.Result, err error) {
	spend := func(model.Used) {}
	if r.ask.Portal && r.d.cfg.Budget != nil {
		spend, err = r.d.cfg.Budget.Reserve(ctx, r.call.Caller, r.ask.Terms, model.Used{Input: in, Output: out})
	}
	release := func() {}
	if err == nil {
		if release, err = model.Reserve(ctx, r.d.cfg.Guard, r.call, r.ask.Terms, in, out); err != nil {
			spend(model.Used{})
		}
	}
	switch {
	case err == nil:
		return func(used model.Used) {
			spend(used)
			model.Count(ctx, r.d.cfg.Meter, r.call, r.ask.Terms, used)
			release()
		}, nil, nil
	case ctx.Err() != nil:
		return nil, nil, context.Cause(ctx)
	case fault.As(err).Kind == fault.Internal:
		return nil, nil, err
	}
	return nil, r.failure(fault.As(err).Safe), nil
}

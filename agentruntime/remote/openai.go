package remote

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"agentsite/agentruntime/attach"
	"agentsite/agentruntime/model"
	"agentsite/agentruntime/speech"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/models"
	"agentsite/internal/openai"
	"agentsite/internal/task"
)

// OpenAI runs tasks at agents that are models on an OpenAI-compatible server. A completion changes
// nothing at the server, so an interrupted one is repeated once.
type OpenAI struct {
	rt  http.RoundTripper
	cfg Config
}

// NewOpenAI returns the driver of kind openai. It holds nothing to close.
func NewOpenAI(rt http.RoundTripper, cfg Config) *OpenAI {
	return &OpenAI{rt: rt, cfg: cfg.withDefaults()}
}

// maxAttempts is how often one question is asked, over restarts of the portal.
const maxAttempts = 2

// Run implements task.Agent. Text streams to the sink; nothing is stored before the end, so a restart
// repeats the whole question, at most maxAttempts times.
func (d *OpenAI) Run(ctx context.Context, call task.Call, out task.Sink) (task.Result, error) {
	if call.Attempt > maxAttempts {
		return failedResult(nil, "The portal was interrupted twice while this was being answered. Ask again."), nil
	}
	cfg, err := openaiConfig(call.Agent.Config)
	if err != nil {
		return task.Result{}, fault.Wrap(fault.Unavailable, err,
			"The agent is not set up in a way this portal can use. Its owner should register it again.")
	}
	client, err := model.New(d.rt, models.Server{URL: call.Agent.Endpoint, Key: call.Agent.Secret})
	if err != nil {
		return task.Result{}, err
	}
	if call.Attempt > 1 {
		out.Replace("") // Discard the text that the interrupted attempt showed.
	}
	call, pictures := attach.ForModel(ctx, call)
	req := openai.ChatRequest{Model: cfg.Model, Messages: chatMessages(cfg.Instructions, call, speech.NewFrame(call))}
	body, err := json.Marshal(req) // only for an estimate
	if err != nil {
		return task.Result{}, err
	}
	last := len(req.Messages) - 1
	if last >= 0 {
		req.Messages[last].Pictures = pictures
	}
	terms, in := model.Terms{Name: cfg.Model}, model.EstimateInput(len(body), len(pictures))
	release, err := model.Reserve(ctx, d.cfg.Guard, call, terms, in, 0)
	if f := fault.As(err); err != nil && f.Kind != fault.Internal {
		return failedResult(nil, f.Safe), nil
	} else if err != nil {
		return task.Result{}, err
	}
	defer release()
	shown := ""
	show := func(s string) { shown += s; out.Text(s) }
	reply, err := client.Chat(ctx, req, show)
	if last >= 0 && len(pictures) > 0 && reply.Text == "" && model.RefusedPictures(err) {
		// The model reads only text, so send the pictures' names in the text without the pictures.
		req.Messages[last].Pictures = nil
		reply, err = client.Chat(ctx, req, show)
	}
	if reply.Text == "" && model.RefusedLength(err) && ctx.Err() == nil {
		req.Messages = model.Shorten(req.Messages)
		reply, err = client.Chat(ctx, req, show)
	}
	model.Count(ctx, d.cfg.Meter, call, terms, reply.Used(ctx, err, in))
	if ctx.Err() != nil {
		return task.Result{}, context.Cause(ctx)
	}
	if reply.Text != shown {
		out.Replace(reply.Text) // A part of it turned out to be thoughts.
	}
	var parts []task.Part
	if reply.Text != "" {
		parts = []task.Part{task.TextPart(reply.Text).WithThoughts(reply.Thoughts)}
	}
	if r, busy := model.BusyResult(err); busy && len(parts) == 0 {
		return r, nil
	}
	if err != nil {
		return failedResult(parts, modelReason(err, call.Agent.Secret)), nil
	}
	switch {
	case reply.Finish == openai.FinishFilter:
		return failedResult(parts, "The model's provider withheld the answer or the rest of it (content filter)."), nil
	case len(parts) == 0:
		return failedResult(nil, reply.EmptyReason()), nil
	case reply.Finish == openai.FinishLength:
		return task.Result{State: task.Completed, Parts: parts, Reason: "The answer ends at the model's length limit."},
			nil
	}
	return task.Result{State: task.Completed, Parts: parts}, nil
}

// modelReason returns a sentence for people. It refers to the owner, because the caller cannot change a
// key.
func modelReason(err error, key string) string {
	if errors.Is(err, model.ErrKey) {
		if key != "" {
			return "The endpoint refused the key that is stored for this agent. Its owner should renew it."
		}
		return "The endpoint asks for a key and none is stored for this agent. Its owner should add one."
	}
	return redactSecret(fault.As(err).Safe, key)
}

func openaiConfig(b json.RawMessage) (hub.OpenAIConfig, error) {
	var cfg hub.OpenAIConfig
	if len(b) == 0 {
		return cfg, nil
	}
	err := json.Unmarshal(b, &cfg)
	return cfg, err
}

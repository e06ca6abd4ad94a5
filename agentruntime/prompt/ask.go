package prompt

import (
	"context"
	"encoding/json"

	"agentsite/agentruntime/model"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/openai"
	"agentsite/internal/task"
)

// AskModel asks the named model of an agent's owner or of the portal one question for a call, within the budgets. It is
// for agents that decide themselves when to ask a model. The sentence of a *fault.Error may be shown to the agent.
func (d *Driver) AskModel(ctx context.Context, call task.Call, name string, messages []openai.Message,
	maxTokens int) (string, error) {
	chain, err := d.findModels(call.Agent.OwnerID, "", "", hub.PromptConfig{Model: name, MaxTokens: maxTokens})
	if err != nil {
		return "", err
	}
	return d.askChain(ctx, call, chain, messages)
}

// AskOwnModel asks the model of a prompt agent one question for a call, within the budgets.
func (d *Driver) AskOwnModel(ctx context.Context, call task.Call, messages []openai.Message,
	maxTokens int) (string, error) {
	cfg, err := readSettings(call.Agent.Config)
	if err != nil {
		return "", err
	}
	cfg.MaxTokens = maxTokens
	chain, err := d.findModels(call.Agent.OwnerID, call.Agent.Endpoint, call.Agent.Secret, cfg)
	if err != nil {
		return "", err
	}
	return d.askChain(ctx, call, chain, messages)
}

// askChain asks the first model that answers.
func (d *Driver) askChain(ctx context.Context, call task.Call, chain []chosenModel,
	messages []openai.Message) (text string, err error) {
	r := &run{d: d, call: call, st: &state{}}
	for _, r.ask = range chain {
		if text, err = r.askOnce(ctx, messages); err == nil || ctx.Err() != nil {
			return text, err
		}
	}
	return "", err
}

// askOnce sends messages to the chosen model.
func (r *run) askOnce(ctx context.Context, messages []openai.Message) (string, error) {
	req := openai.ChatRequest{Model: r.ask.Name, MaxTokens: r.ask.max, Messages: messages}
	body, err := json.Marshal(req)
	if err != nil {
		return "", err
	}
	in := model.EstimateInput(len(body), 0)
	settle, failure, err := r.reserve(ctx, in, r.ask.max)
	if err != nil {
		return "", err
	}
	if failure != nil {
		return "", fault.New(fault.Unavailable, "%s", failure.Reason)
	}
	reply, err := r.ask.client.Chat(withoutTrace(ctx), req, func(string) {})
	settle(reply.Used(ctx, err, in))
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "%s", r.ask.failureReason(err))
	}
	return reply.Text, nil
}

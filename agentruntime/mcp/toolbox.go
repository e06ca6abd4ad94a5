package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/schema"
	"agentsite/internal/task"
)

// Tools returns the tools of the server at t: those of its configuration, or else those that the server
// lists now. The error is a *fault.Error with a sentence for users, or ctx's own.
func (d *Driver) Tools(ctx context.Context, t hub.Target) ([]hub.Tool, error) {
	cfg, err := readConfig(t.Config)
	if err != nil || len(cfg.Tools) > 0 {
		return cfg.Tools, err
	}
	s, err := d.openWithin(ctx, t, cfg)
	if err != nil {
		return nil, callFault(ctx, err, t.Secret)
	}
	defer d.closeInBackground(s)
	list, _, err := s.listTools(ctx)
	if err != nil {
		return nil, callFault(ctx, err, t.Secret)
	}
	return hubTools(list), nil
}

// CallTool calls one tool for an agent that reads text: the answer is cut to 64 KiB, data is JSON,
// files are named only. isError is true when the tool, or the check of its arguments, returned an error
// in text; the agent may try again. err is set when the server could not be called: a *fault.Error, or
// ctx's own. A call is made once, never repeated.
func (d *Driver) CallTool(ctx context.Context, t hub.Target, name string, args json.RawMessage) (text string,
	isError bool, err error) {
	cfg, err := readConfig(t.Config)
	if err != nil {
		return "", false, err
	}
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	tool := findTool(storedTools(cfg), name)
	if tool != nil {
		if wrong := schema.Validate(tool.InputSchema, args); wrong != nil {
			return "The tool was not called: " + schema.Sentence(wrong) + ".", true, nil
		}
	}
	var small map[string]json.RawMessage
	if json.Unmarshal(args, &small) != nil {
		return "The tool was not called: the arguments must be one JSON object.", true, nil
	}
	within, stop := context.WithTimeout(ctx, d.cfg.CallTime)
	defer stop()
	s, err := d.openWithin(within, t, cfg)
	if err != nil {
		return "", false, callFault(ctx, err, t.Secret)
	}
	defer d.closeInBackground(s)
	if s.isModern() && (tool == nil || strings.Contains(string(tool.InputSchema), "x-mcp-header")) {
		if _, _, err := s.listTools(within); err != nil {
			return "", false, callFault(ctx, err, t.Secret)
		}
	}
	res, err := d.callTool(within, s, &sdk.CallToolParams{Name: name, Arguments: args}, func(string) {})
	if p, ok := errors.AsType[*problem](err); ok && p.kind == troubleRefused {
		return redactSecret(p.userSentence(), t.Secret), true, nil
	}
	if err != nil {
		return "", false, callFault(ctx, err, t.Secret)
	}
	if res.NeedsInput() {
		return "The tool asks for something that only a person can answer, so it did nothing. It can be called " +
			"in a conversation with its own agent.", true, nil
	}
	a := answerOf(res)
	parts := a.parts
	for _, f := range a.files {
		parts = append(parts, task.TextPart(fmt.Sprintf("[file %s, %s, %d bytes]", f.Filename, f.MediaType,
			len(f.Raw))))
	}
	text = task.PlainText(parts)
	if len(text) > maxToolResult {
		text = cutText(text, maxToolResult-len(cutMark)) + cutMark
	}
	return text, res.IsError, nil
}

const cutMark = "\n[the rest of the answer was left out]"

// callFault makes a fault with a sentence for users of a problem, without the credential secret. It
// returns the cause of ctx if ctx has ended.
func callFault(ctx context.Context, err error, secret string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p, ok := errors.AsType[*problem](err); ok {
		return fault.Wrap(fault.Unavailable, err, "%s", redactSecret(p.userSentence(), secret))
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fault.Wrap(fault.Unavailable, err, "The server did not answer in time.")
	}
	return err
}

package model

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"agentsite/internal/egress"
	"agentsite/internal/fault"
	"agentsite/internal/openai"
)

const (
	// maxRetryAfter is the longest wait a server may ask for before the one
	// retry; more is handed to the caller as a RateLimited fault.
	maxRetryAfter = 20 * time.Second
	retryPause    = time.Second
)

// Reply is what a model answered. With an error it holds what had come.
type Reply struct {
	Text string
	// Finish is why the model stopped: stop, length, content_filter, or what
	// the server says; empty when it does not.
	Finish string
	// Model is the model that answered, as the server names it.
	Model string
	Usage openai.Usage
	// Calls are the tools the model asks for, at most MaxCalls; each has an
	// id. There are none when the request offered no tools, and none beside an
	// error.
	Calls []openai.ToolCall
	// Reasoning is what the model thought before it asked for tools, cut; it
	// goes back with the calls and is no part of the answer.
	Reasoning string
}

// Chat asks for one completion and hands each piece of text to onDelta as it
// comes. It streams where the server does and copes where it does not. When a
// server is overloaded it is asked once more, only before the first piece.
//
// Errors are *fault.Error; ErrInterrupted and ErrTooLong come with the partial
// Reply. When ctx ends the error wraps its cause.
func (c *Client) Chat(ctx context.Context, req openai.ChatRequest, onDelta func(string)) (Reply, error) {
	req.Stream = true
	req.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	for attempt := 1; ; attempt++ {
		reply, wait, err := c.chat(ctx, req, onDelta)
		if err == nil || reply.Text != "" || wait == noRetry || wait > 0 && attempt > 1 || ctx.Err() != nil {
			return reply, err
		}
		if wait == withoutOptions {
			req.StreamOptions = nil
			attempt-- // asked otherwise, not again
			continue
		}
		if wait == withoutNames {
			req.Messages = unnamed(req.Messages)
			attempt--
			continue
		}
		if wait == otherLimit {
			req.MaxTokens, req.MaxCompletionTokens = 0, req.MaxTokens
			attempt--
			continue
		}
		timer := time.NewTimer(wait + rand.N(retryPause/4+1))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return reply, unavailable(ctx.Err())
		}
	}
}

// What chat returns as wait instead of a duration.
const (
	noRetry        = time.Duration(-1)
	withoutOptions = time.Duration(0)  // at once, without stream_options
	otherLimit     = time.Duration(-2) // at once, with max_completion_tokens
	withoutNames   = time.Duration(-3) // at once, without the speakers' names
)

func named(list []openai.Message) bool {
	return slices.ContainsFunc(list, func(m openai.Message) bool { return m.Name != "" })
}

// unnamed takes the names off messages: some servers refuse them.
func unnamed(list []openai.Message) []openai.Message {
	list = slices.Clone(list)
	for i := range list {
		list[i].Name = ""
	}
	return list
}

// chat makes one attempt. wait says how the next one should be made, if at all.
func (c *Client) chat(ctx context.Context, req openai.ChatRequest, onDelta func(string)) (Reply, time.Duration, error) {
	body, err := json.Marshal(req)
	if err != nil {
		return Reply{}, noRetry, fault.Wrap(fault.Internal, err, "The question could not be written down.")
	}
	resp, err := c.do(ctx, http.MethodPost, "/chat/completions", body, "text/event-stream, application/json")
	if err != nil {
		return Reply{}, noRetry, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, 529:
		err := c.refusal(resp, req.Model, len(req.Tools) > 0)
		wait := retryAfter(resp.Header)
		if wait > maxRetryAfter {
			wait = noRetry
		} else if wait <= 0 {
			wait = retryPause
		}
		return Reply{}, wait, err
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		err := c.refusal(resp, req.Model, len(req.Tools) > 0)
		if req.StreamOptions != nil && strings.Contains(err.Error(), "stream_options") {
			return Reply{}, withoutOptions, err
		}
		if req.MaxTokens > 0 && strings.Contains(err.Error(), "max_completion_tokens") {
			return Reply{}, otherLimit, err
		}
		if named(req.Messages) && strings.Contains(err.Error(), "name") {
			return Reply{}, withoutNames, err
		}
		return Reply{}, noRetry, err
	default:
		return Reply{}, noRetry, c.refusal(resp, req.Model, len(req.Tools) > 0)
	}
	in := &counted{r: resp.Body, left: maxBody}
	var reply Reply
	if mediaType(resp) == "text/event-stream" {
		reply, err = stream(in, len(req.Tools) > 0, onDelta)
	} else {
		reply, err = whole(in, resp, len(req.Tools) > 0, onDelta)
	}
	if err != nil && ctx.Err() != nil {
		err = fault.Wrap(fault.Unavailable, context.Cause(ctx), "The question was stopped.")
	}
	return reply, noRetry, err
}

// answer collects text up to MaxText.
type answer struct {
	text    strings.Builder
	onDelta func(string)
}

func (a *answer) add(s string) error {
	s = strings.ReplaceAll(s, "\x00", "")
	if s == "" {
		return nil
	}
	var err error
	if room := MaxText - a.text.Len(); len(s) > room {
		s = strings.ToValidUTF8(s[:room], "")
		err = fault.Wrap(fault.Unavailable, ErrTooLong, "The answer is longer than %d KiB and was cut.", MaxText>>10)
	}
	if s != "" {
		a.text.WriteString(s)
		if a.onDelta != nil {
			a.onDelta(s)
		}
	}
	return err
}

func stream(in io.Reader, tools bool, onDelta func(string)) (Reply, error) {
	chunks := openai.NewReader(in)
	a := answer{onDelta: onDelta}
	var reply Reply
	var asked calls
	var err error
	for err == nil {
		var ch openai.Chunk
		if ch, err = chunks.Next(); err != nil {
			break
		}
		if ch.Error != nil {
			err = fault.Wrap(fault.Unavailable, ErrInterrupted,
				"The answer was interrupted: the model's server said %q.", line(ch.Error.Message))
			break
		}
		if ch.Usage != nil {
			reply.Usage = *ch.Usage
		}
		if ch.Model != "" && reply.Model == "" {
			reply.Model = cut(ch.Model, maxName)
		}
		for _, choice := range ch.Choices {
			if choice.Index != 0 {
				continue
			}
			if err = a.add(string(choice.Delta.Content)); err != nil {
				break
			}
			asked.think(string(choice.Delta.Reasoning))
			for i := 0; tools && err == nil && i < len(choice.Delta.ToolCalls); i++ {
				err = asked.add(choice.Delta.ToolCalls[i], false)
			}
			if err != nil {
				break
			}
			if choice.FinishReason != nil && *choice.FinishReason != "" {
				reply.Finish = cut(*choice.FinishReason, 40)
			}
		}
	}
	reply.Text = a.text.String()
	switch {
	case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		reply.Calls, reply.Reasoning = asked.done()
		return reply, nil
	case errors.Is(err, io.ErrUnexpectedEOF) && reply.Finish != "":
		reply.Calls, reply.Reasoning = asked.done()
		return reply, nil // said that it ended, forgot to say [DONE]
	}
	return reply, interrupted(err)
}

// interrupted makes a sentence of why a stream ended early.
func interrupted(err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	why := egress.Reason(err)
	switch {
	case errors.Is(err, openai.ErrGarbage):
		why = "the model's server sent something that cannot be read"
	case errors.Is(err, errBody):
		why = "the model's server sent more than 8 MiB"
	}
	return fault.Wrap(fault.Unavailable, errors.Join(ErrInterrupted, err), "The answer was interrupted: %s.", why)
}

// whole reads an answer that came in one piece although a stream was asked for.
func whole(in io.Reader, resp *http.Response, tools bool, onDelta func(string)) (Reply, error) {
	b, err := io.ReadAll(in)
	if err != nil {
		return Reply{}, interrupted(err)
	}
	var w struct {
		openai.ChatResponse
		Error *openai.Error `json:"error"`
	}
	if json.Unmarshal(b, &w) != nil || len(w.Choices) == 0 && w.Error == nil {
		return Reply{}, strange(b, resp)
	}
	if w.Error != nil {
		return Reply{}, fault.New(fault.Unavailable, "The model's server said %q.", line(w.Error.Message))
	}
	a := answer{onDelta: onDelta}
	err = a.add(string(w.Choices[0].Message.Content))
	reply := Reply{Text: a.text.String(), Finish: cut(w.Choices[0].FinishReason, 40), Model: cut(w.Model, maxName)}
	if w.Usage != nil {
		reply.Usage = *w.Usage
	}
	var asked calls
	for _, call := range w.Choices[0].Message.ToolCalls {
		if tools && err == nil {
			err = asked.add(call, true)
		}
	}
	asked.think(string(w.Choices[0].Message.Reasoning))
	if err == nil {
		reply.Calls, reply.Reasoning = asked.done()
	}
	return reply, err
}

var errBody = errors.New("body too large")

// counted bounds what is read of one answer, keep-alives included.
type counted struct {
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errBody
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

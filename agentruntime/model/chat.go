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
	"agentsite/internal/models"
	"agentsite/internal/openai"
)

const (
	// maxRetryAfter is the longest wait that a server may ask for before the one retry. A longer one is
	// returned to the caller as a RateLimited fault.
	maxRetryAfter = 20 * time.Second
	retryPause    = time.Second
)

// Reply is the answer of a model. With an error it holds the part that was received.
type Reply struct {
	Text string
	// Finish is the reason why the model stopped: stop, length, content_filter, or another word of the
	// server; empty if the server gives none.
	Finish string
	// Model is the model that answered, as the server names it; it may differ from the requested name.
	Model string
	Usage openai.Usage
	// Calls are the tool calls of the model, at most MaxCalls, each with an id. There are none when the
	// request offered no tools, and none with an error.
	Calls []openai.ToolCall
	// Reasoning is the model's thinking before its tool calls, cut. It is sent back with the calls and
	// is no part of the answer.
	Reasoning string
	// Thoughts is all thinking of the model that the server sent, cut, for readers. It is no part of the
	// answer and not sent back. Text may be shorter than the pieces that were passed on, if the model
	// marked only the end of its thoughts.
	Thoughts string
}

// Chat asks for one completion and passes each piece of text to onDelta as it arrives. It streams if
// the server does, and also accepts an answer in one piece. It retries once when a server is
// overloaded, only before the first piece.
//
// Errors are *fault.Error; ErrInterrupted and ErrTooLong come with the partial Reply. When ctx ends the
// error wraps its cause.
func (c *Client) Chat(ctx context.Context, req openai.ChatRequest, onDelta func(string)) (Reply, error) {
	req.Stream = true
	req.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	for attempt := 1; ; attempt++ {
		reply, wait, err := c.tryChat(ctx, req, onDelta)
		if err == nil || reply.Text != "" || wait == noRetry || wait > 0 && attempt > 1 || ctx.Err() != nil {
			return reply, err
		}
		if wait == withoutOptions {
			req.StreamOptions = nil
			attempt-- // A retry with other parameters does not count as an attempt.
			continue
		}
		if wait == withoutNames {
			req.Messages = removeNames(req.Messages)
			attempt--
			continue
		}
		if wait == withoutFormat {
			req.ResponseFormat = nil
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
			return reply, unavailableFault(ctx.Err())
		}
	}
}

// Values of the wait that tryChat returns. Positive values are pauses before one more attempt; these
// name a retry at once with a changed request.
const (
	noRetry        = time.Duration(-1)
	withoutOptions = time.Duration(0)  // at once, without stream_options
	otherLimit     = time.Duration(-2) // at once, with max_completion_tokens
	withoutNames   = time.Duration(-3) // at once, without the speakers' names
	withoutFormat  = time.Duration(-4) // at once, without the form of the answer
)

func hasNames(list []openai.Message) bool {
	return slices.ContainsFunc(list, func(m openai.Message) bool { return m.Name != "" })
}

// removeNames returns a copy of messages without the speakers' names, because some servers refuse the
// field.
func removeNames(list []openai.Message) []openai.Message {
	list = slices.Clone(list)
	for i := range list {
		list[i].Name = ""
	}
	return list
}

// refusedFormat reports whether a server refused the form of the answer, by the names of its fields.
func refusedFormat(err error) bool {
	return slices.ContainsFunc([]string{"response_format", "json_schema", "output_config", "schema"},
		func(w string) bool { return strings.Contains(err.Error(), w) })
}

// tryChat makes one attempt. The duration says how to retry: a pause, or one of noRetry, withoutOptions,
// otherLimit, withoutNames and withoutFormat.
func (c *Client) tryChat(ctx context.Context, req openai.ChatRequest, onDelta func(string)) (Reply, time.Duration,
	error) {
	path, in := "/chat/completions", any(req)
	if c.provider == models.Anthropic {
		path, in = "/messages", newAnthropicRequest(req)
	}
	body, err := json.Marshal(in)
	if err != nil {
		return Reply{}, noRetry, fault.Wrap(fault.Internal, err, "The question could not be written down.")
	}
	resp, err := c.sendRequest(ctx, http.MethodPost, path, body, "text/event-stream, application/json")
	if err != nil {
		return Reply{}, noRetry, err
	}
	defer resp.Body.Close()
	status := resp.StatusCode
	if isAnswer(status) {
		status = http.StatusOK
	}
	switch status {
	case http.StatusOK:
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, 529:
		err := c.refusalFault(resp, req.Model, len(req.Tools) > 0)
		wait := retryAfter(resp.Header)
		if wait > maxRetryAfter {
			wait = noRetry
		} else if wait <= 0 {
			wait = retryPause
		}
		return Reply{}, wait, err
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		err := c.refusalFault(resp, req.Model, len(req.Tools) > 0)
		if req.StreamOptions != nil && strings.Contains(err.Error(), "stream_options") {
			return Reply{}, withoutOptions, err
		}
		if req.MaxTokens > 0 && strings.Contains(err.Error(), "max_completion_tokens") {
			return Reply{}, otherLimit, err
		}
		if req.ResponseFormat != nil && refusedFormat(err) {
			return Reply{}, withoutFormat, err
		}
		if hasNames(req.Messages) && strings.Contains(err.Error(), "name") {
			return Reply{}, withoutNames, err
		}
		return Reply{}, noRetry, err
	default:
		return Reply{}, noRetry, c.refusalFault(resp, req.Model, len(req.Tools) > 0)
	}
	received := &counted{resp.Body, maxBody}
	chunks := chunkReader(openai.NewReader(received))
	if c.provider == models.Anthropic {
		chunks = newAnthropicReader(received)
	}
	var reply Reply
	reply, err = readChunks(keyHider{chunks, c}, len(req.Tools) > 0, onDelta)
	if errors.Is(err, openai.ErrNoChat) {
		err = c.notModelFault(chunks.Head(), resp)
	}
	if err != nil && ctx.Err() != nil {
		err = fault.Wrap(fault.Unavailable, context.Cause(ctx), "The question was stopped.")
	}
	return reply, noRetry, err
}

// isAnswer reports whether an HTTP status may come with an answer: some servers and proxies say 201 or 206.
func isAnswer(status int) bool {
	return status >= 200 && status < 300 && status != http.StatusNoContent && status != http.StatusResetContent
}

// keyHider removes the key from the errors of a server, which may repeat it.
type keyHider struct {
	chunkReader
	client *Client
}

// Next implements chunkReader.
func (k keyHider) Next() (openai.Chunk, error) {
	ch, err := k.chunkReader.Next()
	if ch.Error != nil {
		ch.Error.Message = k.client.hideKey(ch.Error.Message)
	}
	return ch, err
}

// answer collects the text of one reply, at most MaxText bytes.
type answer struct {
	text strings.Builder
}

// addText appends s without NUL characters and passes the appended part to onDelta, which may be nil. It
// returns an ErrTooLong fault once MaxText is reached.
func (a *answer) addText(s string, onDelta func(string)) error {
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
		if onDelta != nil {
			onDelta(s)
		}
	}
	return err
}

// chunkReader reads the chunks of an answer, as openai.Reader does.
type chunkReader interface {
	Next() (openai.Chunk, error)
	Head() []byte
}

// collector makes a Reply of chunks.
type collector struct {
	answer
	reply     Reply
	asked     calls
	joiner    openai.Joiner
	thinking  openai.Joiner
	splitter  thoughtSplitter
	thoughts  strings.Builder
	tools     bool // the request offered tools
	delivered bool // a choice arrived
	chosen    bool // index is that of the answer
	index     int
	onDelta   func(string)
}

// readChunks reads an answer to its end. Errors of the server are faults, as is the end of a stream in the
// middle; other errors wrap openai.ErrNoChat.
func readChunks(chunks chunkReader, tools bool, onDelta func(string)) (Reply, error) {
	c := &collector{tools: tools, onDelta: onDelta}
	var err error
	for err == nil {
		var ch openai.Chunk
		if ch, err = chunks.Next(); err != nil {
			break
		}
		err = c.addChunk(ch)
	}
	ended := errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF)
	if ended && !c.delivered {
		err, ended = openai.ErrNoChat, false
	}
	if errors.Is(err, openai.ErrNoChat) {
		return Reply{}, err
	}
	c.finishText()
	// A server may close the stream after a finish reason, without [DONE]: the reply is whole.
	if ended || errors.Is(err, io.ErrUnexpectedEOF) && c.reply.Finish != "" {
		c.reply.Calls, c.reply.Reasoning = c.asked.finishCalls()
		return c.reply, nil
	}
	return c.reply, interruptedFault(err)
}

func (c *collector) addChunk(ch openai.Chunk) error {
	if ch.Error != nil {
		return fault.Wrap(fault.Unavailable, errors.Join(ErrInterrupted, errors.New(ch.Error.Message)),
			"The answer was interrupted: the model's server said %q.", cleanLine(ch.Error.Message))
	}
	if ch.Usage != nil {
		c.reply.Usage = *ch.Usage
	}
	if ch.Model != "" && c.reply.Model == "" {
		c.reply.Model = cutBytes(ch.Model, maxName)
	}
	for _, choice := range ch.Choices {
		c.delivered = true
		if !c.chosen {
			c.chosen, c.index = true, choice.Index // One was asked for; some servers count from 1.
		}
		if choice.Index != c.index {
			continue
		}
		thought := c.thinking.Add(string(choice.Delta.Reasoning))
		c.asked.addThought(thought)
		addThoughts(&c.thoughts, thought)
		if err := c.addAnswer(c.joiner.Add(string(choice.Delta.Content))); err != nil {
			return err
		}
		for i := 0; c.tools && i < len(choice.Delta.ToolCalls); i++ {
			if err := c.asked.addPiece(choice.Delta.ToolCalls[i], choice.Whole); err != nil {
				return err
			}
		}
		if choice.FinishReason != nil {
			c.reply.Finish = cutBytes(*choice.FinishReason, 40)
		}
	}
	return nil
}

// addAnswer adds text of the model, which may hold thoughts.
func (c *collector) addAnswer(text string) error {
	answer, thought, all := c.splitter.addText(text)
	if all {
		addThoughts(&c.thoughts, c.text.String())
		c.text.Reset()
	}
	addThoughts(&c.thoughts, thought)
	return c.addText(answer, c.onDelta)
}

// finishText adds the text that was held back. It is not checked against the bound, because it is short.
func (c *collector) finishText() {
	_ = c.addAnswer(c.joiner.Flush())
	answer, thought := c.splitter.flushRest()
	_ = c.addText(answer, c.onDelta)
	addThoughts(&c.thoughts, thought)
	c.reply.Text = c.text.String()
	c.reply.Thoughts = strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(c.thoughts.String(), "\x00", ""), ""))
}

// interruptedFault returns an Unavailable fault that wraps ErrInterrupted and gives the reason why a
// stream ended early.
func interruptedFault(err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	why := egress.Reason(err)
	switch {
	case errors.Is(err, openai.ErrGarbage):
		why = "the model's server sent something that cannot be read"
	case errors.Is(err, errBody):
		why = "the model's server sent more than 8 MiB"
	case errors.Is(err, openai.ErrWhole):
		why = "the model's server sent more than 2 MiB in one piece"
	}
	return fault.Wrap(fault.Unavailable, errors.Join(ErrInterrupted, err), "The answer was interrupted: %s.", why)
}

// errBody is the error of answers beyond maxBody.
var errBody = errors.New("body too large")

// counted bounds the bytes read of one answer, including keep-alive lines, so that a server cannot send
// for ever.
type counted struct {
	r    io.Reader
	left int64
}

// Read implements io.Reader. It returns errBody once the bound is used up.
func (c *counted) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errBody
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"agentsite/handlers/respond"
	wire "agentsite/internal/openai"
)

// stillAfter is how long a stream may be silent. Until then an answer has not
// begun, so that a call that fails at once gets the status of its error.
const stillAfter = 15 * time.Second

// writer writes the chunks of one answer.
type writer struct {
	*call
	w    http.ResponseWriter
	open *respond.Events // once the answer has begun
	sent strings.Builder
}

// stream answers with chunks as the text grows.
func (c *call) stream(ctx context.Context, w http.ResponseWriter, r *http.Request, s *respond.Stream) error {
	ready := respond.LiftDeadlines(w)
	out := &writer{call: c, w: w}
	anew := false // what was sent is void, and cannot be taken back
	for {
		nctx, cancel := context.WithTimeout(ctx, stillAfter)
		e, err := s.Next(nctx)
		cancel()
		switch {
		case err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			if err = out.begin(); err == nil {
				err = out.open.KeepAlive()
			}
		case err != nil:
			ready()
			return out.fail(r, c.ended(ctx, r, err))
		case e.Restart:
			anew = true
		case e.Text != "" && !anew:
			err = out.say(e.Text)
		case e.End != nil:
			ready()
			c.over = true
			if err := failed(*e.End); err != nil {
				return out.fail(r, err)
			}
			rest, more := strings.CutPrefix(e.End.Text, out.sent.String())
			if !more && e.End.Text != "" {
				rest = "\n\n" + e.End.Text // the whole answer, below what was sent
			}
			if err = out.say(rest + c.extra(*e.End)); err == nil {
				return gone(out.end())
			}
		}
		if err != nil {
			return errGone
		}
	}
}

func gone(err error) error {
	if err != nil {
		return errGone
	}
	return nil
}

// begin opens the stream with the chunk that says who speaks.
func (o *writer) begin() (err error) {
	if o.open != nil {
		return nil
	}
	if o.open, err = respond.OpenEvents(o.w); err != nil {
		return err
	}
	return o.chunk(wire.ChunkChoice{Delta: wire.Delta{Role: wire.Assistant}}, nil)
}

func (o *writer) say(text string) error {
	if err := o.begin(); err != nil || text == "" {
		return err
	}
	o.sent.WriteString(text)
	return o.chunk(wire.ChunkChoice{Delta: wire.Delta{Content: wire.Content(text)}}, nil)
}

// end closes a whole answer.
func (o *writer) end() error {
	stop := wire.FinishStop
	if err := o.chunk(wire.ChunkChoice{FinishReason: &stop}, nil); err != nil {
		return err
	}
	if o.in.StreamOptions != nil && o.in.StreamOptions.IncludeUsage {
		if err := o.chunk(wire.ChunkChoice{}, o.usage(o.sent.String())); err != nil {
			return err
		}
	}
	return o.open.Write([]byte("data: [DONE]\n\n"))
}

// chunk writes one chunk: with usage it has no choices.
func (o *writer) chunk(choice wire.ChunkChoice, usage *wire.Usage) error {
	c := wire.Chunk{ID: o.id, Object: "chat.completion.chunk", Created: o.since, Model: o.asked.Task.AgentHandle, Choices: []wire.ChunkChoice{choice}, Usage: usage}
	if usage != nil {
		c.Choices = []wire.ChunkChoice{}
	}
	return o.event(c)
}

func (o *writer) event(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return o.open.Write(append(append([]byte("data: "), b...), "\n\n"...))
}

// fail tells of an error: with its status where nothing was sent yet, which
// is left to the door, else as an event of the stream.
func (o *writer) fail(r *http.Request, err error) error {
	if o.open == nil || errors.Is(err, errGone) {
		return err
	}
	p := o.problem(o.w, r, err)
	if werr := o.event(wire.ErrorBody{Error: p.body}); werr != nil {
		return errGone
	}
	return gone(o.open.Write([]byte("data: [DONE]\n\n")))
}

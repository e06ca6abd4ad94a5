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

// stillAfter is how long a stream stays silent before it starts with a keep-alive. A call that fails
// earlier gets the status of its error instead of a started stream.
const stillAfter = 15 * time.Second

// writer writes the chunks of one streamed answer.
type writer struct {
	*call
	w    http.ResponseWriter
	open *respond.Events // nil until the answer has started
	sent strings.Builder
}

// sendStream answers with chunks as the text grows. A failure before the first chunk gets a status of its
// own.
func (c *call) sendStream(ctx context.Context, w http.ResponseWriter, r *http.Request, s *respond.Stream) error {
	respond.LiftDeadlines(w)
	out := &writer{call: c, w: w}
	anew := false // the agent restarted its answer, but text that was sent cannot be withdrawn
	for {
		nctx, cancel := context.WithTimeout(ctx, stillAfter)
		e, err := s.Next(nctx)
		cancel()
		switch {
		case err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			if err = out.openStream(); err == nil {
				err = out.open.KeepAlive()
			}
		case err != nil:
			respond.SetWriteDeadline(w)
			return out.sendError(r, c.endError(ctx, r, err))
		case e.Restart:
			anew = true
		case e.Text != "" && !anew:
			err = out.sendText(e.Text)
		case e.End != nil:
			respond.SetWriteDeadline(w)
			c.over = true
			if err := taskError(*e.End); err != nil {
				return out.sendError(r, err)
			}
			rest, more := strings.CutPrefix(e.End.Text, out.sent.String())
			if !more && e.End.Text != "" {
				rest = "\n\n" + e.End.Text // the restarted answer as a whole, after the text sent before
			}
			if err = out.sendText(rest + c.extraText(*e.End)); err == nil {
				return goneError(out.sendEnd())
			}
		}
		if err != nil {
			return errGone
		}
	}
}

func goneError(err error) error {
	if err != nil {
		return errGone
	}
	return nil
}

// openStream starts the answer with the chunk that contains the role, which clients expect first. Later
// calls do nothing.
func (o *writer) openStream() (err error) {
	if o.open != nil {
		return nil
	}
	if o.open, err = respond.OpenEvents(o.w); err != nil {
		return err
	}
	return o.sendChunk(wire.ChunkChoice{Delta: wire.Delta{Role: wire.Assistant}}, nil)
}

func (o *writer) sendText(text string) error {
	if err := o.openStream(); err != nil || text == "" {
		return err
	}
	o.sent.WriteString(text)
	return o.sendChunk(wire.ChunkChoice{Delta: wire.Delta{Content: wire.Content(text)}}, nil)
}

// sendEnd sends the finish reason, the usage if it was requested, and the end mark.
func (o *writer) sendEnd() error {
	stop := wire.FinishStop
	if err := o.sendChunk(wire.ChunkChoice{FinishReason: &stop}, nil); err != nil {
		return err
	}
	if o.in.StreamOptions != nil && o.in.StreamOptions.IncludeUsage {
		if err := o.sendChunk(wire.ChunkChoice{}, o.estimateUsage(o.sent.String())); err != nil {
			return err
		}
	}
	return o.open.Write([]byte("data: [DONE]\n\n"))
}

// sendChunk writes one chunk. A chunk with usage has no choices.
func (o *writer) sendChunk(choice wire.ChunkChoice, usage *wire.Usage) error {
	c := wire.Chunk{ID: o.id, Object: "chat.completion.chunk", Created: o.since, Model: o.asked.Task.AgentHandle,
		Choices: []wire.ChunkChoice{choice}, Usage: usage}
	if usage != nil {
		c.Choices = []wire.ChunkChoice{}
	}
	return o.sendEvent(c)
}

func (o *writer) sendEvent(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return o.open.Write(append(append([]byte("data: "), b...), "\n\n"...))
}

// sendError reports an error. If nothing was sent yet, it returns the error, which then gets a status;
// otherwise it sends the error as an event.
func (o *writer) sendError(r *http.Request, err error) error {
	if o.open == nil || errors.Is(err, errGone) {
		return err
	}
	p := o.problemOf(o.w, r, err)
	if werr := o.sendEvent(wire.ErrorBody{Error: p.body}); werr != nil {
		return errGone
	}
	return goneError(o.open.Write([]byte("data: [DONE]\n\n")))
}

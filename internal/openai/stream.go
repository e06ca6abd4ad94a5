package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"agentsite/internal/egress"
	"agentsite/internal/lenientjson"
	"agentsite/internal/reason"
)

// Errors that the error of Next may wrap.
var (
	// ErrGarbage: an event in the middle of an answer is not a chunk in JSON.
	ErrGarbage = errors.New("the stream holds something that is not a chat chunk")
	// ErrNoChat: the answer is no chat completion from its beginning; Head returns that.
	ErrNoChat = errors.New("not a chat completion")
	// ErrWhole: an answer in one piece is larger than MaxWhole.
	ErrWhole = errors.New("body in one piece too large")
)

const (
	// MaxWhole bounds an answer in one piece in bytes, because it is held in memory.
	MaxWhole = 2 << 20
	headSize = 4 << 10
)

// Reader reads an answer as chunks, whether the server streams it or sends it in one piece: its first
// bytes decide, because content types are often wrong. Lines and events are bounded to 1 MiB; the caller
// must bound the whole stream. Texts of chunks may hold halves of characters, for a Joiner.
type Reader struct {
	in     *bufio.Reader
	head   headReader
	events *egress.EventReader // of a stream of events; nil for one of JSON values
	values *jsontext.Decoder   // of JSON values; nil for a stream of events
	queue  []Chunk
	opened bool
	chat   bool // an event or value was one of this API
	whole  bool // a value was a whole answer
	done   bool
	ended  bool // a choice has its finish_reason
}

// headReader keeps the first bytes that are read.
type headReader struct {
	r    io.Reader
	head []byte
}

// Read implements io.Reader.
func (h *headReader) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	h.head = append(h.head, p[:min(n, headSize-len(h.head))]...)
	return n, err
}

// NewReader returns a Reader of r. It does not close r.
func NewReader(r io.Reader) *Reader {
	out := &Reader{head: headReader{r: r}}
	out.in = bufio.NewReader(&out.head)
	return out
}

// Head returns the beginning of the answer, for the message about one that is not a chat completion.
func (r *Reader) Head() []byte { return r.head.head }

// SkipToJSON discards white space and a byte order mark, and reports whether JSON follows: an object or a
// list.
func SkipToJSON(in *bufio.Reader) (bool, error) {
	if b, _ := in.Peek(3); string(b) == "\xef\xbb\xbf" {
		_, _ = in.Discard(3) // bytes that Peek returned
	}
	for n := 0; ; n++ {
		b, err := in.ReadByte()
		switch {
		case err != nil:
			return false, err
		case n > MaxWhole:
			return false, ErrWhole
		case b == ' ', b == '\t', b == '\r', b == '\n':
			continue
		}
		return b == '{' || b == '[', in.UnreadByte()
	}
}

// streamBegin matches the beginning of a stream of events, which may be a comment.
var streamBegin = regexp.MustCompile(`^[\s\x{FEFF}]*(:|(data|event|id|retry)\b)`)

// openAnswer decides the form of the answer.
func (r *Reader) openAnswer() error {
	r.opened = true
	whole, err := SkipToJSON(r.in)
	switch {
	case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return ErrNoChat
	case err != nil:
		return err
	case whole:
		r.values = jsontext.NewDecoder(&lenientjson.NumberReader{R: &bounded{r.in, MaxWhole}},
			jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	default:
		r.events = egress.NewLooseEventReader(r.in)
	}
	return nil
}

// bounded fails with ErrWhole after left bytes.
type bounded struct {
	r    io.Reader
	left int
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, ErrWhole
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// Next returns the next chunk. io.EOF follows the server's "[DONE]" or a whole answer;
// io.ErrUnexpectedEOF means that the stream ended without it.
func (r *Reader) Next() (Chunk, error) {
	if !r.opened {
		if err := r.openAnswer(); err != nil {
			r.done = true
			return Chunk{}, err
		}
	}
	for len(r.queue) == 0 {
		if r.done {
			return Chunk{}, io.EOF
		}
		read := r.readEvent
		if r.values != nil {
			read = r.readValue
		}
		if err := read(); err != nil {
			return Chunk{}, err
		}
	}
	c := r.queue[0]
	r.queue = r.queue[1:]
	return c, nil
}

func (r *Reader) readEvent() error {
	ev, err := r.events.NextEvent()
	if errors.Is(err, io.EOF) && !r.chat && !streamBegin.Match(r.Head()) {
		return ErrNoChat
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	r.chat = true
	if len(ev.Problem) > 0 {
		if !r.ended {
			r.addProblem(reason.Find(ev.Problem))
		}
		return nil
	}
	text := bytes.TrimSpace(ev.Data)
	switch {
	case len(text) == 0:
	case ev.IsEnd():
		r.done = true
	case ev.IsError():
		r.addProblem(reason.Find(text))
	case text[0] == '{' || text[0] == '[':
		return r.addValue(text)
	case r.ended, ev.IsIdle():
		// It keeps the connection open, or comes after the answer.
	default:
		r.addProblem(reason.Find(text)) // A server writes its error as a plain text.
	}
	return nil
}

func (r *Reader) readValue() error {
	v, err := r.values.ReadValue()
	switch {
	case err == nil:
		return r.addValue(v)
	case errors.Is(err, ErrWhole):
		return ErrWhole
	case !r.chat && (errors.Is(err, io.EOF) || isSyntax(err)):
		return ErrNoChat
	case r.whole: // Text after the answer is no part of it.
		r.done = true
		return nil
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	case isSyntax(err):
		return fmt.Errorf("%w: %w", ErrGarbage, err)
	}
	return err
}

func isSyntax(err error) bool {
	_, ok := errors.AsType[*jsontext.SyntacticError](err)
	return ok
}

// addProblem queues an error of the server.
func (r *Reader) addProblem(why string) {
	if why == "" {
		why = "an error without a reason"
	}
	r.chat = true
	r.queue = append(r.queue, Chunk{Error: &Error{Message: why}})
}

// addValue queues the chunks in a JSON value: one, or a list of them.
func (r *Reader) addValue(raw []byte) error {
	if raw[0] == '[' {
		var list []json.RawMessage
		if err := lenientjson.Decode(raw, &list); err != nil {
			return fmt.Errorf("%w: %w", ErrGarbage, err)
		}
		for _, v := range list {
			if len(v) > 0 && v[0] == '{' {
				if err := r.addValue(v); err != nil {
					return err
				}
			}
		}
		return nil
	}
	var w wireAnswer
	if err := lenientjson.Decode(raw, &w); err != nil {
		return fmt.Errorf("%w: %w", ErrGarbage, err)
	}
	if why, failed := w.problem(raw); failed {
		r.addProblem(why)
		r.queue[len(r.queue)-1].Error.addCode(w.Error)
		return nil
	}
	if r.values != nil && !r.chat && w.Choices == nil {
		if IsOllama(raw) {
			return ErrNoChat
		}
		if why := reason.Find(raw); why != "" { // no answer, but a sentence
			r.addProblem(why)
			return nil
		}
	}
	r.chat = r.chat || w.Choices != nil
	c, whole := w.toChunk()
	r.ended = r.ended || slices.ContainsFunc(c.Choices, func(x ChunkChoice) bool { return x.FinishReason != nil })
	r.whole = r.whole || whole
	r.queue = append(r.queue, c)
	return nil
}

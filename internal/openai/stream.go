package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"agentsite/internal/egress"
)

// ErrGarbage is wrapped by the error of Next when an event is not a chunk in JSON.
var ErrGarbage = errors.New("the stream holds something that is not a chat chunk")

// Reader reads the chunks of a streamed answer. Lines and events are bounded to 1 MiB; the caller must
// bound the whole stream.
type Reader struct {
	events *egress.EventReader
	done   bool
}

// NewReader returns a Reader of the event stream r. It does not close r.
func NewReader(r io.Reader) *Reader { return &Reader{events: egress.NewEventReader(r)} }

// Next returns the next chunk. io.EOF follows the server's "[DONE]";
// io.ErrUnexpectedEOF means that the stream ended without it.
func (r *Reader) Next() (Chunk, error) {
	for {
		if r.done {
			return Chunk{}, io.EOF
		}
		data, err := r.events.Next()
		if errors.Is(err, io.EOF) {
			return Chunk{}, io.ErrUnexpectedEOF
		}
		if err != nil {
			return Chunk{}, err
		}
		text := strings.TrimSpace(string(data))
		switch text {
		case "":
			continue
		case "[DONE]":
			r.done = true
			continue
		}
		var c Chunk
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			return Chunk{}, fmt.Errorf("%w: %w", ErrGarbage, err)
		}
		return c, nil
	}
}

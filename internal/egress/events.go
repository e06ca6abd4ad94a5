package egress

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// MaxEvent is the maximum size of one server-sent event in bytes; a larger one is an error.
const MaxEvent = 1 << 20

// EventReader reads the data of server-sent events (the WHATWG format) from an untrusted stream: lines
// and events are bounded; comments, ids and retry fields are skipped. The zero value is not usable.
type EventReader struct {
	r       *bufio.Reader
	event   []byte
	name    string
	problem []byte
	begun   bool
}

// StreamEvent is one server-sent event. Its bytes are valid until the next call.
type StreamEvent struct {
	Name string // "" for an event without one
	Data []byte
	// Problem is the value of a field "error", which no standard has, but some servers send.
	Problem []byte
}

// NewEventReader returns a reader of the events in r. It reads ahead and does not close r.
func NewEventReader(r io.Reader) *EventReader {
	return &EventReader{r: bufio.NewReaderSize(r, 16<<10), event: []byte{}}
}

// Next returns the data of the next event that has any; the bytes are valid until the next call. It
// returns io.EOF at the end of the stream. Data at the end of the stream without a blank line is
// returned as an event, because many servers forget it. An event larger than MaxEvent is a TooLarge
// Error.
func (e *EventReader) Next() ([]byte, error) {
	for {
		ev, err := e.NextEvent()
		if err != nil || ev.Data != nil {
			return ev.Data, err
		}
	}
}

// NextEvent is Next, with the name of the event. It also returns events with a Problem but no data; their
// Data is nil.
func (e *EventReader) NextEvent() (StreamEvent, error) {
	e.event, e.name, e.problem = e.event[:0], "", nil
	seen := false
	finish := func() StreamEvent {
		ev := StreamEvent{Name: e.name, Problem: e.problem}
		if seen {
			ev.Data = e.event[:len(e.event):len(e.event)]
		}
		return ev
	}
	for {
		line, err := e.readLine()
		if err != nil && !(errors.Is(err, io.EOF) && len(line) > 0) {
			if errors.Is(err, io.EOF) && (seen || e.problem != nil) {
				return finish(), nil
			}
			return StreamEvent{}, err
		}
		if !e.begun {
			e.begun = true
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if len(line) == 0 {
			if seen || e.problem != nil {
				return finish(), nil
			}
			e.name = ""
			continue
		}
		field, value, colon := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			e.name = string(value[:min(len(value), 64)])
			continue
		case "error":
			if colon {
				e.problem = bytes.Clone(value)
			}
			continue
		case "data":
		default:
			continue
		}
		if len(e.event)+len(value)+1 > MaxEvent {
			return StreamEvent{}, newError(TooLarge, "", nil, "one event of the stream is larger than %d MiB",
				MaxEvent>>20)
		}
		if seen {
			e.event = append(e.event, '\n')
		}
		e.event = append(e.event, value...)
		seen = true
	}
}

// readLine returns one line without its line break. With io.EOF it may return the last, unfinished line.
func (e *EventReader) readLine() ([]byte, error) {
	part, err := e.r.ReadSlice('\n')
	if err == nil || errors.Is(err, io.EOF) {
		return trimEnd(part), err
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		return nil, err
	}
	long := bytes.Clone(part)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(long) > MaxEvent {
			return nil, newError(TooLarge, "", nil, "one line of the stream is larger than %d MiB", MaxEvent>>20)
		}
		part, err = e.r.ReadSlice('\n')
		long = append(long, part...)
	}
	return trimEnd(long), err
}

func trimEnd(b []byte) []byte {
	b = bytes.TrimSuffix(b, []byte("\n"))
	return bytes.TrimSuffix(b, []byte("\r"))
}

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
	r     *bufio.Reader
	event []byte
}

// NewEventReader returns a reader of the events in r. It reads ahead and does not close r.
func NewEventReader(r io.Reader) *EventReader {
	return &EventReader{r: bufio.NewReaderSize(r, 16<<10)}
}

// Next returns the data of the next event that has any; the bytes are valid until the next call. It
// returns io.EOF at the end of the stream. Data at the end of the stream without a blank line is
// returned as an event, because many servers forget it. An event larger than MaxEvent is a TooLarge
// Error.
func (e *EventReader) Next() ([]byte, error) {
	e.event = e.event[:0]
	seen := false
	for {
		line, err := e.readLine()
		if err != nil && !(errors.Is(err, io.EOF) && len(line) > 0) {
			if errors.Is(err, io.EOF) && seen {
				return e.event, nil
			}
			return nil, err
		}
		if len(line) == 0 {
			if seen {
				return e.event, nil
			}
			continue
		}
		data, ok := bytes.CutPrefix(line, []byte("data"))
		if !ok {
			continue
		}
		if len(data) > 0 {
			if data[0] != ':' {
				continue
			}
			data = bytes.TrimPrefix(data[1:], []byte(" "))
		}
		if len(e.event)+len(data)+1 > MaxEvent {
			return nil, newError(TooLarge, "", nil, "one event of the stream is larger than %d MiB", MaxEvent>>20)
		}
		if seen {
			e.event = append(e.event, '\n')
		}
		e.event = append(e.event, data...)
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

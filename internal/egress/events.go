package egress

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode"
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
	loose   bool
	fields  bool   // a line was one of the format
	held    []byte // of a loose reader: the first line of the next event
	next    string // the name of that event
	stray   []byte // of a loose reader: lines that are not of the format, the beginning
}

// StreamEvent is one server-sent event. Its bytes are valid until the next call.
type StreamEvent struct {
	Name string // "" for an event without one
	Data []byte
	// Problem is the value of a field "error", which no standard has, but some servers send.
	Problem []byte
}

// IsError reports whether the name of the event says that it is an error.
func (e StreamEvent) IsError() bool {
	name := strings.ToLower(e.Name)
	return strings.Contains(name, "error") || strings.Contains(name, "exception") || strings.HasPrefix(name, "fail")
}

// IsEnd reports whether the data is a word that ends a stream, such as the "[DONE]" of model servers.
func (e StreamEvent) IsEnd() bool { return slices.Contains(endWords, e.word()) }

// IsOther reports whether the event has a name of its own, so that it may be of no use for the reader.
func (e StreamEvent) IsOther() bool {
	return e.Name != "" && e.Name != "message" && e.Name != "data" && !e.IsError()
}

// IsIdle reports whether the data is plain text that only keeps the connection open: a word for it, a time, or any
// text in an event with a name of its own.
func (e StreamEvent) IsIdle() bool {
	text := bytes.TrimSpace(e.Data)
	if e.IsError() || beginsJSON(text) {
		return false
	}
	return e.IsOther() || slices.Contains(idleWords, e.word()) ||
		!bytes.ContainsFunc(text, unicode.IsLetter)
}

func (e StreamEvent) word() string {
	return strings.ToLower(strings.Trim(string(e.Data), "\"'[]() \n"))
}

var (
	endWords  = []string{"done", "end", "eof", "eos", "finish", "finished", "complete", "completed", "stop", "close"}
	idleWords = []string{"ping", "pong", "keepalive", "keep-alive", "keep alive", "heartbeat", "null", "none", "ok"}
)

// NewLooseEventReader returns an EventReader that also reads streams which break the format: without blank lines
// between events of JSON, with JSON on a line of its own, and with plain text at the end, which is a Problem.
func NewLooseEventReader(r io.Reader) *EventReader {
	e := NewEventReader(r)
	e.loose = true
	return e
}

// NewEventReader returns a reader of the events in r. It reads ahead and does not close r.
func NewEventReader(r io.Reader) *EventReader {
	return &EventReader{r: bufio.NewReaderSize(&lineReader{r: r}, 16<<10), event: []byte{}}
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
	e.event, e.name, e.problem = e.event[:0], e.next, nil
	e.next = ""
	seen, name, tries := e.held != nil, e.name, 0
	e.event, e.held = append(e.event, e.held...), nil
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
			if stray := e.stray; errors.Is(err, io.EOF) && e.fields && len(stray) > 0 {
				e.stray = nil
				return StreamEvent{Problem: stray}, nil
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
		e.fields = e.fields || isField(string(field), colon)
		if e.loose && e.fields && !isField(string(field), colon) {
			if !isJSON(line) {
				e.addStray(line)
				continue
			}
			field, value = []byte("data"), line
		}
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
		if e.loose && seen && tries < maxTries && beginsJSON(value) && isWhole(e.event, &tries) {
			e.held = append([]byte{}, value...)
			if e.name != name {
				e.name, e.next = name, e.name
			}
			return finish(), nil
		}
		if len(e.event)+len(value)+1 > MaxEvent {
			return StreamEvent{}, newError(TooLarge, "", nil, "one event of the stream is larger than %d MiB",
				MaxEvent>>20)
		}
		if seen {
			e.event = append(e.event, '\n')
		}
		e.event = append(e.event, value...)
		if !seen {
			seen, name = true, e.name
		}
	}
}

// maxTries bounds how often the beginning of one event is read as JSON, because each time reads all of it.
const maxTries = 8

// isWhole is isJSON, and counts.
func isWhole(event []byte, tries *int) bool {
	*tries++
	return isJSON(event)
}

// maxStray bounds the bytes of text outside of the format that are kept.
const maxStray = 4 << 10

func (e *EventReader) addStray(line []byte) {
	if room := maxStray - len(e.stray); room > 0 {
		e.stray = append(append(e.stray, line[:min(len(line), room)]...), '\n')
	}
}

// isField reports whether a line with that beginning is one of the format: a comment has an empty field.
func isField(name string, colon bool) bool {
	switch name {
	case "":
		return colon
	case "data", "event", "id", "retry":
		return true
	}
	return name == "error" && colon
}

func beginsJSON(b []byte) bool { return len(b) > 0 && (b[0] == '{' || b[0] == '[') }

// isJSON reports whether b is a JSON object or list, or the "[DONE]" of model servers.
func isJSON(b []byte) bool {
	return beginsJSON(b) && (b[len(b)-1] == '}' || b[len(b)-1] == ']') && (json.Valid(b) || string(b) == "[DONE]")
}

// lineReader replaces the line ends CRLF and CR, which the format also has, by LF.
type lineReader struct {
	r  io.Reader
	cr bool // the last byte was a CR, so that an LF belongs to it
}

// Read implements io.Reader.
func (l *lineReader) Read(p []byte) (int, error) {
	for {
		n, err := l.r.Read(p)
		if !l.cr && bytes.IndexByte(p[:n], '\r') < 0 && n > 0 {
			return n, err
		}
		out := p[:0]
		for _, b := range p[:n] {
			if !(b == '\n' && l.cr) {
				out = append(out, b)
			}
			if l.cr = b == '\r'; l.cr {
				out[len(out)-1] = '\n'
			}
		}
		if len(out) > 0 || err != nil || len(p) == 0 {
			return len(out), err
		}
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

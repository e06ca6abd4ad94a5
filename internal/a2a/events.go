package a2a

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"agentsite/internal/egress"
	"agentsite/internal/lenientjson"
	"agentsite/internal/reason"
)

// maxReason bounds the reason of an agent in characters.
const maxReason = 300

// eventSource returns a function that reads the next event of an answer, io.EOF at its end. The first bytes decide
// whether the answer is a stream of events or JSON, because content types are often wrong.
func (c *Client) eventSource(resp *http.Response) func() (Event, error) {
	in := bufio.NewReader(&capped{r: resp.Body, left: maxTotal})
	if c.ep.Strict {
		events := egress.NewEventReader(in)
		return func() (Event, error) {
			for {
				data, err := events.Next()
				if err != nil {
					return Event{}, err
				}
				if len(bytes.TrimSpace(data)) > 0 {
					return c.decodeData(data, 0)
				}
			}
		}
	}
	begin, err := skipToText(in)
	if err != nil {
		return func() (Event, error) { return Event{}, err }
	}
	if isStream := begin != '{' && begin != '[' && (mediaType(resp) == "text/event-stream" || begin != '<'); isStream {
		events := egress.NewLooseEventReader(in)
		return func() (Event, error) { return c.nextEvent(events) }
	}
	return c.valueSource(in, resp)
}

// skipToText discards white space and a byte order mark, and returns the next byte without reading it.
func skipToText(in *bufio.Reader) (byte, error) {
	if b, _ := in.Peek(3); string(b) == "\xef\xbb\xbf" {
		_, _ = in.Discard(3) // bytes that Peek returned
	}
	for {
		b, err := in.ReadByte()
		if err != nil {
			return 0, err
		}
		if b != ' ' && b != '\t' && b != '\r' && b != '\n' {
			return b, in.UnreadByte()
		}
	}
}

// nextEvent reads the next event of a stream. An error in any form that servers write is an *Error of FaultRefused,
// because the agent itself says that the task failed.
func (c *Client) nextEvent(events *egress.EventReader) (Event, error) {
	for {
		ev, err := events.NextEvent()
		if err != nil {
			return Event{}, err
		}
		text := bytes.TrimSpace(ev.Data)
		switch {
		case len(ev.Problem) > 0 && len(text) == 0:
			if text = bytes.TrimSpace(ev.Problem); text[0] == '<' {
				return Event{}, io.EOF // a page that a proxy put behind a stream it cut
			}
			return Event{}, saidError(text)
		case len(text) == 0, ev.IsIdle():
		case ev.IsEnd():
			return Event{}, io.EOF
		case text[0] != '{' && text[0] != '[':
			return Event{}, saidError(text)
		default:
			out, err := c.decodeNamed(ev, unwrapOne(text))
			if e, ok := errors.AsType[*Error](err); ok && e.Fault == FaultShape && ev.IsOther() {
				continue // of another protocol, such as a ping
			}
			return out, err
		}
	}
}

// decodeNamed decodes the JSON of one event of a stream.
func (c *Client) decodeNamed(ev egress.StreamEvent, text []byte) (Event, error) {
	out, err := c.decodeData(text, 0)
	if bare, wrong := c.dec.decodeEvent(text); err != nil && wrong == nil && !saysError(text) {
		return bare, nil // without the envelope of the binding
	}
	if e, ok := errors.AsType[*Error](err); ok && e.Fault == FaultShape && (ev.IsError() || saysError(text)) {
		return out, saidError(text)
	}
	if err == nil && ev.IsError() {
		return Event{}, saidError(text)
	}
	return out, err
}

// saidError returns the error that an agent sent in another form than that of the protocol.
func saidError(text []byte) *Error { return refusedError(0, 0, reason.Find(text)) }

// saysError reports whether a JSON object is an error of a web framework.
func saysError(text []byte) bool {
	var w struct {
		Error  json.RawMessage `json:"error"`
		Errors json.RawMessage `json:"errors"`
		Detail json.RawMessage `json:"detail"`
		Code   json.RawMessage `json:"code"`
		Status string          `json:"status"`
		Type   string          `json:"type"`
	}
	if lenientjson.Decode(text, &w) != nil {
		return false
	}
	if reason.IsSet(w.Error) || reason.IsSet(w.Errors) || reason.IsSet(w.Detail) || w.Type == "error" {
		return true
	}
	status := strings.ToLower(w.Status)
	failed := strings.Contains(status, "error") || strings.HasPrefix(status, "fail") ||
		len(status) == 3 && status > "399"
	return (reason.IsSet(w.Code) || failed) && reason.Find(text) != ""
}

// valueSource returns a function that reads JSON values as events: one answer, a list of events, or one event a line.
func (c *Client) valueSource(in io.Reader, resp *http.Response) func() (Event, error) {
	values := json.NewDecoder(in)
	var list []json.RawMessage
	read := 0
	return func() (Event, error) {
		for len(list) == 0 {
			var v json.RawMessage
			err := values.Decode(&v)
			if _, limit := errors.AsType[*Error](err); err != nil && read > 0 && !limit {
				return Event{}, io.EOF // Text after an answer is no part of it.
			}
			if _, syntax := errors.AsType[*json.SyntaxError](err); syntax || errors.Is(err, io.ErrUnexpectedEOF) {
				return Event{}, notA2AError([]byte("{"), resp.StatusCode, false)
			}
			if err != nil {
				return Event{}, err
			}
			read++
			if list = []json.RawMessage{v}; v[0] == '[' && (json.Unmarshal(v, &list) != nil || len(list) == 0) {
				return Event{}, notA2AError(v, resp.StatusCode, false)
			}
		}
		v := list[0]
		list = list[1:]
		if read > 1 && !isObject(v) {
			return Event{}, io.EOF
		}
		if read > 1 {
			return c.decodeNamed(egress.StreamEvent{}, v)
		}
		return c.decodeData(v, resp.StatusCode)
	}
}

// decodeData decodes one event in the envelope of the binding.
func (c *Client) decodeData(data []byte, status int) (Event, error) {
	if c.ep.Binding == BindingRPC {
		result, err := rpcResult(data, status, c.ep.Strict)
		if err != nil {
			return Event{}, err
		}
		return c.dec.decodeEvent(result)
	}
	if err := restError(data, status, c.ep.Strict); err != nil {
		return Event{}, err
	}
	return c.dec.decodeEvent(data)
}

// unwrapOne returns the element of a list with one element, and other JSON as it is.
func unwrapOne(b []byte) []byte {
	var list []json.RawMessage
	if len(b) > 0 && b[0] == '[' && json.Unmarshal(b, &list) == nil && len(list) == 1 {
		return list[0]
	}
	return b
}

// unwrapWhole returns the JSON of an answer to one request that an agent wrote in UTF-16, as a stream of events, or
// as a list of one.
func (c *Client) unwrapWhole(b []byte) []byte {
	b = bytes.TrimSpace(lenientjson.TrimMark(b))
	if len(b) == 0 {
		return b
	}
	if b[0] == '{' || b[0] == '[' {
		return unwrapOne(b)
	}
	events := egress.NewLooseEventReader(bytes.NewReader(b))
	for last := b; ; {
		ev, err := events.NextEvent()
		if err != nil || ev.IsEnd() {
			return last
		}
		if text := bytes.TrimSpace(ev.Data); isObject(text) {
			last = bytes.Clone(text)
		} else if len(ev.Problem) > 0 && isObject(ev.Problem) {
			last = ev.Problem
		}
	}
}

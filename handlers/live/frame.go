package live

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"strings"

	"agentsite/handlers/api"
	"agentsite/internal/chat"
	"agentsite/internal/ident"
	"agentsite/internal/strictjson"
)

// The forms of an update. Each form is encoded once for all readers that use it.
const (
	plainFrame = iota // a WebSocket frame with JSON
	htmlFrame         // the same with the message as HTML
	plainEvent        // a server-sent event with JSON
	htmlEvent
)

// encodeAll returns the updates in one form, one after the other. An update that cannot be encoded is
// logged and left out.
func (d *Streams) encodeAll(form int, list []chat.Update) []byte {
	all, _ := d.encodePart(form, list, math.MaxInt)
	return all
}

// encodePart is encodeAll for the first updates, until they take the given bytes. It returns the others
// as rest.
func (d *Streams) encodePart(form int, list []chat.Update, bytes int) (all []byte, rest []chat.Update) {
	for i, u := range list {
		if len(all) >= bytes {
			return all, list[i:]
		}
		b, err := u.Encoded(form, func(u chat.Update) ([]byte, error) { return d.encodeUpdate(form, u) })
		if err != nil {
			d.log.Error("encode live update", "error", err)
			continue
		}
		if len(list) == 1 || len(all) == 0 && len(b) >= bytes {
			return b, list[i+1:] // shared with the other readers
		}
		if all == nil {
			all = make([]byte, 0, min(len(list)*(len(b)+16), resumeBytes))
		}
		all = append(all, b...)
	}
	return all, nil
}

// encodeUpdate returns an update in one form. It recovers from a panic, because it runs in goroutines
// that no HTTP request protects, and a faulty message must not end the process.
func (d *Streams) encodeUpdate(form int, u chat.Update) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	name, b, err := d.updateJSON(u, form == htmlFrame || form == htmlEvent)
	if err != nil {
		return nil, err
	}
	if form == plainFrame || form == htmlFrame {
		return textFrame(b), nil
	}
	var buf bytes.Buffer
	if u.Message != nil {
		fmt.Fprintf(&buf, "id: %d\n", u.Message.Seq)
	}
	fmt.Fprintf(&buf, "event: %s\ndata: %s\n\n", name, b)
	return buf.Bytes(), nil
}

// textFrame returns a complete, unmasked WebSocket text frame with b, as servers send it.
func textFrame(b []byte) []byte {
	const finText = 0x81
	out := make([]byte, 0, len(b)+10)
	switch n := len(b); {
	case n < 126:
		out = append(out, finText, byte(n))
	case n < 1<<16:
		out = binary.BigEndian.AppendUint16(append(out, finText, 126), uint16(n))
	default:
		out = binary.BigEndian.AppendUint64(append(out, finText, 127), uint64(n))
	}
	return append(out, b...)
}

// updateJSON returns the event name and the JSON of an update; html adds the rendered message.
func (d *Streams) updateJSON(u chat.Update, html bool) (name string, b []byte, err error) {
	type taskJSON struct {
		ID     string `json:"id"`
		Agent  string `json:"agent"`
		State  string `json:"state"`
		Status string `json:"status,omitempty"`
		Reason string `json:"reason,omitempty"`
		*api.WaitJSON
	}
	var v any
	switch {
	case u.Message != nil:
		name = "message"
		f := struct {
			Type string `json:"type"`
			api.MessageJSON
			HTML string `json:"html,omitempty"`
		}{Type: name, MessageJSON: api.NewMessageJSON(*u.Message)}
		if html {
			// Shown fails if the changed message was deleted meanwhile. Then the update has no HTML.
			ctx, cancel := context.WithTimeout(context.Background(), liveWriteTimeout)
			if m, err := d.chat.Shown(ctx, u); err == nil {
				f.HTML = d.messages.MessageHTML(m)
			}
			cancel()
		}
		v = f
	case u.Delta != nil:
		name = "delta"
		v = d.deltaJSON(*u.Delta, html)
	case u.Presence != nil:
		name = "presence"
		v = struct {
			Type    string   `json:"type"`
			Handles []string `json:"handles"`
		}{name, append([]string{}, u.Presence.Handles...)}
	case u.Typing != nil:
		name = "typing"
		v = struct {
			Type   string `json:"type"`
			Handle string `json:"handle"`
		}{name, u.Typing.Handle}
	case u.Read != nil:
		name = "read"
		v = struct {
			Type   string `json:"type"`
			Handle string `json:"handle"`
			Seq    int64  `json:"seq"`
		}{name, u.Read.Handle, u.Read.Seq}
	default:
		name = "task"
		if u.Task.State.Terminal() {
			d.drafts.Drop(u.Task.ID)
		}
		v = struct {
			Type string   `json:"type"`
			Task taskJSON `json:"task"`
		}{name, taskJSON{u.Task.ID, u.Task.Agent, string(u.Task.State), u.Task.Status, u.Task.Reason,
			api.NewWaitJSON(u.Task.Wait)}}
	}
	b, err = json.Marshal(v)
	return name, b, err
}

// blocksJSON are finished blocks of an answer: the bytes from From to To are rendered as HTML.
type blocksJSON struct {
	From int    `json:"from"`
	To   int    `json:"to"`
	HTML string `json:"html,omitempty"`
}

type deltaJSON struct {
	Type   string      `json:"type"`
	TaskID string      `json:"task_id"`
	Offset int         `json:"offset"`
	Text   string      `json:"text"`
	Blocks *blocksJSON `json:"blocks,omitempty"`
}

// deltaJSON returns the JSON of streamed text; html adds the blocks that the text finishes.
func (d *Streams) deltaJSON(u chat.Delta, html bool) deltaJSON {
	out := deltaJSON{Type: "delta", TaskID: u.TaskID, Offset: u.Offset, Text: u.Text}
	if html {
		if s := d.drafts.Advance(u.TaskID, u.Before, u.Text); s.To > s.From {
			out.Blocks = &blocksJSON{s.From, s.To, string(s.HTML)}
		}
	}
	return out
}

// frameReader handles the frames that a member sends on the socket of a conversation. A nil frameReader
// accepts none.
type frameReader struct {
	streams *Streams
	actor   ident.Actor
	id      string // id of the conversation
}

// handleFrame handles one frame. For an unknown frame, one with an unknown field, and any frame if f is
// nil, it returns the reason for which the socket is closed; else "".
func (f *frameReader) handleFrame(ctx context.Context, b []byte) (refused string) {
	if f == nil {
		return notUnderstood
	}
	var in struct {
		Type string `json:"type"`
		Seq  *int64 `json:"seq"`
	}
	if strictjson.Check(b) != nil {
		return notUnderstood
	}
	if err := strictjson.Decode(b, &in); err != nil {
		if u, ok := errors.AsType[*strictjson.UnknownError](err); ok {
			return cutReason(u.Error())
		}
		return notUnderstood
	}
	// A refusal does not end the socket, because the actor's permissions can change while it is open.
	switch {
	case in.Type == "typing" && in.Seq == nil:
		_ = f.streams.chat.Typing(ctx, f.actor, f.id) // the error is ignored for the reason above
	case in.Type == "read" && in.Seq != nil && *in.Seq >= 0:
		if err := f.streams.chat.Seen(ctx, f.actor, f.id, *in.Seq); err != nil {
			f.streams.log.Debug("read mark of a socket", "error", err)
		}
	default:
		return notUnderstood
	}
	return ""
}

// notUnderstood is the reason for which a socket is closed after any other bad frame.
const notUnderstood = "this is not understood here"

// maxReason is the longest reason of a close frame in bytes (RFC 6455, 5.5.1).
const maxReason = 123

func cutReason(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxReason)], "")
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// maxAnswer is the number of bytes that are read of an answer at most.
const maxAnswer = 8 << 20

// account is a person with an API token. It is safe for concurrent use.
type account struct {
	name, token string
	http        *http.Client
}

func newAccount(name, token string) *account {
	return &account{name: name, token: token, http: &http.Client{
		Timeout:   15 * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: 32, Proxy: nil},
	}}
}

// errNotSent is returned when the connection failed, so that the request cannot have reached the
// portal.
var errNotSent = errors.New("not sent")

// call makes one request and returns the status. An error means that no complete answer came; it is
// errNotSent when the portal cannot have received the request. out may be nil; a *refusal is filled for
// every status, anything else for 2xx only.
func (a *account) call(ctx context.Context, method, address string, in, out any) (status int, err error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return 0, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+a.token)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := a.http.Do(req)
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
			return 0, errNotSent
		}
		return 0, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return 0, err // an incomplete answer decides nothing
	}
	if e, ok := out.(*refusal); ok {
		json.Unmarshal(b, e)
	} else if out != nil && resp.StatusCode < 300 {
		if err := json.Unmarshal(b, out); err != nil {
			return 0, fmt.Errorf("%s %s answered %d with %q: %w", method, address, resp.StatusCode, clip(string(b)), err)
		}
	}
	return resp.StatusCode, nil
}

// refusal is an answer of which only the error message is used.
type refusal struct {
	Name  string `json:"name"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
}

// want is call for a request that must succeed: any other status is an error.
func (a *account) want(ctx context.Context, status int, method, address string, in, out any) error {
	got, err := a.call(ctx, method, address, in, out)
	if err == nil && got != status {
		err = errStatus(got)
	}
	if err != nil {
		u, perr := url.Parse(address)
		if perr == nil {
			address = u.RequestURI()
		}
		return fmt.Errorf("%s %s by %s: %w", method, address, a.name, err)
	}
	return nil
}

// errStatus is the unexpected status of an answer.
type errStatus int

func (e errStatus) Error() string { return fmt.Sprintf("answered %d", int(e)) }

// postAnswer is the portal's answer to a posted message.
type postAnswer struct {
	ID    string `json:"id"`
	Seq   int64  `json:"seq"`
	Tasks []struct {
		ID string `json:"id"`
	} `json:"tasks"`
}

type messageJSON struct {
	Type   string `json:"type"`
	Seq    int64  `json:"seq"`
	ID     string `json:"id"`
	Sender struct {
		Kind   string `json:"kind"`
		Handle string `json:"handle"`
	} `json:"sender"`
	Parts []struct {
		Text string `json:"text"`
	} `json:"parts"`
	Task *struct {
		ID    string `json:"id"`
		State string `json:"state"`
	} `json:"task"`
}

func (j messageJSON) message() message {
	m := message{seq: j.Seq, id: j.ID, fromAgent: j.Sender.Kind == "agent", sender: j.Sender.Handle}
	for _, p := range j.Parts {
		m.text += p.Text
	}
	if j.Task != nil && m.fromAgent {
		m.task, m.state = j.Task.ID, j.Task.State
	}
	return m
}

// page is the number of messages in one request.
const page = 200

// transcript returns the messages of a conversation after the seq after, which it reads page by page.
func (a *account) transcript(ctx context.Context, base, room string, after int64) ([]message, error) {
	var out []message
	for {
		var in struct {
			Messages []messageJSON `json:"messages"`
		}
		if err := a.want(ctx, 200, "GET", fmt.Sprintf("%s/api/v1/conversations/%s/messages?after=%d&limit=%d", base, room, after, page), nil, &in); err != nil {
			return nil, err
		}
		for _, j := range in.Messages {
			out = append(out, j.message())
		}
		if len(in.Messages) == 0 { // A page of long messages is shorter than asked for.
			return out, nil
		}
		if next := out[len(out)-1].seq; next > after {
			after = next
		} else {
			return out, violationf(misbehaved, "the page after %d ends at %d", after, next)
		}
	}
}

// taskStates returns the state of each of the account's tasks in a conversation, by task id.
func (a *account) taskStates(ctx context.Context, base, room string) (map[string]string, error) {
	out := make(map[string]string)
	cursor := ""
	for range 1000 {
		var in struct {
			Tasks []struct {
				ID    string `json:"id"`
				State string `json:"state"`
			} `json:"tasks"`
			Next string `json:"next_cursor"`
		}
		q := url.Values{"conversation_id": {room}, "limit": {"100"}, "cursor": {cursor}}
		if cursor == "" {
			q.Del("cursor")
		}
		if err := a.want(ctx, 200, "GET", base+"/api/v1/tasks?"+q.Encode(), nil, &in); err != nil {
			return nil, err
		}
		for _, t := range in.Tasks {
			out[t.ID] = t.State
		}
		if cursor = in.Next; cursor == "" {
			return out, nil
		}
	}
	return nil, violationf(misbehaved, "the list of tasks of %s does not end", room)
}

// errEnded is the reason why a live stream ended. code is the WebSocket close code, -1 when there is
// none.
type errEnded struct {
	code int
	err  error
}

func (e errEnded) Error() string { return fmt.Sprintf("stream ended: %v", e.err) }

// follow opens a live stream of a conversation after the seq after, by how: "sse" or "websocket". It
// calls fn with every stored message until fn returns false; the result is then nil. When the stream
// ends first, the result is an errEnded.
func (a *account) follow(ctx context.Context, base, room, how string, after int64, fn func(message) bool) error {
	address := fmt.Sprintf("%s/api/v1/conversations/%s/live?after=%d", base, room, after)
	each := func(b []byte) (bool, error) {
		var j messageJSON
		if err := json.Unmarshal(b, &j); err != nil {
			return false, violationf(misread, "a live event is not JSON: %q", clip(string(b)))
		}
		return j.Type != "message" || fn(j.message()), nil
	}
	if how == "websocket" {
		dctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		c, _, err := websocket.Dial(dctx, address, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + a.token}}})
		cancel()
		if err != nil {
			return errEnded{-1, err}
		}
		defer c.CloseNow()
		c.SetReadLimit(maxAnswer)
		for {
			_, b, err := c.Read(ctx)
			if err != nil {
				return errEnded{int(websocket.CloseStatus(err)), err}
			}
			if more, err := each(b); !more || err != nil {
				return err
			}
		}
	}
	req, err := http.NewRequestWithContext(ctx, "GET", address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+a.token)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := (&http.Client{Transport: a.http.Transport}).Do(req)
	if err != nil {
		return errEnded{-1, err}
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		return fmt.Errorf("live stream of %s: %s", room, resp.Status)
	}
	in := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return errEnded{-1, err}
		}
		data, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data: ")
		if !ok {
			continue
		}
		if more, err := each([]byte(data)); !more || err != nil {
			return err
		}
	}
}

package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"agentsite/internal/ident"
	"agentsite/internal/lenientjson"
	"agentsite/internal/task"
)

// Endpoint is the address of an agent and the credential for it; an empty Secret sends no credential.
type Endpoint struct {
	URL     string
	Binding string // "" means BindingRPC
	Version string // "" means Version10
	Tenant  string
	// AuthHeader is the header of the Secret. Empty means Authorization with the Bearer scheme, unless
	// the secret names a scheme itself. The secret is sent to the URL's own origin only.
	AuthHeader string
	Secret     string
	// Strict refuses answers in other forms than those of the schema. It is for agents of other portals.
	Strict bool
}

// Client calls one agent. It is safe for concurrent use and holds nothing that must be closed.
type Client struct {
	ep   Endpoint
	base *url.URL
	http *http.Client
	dec  decoder
}

// New returns a client of the agent at ep over rt. rt must bound time; the client bounds sizes. It
// fails when ep cannot be used at all.
func New(rt http.RoundTripper, ep Endpoint) (*Client, error) {
	if ep.Binding == "" {
		ep.Binding = BindingRPC
	}
	if ep.Version == "" {
		ep.Version = Version10
	}
	if ep.Binding != BindingRPC && ep.Binding != BindingREST || ep.Version != Version10 && ep.Version != Version03 {
		return nil, shapeError(0, "this portal does not speak %s of A2A %s", Line(ep.Binding, 40), Line(ep.Version, 20))
	}
	u, err := url.Parse(ep.URL)
	if err != nil || u.Host == "" {
		return nil, shapeError(0, "the agent's address is not a URL")
	}
	if ep.AuthHeader != "" && !usableHeader(ep.AuthHeader) {
		return nil, shapeError(0, "the header %q cannot carry a credential", Line(ep.AuthHeader, 40))
	}
	if strings.ContainsAny(ep.Secret, "\r\n\x00") {
		return nil, shapeError(0, "the agent's credential has a line break in it")
	}
	return &Client{
		ep: ep, base: u,
		dec: decoder{wrapped: ep.Version == Version03 && ep.Binding == BindingREST, strict: ep.Strict},
		http: &http.Client{
			Transport:     rt,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Send sends m and returns the agent's task or message. With wait, the agent answers when the task is in
// a final state or needs input; otherwise at once with the new task, if the agent supports that. Errors
// that describe the answer are *Error.
func (c *Client) Send(ctx context.Context, m Message, wait bool) (Event, error) {
	b, err := c.callOnce(ctx, opSend, "", c.sendParams(m, wait))
	if err != nil {
		return Event{}, err
	}
	if !c.ep.Strict && isPlain(b) { // the answer alone
		b = textMessage(lenientjson.TextOf(b))
	}
	ev, err := c.dec.decodeEvent(b)
	if err == nil && ev.Task == nil && ev.Message == nil {
		err = shapeError(0, "the agent answered with an update instead of a task or message")
	}
	return ev, err
}

// Stream sends m and yields the agent's events until the agent closes the stream. An error is the last
// value. Ending the loop early closes the connection.
func (c *Client) Stream(ctx context.Context, m Message) iter.Seq2[Event, error] {
	return c.streamEvents(ctx, opStream, "", c.sendParams(m, true))
}

// Subscribe yields the further events of a task, beginning with the task's present state.
func (c *Client) Subscribe(ctx context.Context, id string) iter.Seq2[Event, error] {
	return c.streamEvents(ctx, opSubscribe, id, c.taskParams(id, 0))
}

// GetTask returns the task with at most the newest 20 messages.
func (c *Client) GetTask(ctx context.Context, id string) (*Task, error) {
	return c.taskCall(ctx, opGet, id, c.taskParams(id, maxHistory))
}

// Cancel asks the agent to stop the task and returns its new state, which need not be canceled yet.
func (c *Client) Cancel(ctx context.Context, id string) (*Task, error) {
	return c.taskCall(ctx, opCancel, id, c.taskParams(id, 0))
}

func (c *Client) taskCall(ctx context.Context, op operation, id string, params any) (*Task, error) {
	b, err := c.callOnce(ctx, op, id, params)
	if err != nil {
		return nil, err
	}
	b = c.dec.mend(b)
	// Some agents wrap the task in an object, as in the result of SendMessage.
	var wrap struct {
		Task json.RawMessage `json:"task"`
	}
	if json.Unmarshal(b, &wrap) == nil && isObject(wrap.Task) {
		b = wrap.Task
	}
	return c.dec.decodeTask(b)
}

// ProbeUnknownTask requests a task that cannot exist, so that the agent does no work. It returns nil if
// the answer is any answer of an A2A agent: TaskNotFound, or another error of the method GetTask.
func (c *Client) ProbeUnknownTask(ctx context.Context) error {
	_, err := c.GetTask(ctx, randomUUID())
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	if e.Fault != FaultRefused {
		return e
	}
	switch {
	case e.Code == CodeVersionNotSupported:
		return shapeError(e.Status, "it does not speak A2A %s", c.ep.Version)
	case e.Code == CodeMethodNotFound:
		return shapeError(e.Status, "it speaks JSON-RPC but does not know A2A %s", c.ep.Version)
	case e.Code <= -32001 && e.Code >= -32009, e.Code == CodeInvalidParams, e.Code == CodeInternal:
		// A strict agent refuses an id that does not have the form of its own ids.
		return nil
	}
	return shapeError(e.Status, "it answered a question about a task with error %d", e.Code)
}

// randomUUID returns a random version 4 UUID, because agents may check the form of ids.
func randomUUID() string {
	const hex = "0123456789abcdef"
	id := []byte("xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx")
	// 43 base64 characters of new randomness, of which 4 bits each are used.
	random := ident.NewSecret("")
	for i, c := range id {
		if c == 'x' {
			id[i] = hex[random[i]&15]
		}
	}
	return string(id)
}

// UserMessage returns a message in the role of the user.
func UserMessage(id string, parts []task.Part) Message { return Message{ID: id, Parts: parts} }

// usableHeader reports whether name is a valid HTTP header field in which a credential may be sent.
// Headers that control the connection or the message are refused.
func usableHeader(name string) bool {
	if len(name) > 64 {
		return false
	}
	for i := range len(name) {
		ch := name[i]
		if !(ch >= 'a' && ch <= 'z' || ch >= 'A' && ch <= 'Z' || ch >= '0' && ch <= '9' || ch == '-' || ch == '_') {
			return false
		}
	}
	switch http.CanonicalHeaderKey(name) {
	case "", "Host", "Content-Length", "Content-Type", "Content-Encoding", "Transfer-Encoding", "Connection",
		"Upgrade", "Te", "Trailer", "Accept", "Accept-Encoding", "Expect", "Keep-Alive", "User-Agent", "A2a-Version":
		return false
	}
	return true
}

// setCredential sets the credential in the header named by Endpoint.AuthHeader.
func (c *Client) setCredential(h http.Header) {
	secret := c.ep.Secret
	if secret == "" {
		return
	}
	if name := c.ep.AuthHeader; name != "" && !strings.EqualFold(name, "Authorization") {
		h.Set(name, secret)
		return
	}
	if scheme, _, ok := strings.Cut(secret, " "); !ok || strings.Contains(scheme, ".") {
		secret = fmt.Sprintf("Bearer %s", secret)
	}
	h.Set("Authorization", secret)
}

package a2a

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"agentsite/internal/reason"
)

// operation is one method of the protocol with its names in the versions and bindings.
type operation struct {
	rpc10, rpc03 string
	method       string // HTTP method in the HTTP+JSON binding
	path         string // path in the HTTP+JSON binding; {id} is replaced by the task's id
	stream       bool
}

var (
	opSend   = operation{"SendMessage", "message/send", http.MethodPost, "/message:send", false}
	opStream = operation{"SendStreamingMessage", "message/stream", http.MethodPost, "/message:stream", true}
	opGet    = operation{"GetTask", "tasks/get", http.MethodGet, "/tasks/{id}", false}
	opCancel = operation{"CancelTask", "tasks/cancel", http.MethodPost, "/tasks/{id}:cancel", false}
	// The specification's text says POST, its protobuf GET. SDK servers take POST in 1.0, and 0.3 has
	// only GET.
	opSubscribe = operation{"SubscribeToTask", "tasks/resubscribe", http.MethodPost, "/tasks/{id}:subscribe", true}
)

// callOnce makes one request and returns the JSON of its result. The whole answer is at most maxTotal
// bytes.
func (c *Client) callOnce(ctx context.Context, op operation, id string, params any) (json.RawMessage, error) {
	resp, err := c.doRequest(ctx, op, id, params)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return c.readWhole(resp)
}

// streamEvents makes one request whose answer is a stream of events. A single JSON answer, of an agent
// that does not stream after all, is yielded as one event.
func (c *Client) streamEvents(ctx context.Context, op operation, id string, params any) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		resp, err := c.doRequest(ctx, op, id, params)
		if err != nil {
			yield(Event{}, err)
			return
		}
		defer resp.Body.Close()
		if c.ep.Strict && mediaType(resp) != "text/event-stream" || !c.ep.Strict && resp.StatusCode >= 300 {
			b, err := c.readWhole(resp)
			if err != nil {
				yield(Event{}, err)
				return
			}
			yield(c.dec.decodeEvent(b))
			return
		}
		next := c.eventSource(resp)
		for n := 0; ; n++ {
			ev, err := next()
			if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return
			}
			if err == nil && n >= maxEvents {
				err = limitError("the agent sent more than %d events", maxEvents)
			}
			if !yield(ev, err) || err != nil {
				return
			}
		}
	}
}

// doRequest sends the request and checks the HTTP status. The caller reads and closes the body.
func (c *Client) doRequest(ctx context.Context, op operation, id string, params any) (*http.Response, error) {
	req, err := c.newRequest(ctx, op, id, params)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		resp.Body.Close()
		text := "the agent asks for credentials"
		if c.ep.Secret != "" {
			text = "the agent refused the stored credentials"
		}
		return nil, &Error{Fault: FaultAuth, Status: resp.StatusCode, Text: text}
	}
	return resp, nil
}

func (c *Client) newRequest(ctx context.Context, op operation, id string, params any) (*http.Request, error) {
	target, method := *c.base, http.MethodPost
	var body []byte
	var err error
	if c.ep.Binding == BindingRPC {
		name := op.rpc10
		if c.ep.Version == Version03 {
			name = op.rpc03
		}
		body, err = json.Marshal(object{"jsonrpc": "2.0", "id": "1", "method": name, "params": params})
	} else {
		method = op.method
		target = *c.restURL(op, id)
		switch {
		case op.path == opSend.path || op.path == opStream.path:
			body, err = json.Marshal(params)
		case op.path == opGet.path:
			q := target.Query()
			q.Set("historyLength", strconv.Itoa(maxHistory))
			target.RawQuery = q.Encode()
		case op.path == opSubscribe.path && c.ep.Version == Version03:
			method = http.MethodGet
		}
	}
	if err != nil {
		return nil, shapeError(0, "the message cannot be written as JSON")
	}
	var rd io.Reader
	if body != nil {
		rd = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, target.String(), rd)
	if err != nil {
		return nil, shapeError(0, "the agent's address is not a URL")
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json, application/a2a+json")
	if op.stream {
		req.Header.Set("Accept", "text/event-stream, application/json")
	}
	if c.ep.Version == Version10 {
		req.Header.Set("A2A-Version", Version10)
	}
	c.setCredential(req.Header)
	return req, nil
}

// restURL appends the operation's path to the base URL and keeps the query of the base.
func (c *Client) restURL(op operation, id string) *url.URL {
	u := *c.base
	base := strings.TrimRight(u.EscapedPath(), "/")
	if c.ep.Version == Version03 && !strings.HasSuffix(base, "/v1") {
		base += "/v1"
	}
	if c.ep.Tenant != "" && c.ep.Version == Version10 {
		base += "/" + url.PathEscape(c.ep.Tenant)
	}
	full := base + strings.ReplaceAll(op.path, "{id}", url.PathEscape(id))
	u.RawPath = full
	u.Path, _ = url.PathUnescape(full)
	return &u
}

// readWhole reads a body that is one JSON answer and returns its result.
func (c *Client) readWhole(resp *http.Response) (json.RawMessage, error) {
	b, err := io.ReadAll(&capped{r: resp.Body, left: maxTotal})
	if err != nil {
		return nil, err
	}
	if !c.ep.Strict {
		b = c.unwrapWhole(b)
	}
	result := json.RawMessage(b)
	if c.ep.Binding == BindingRPC {
		result, err = rpcResult(b, resp.StatusCode, c.ep.Strict)
	} else {
		err = restError(b, resp.StatusCode, c.ep.Strict)
	}
	if e, ok := errors.AsType[*Error](err); ok && resp.StatusCode == http.StatusTooManyRequests {
		e.RetryAfter = readRetryAfter(resp.Header)
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}

// rpcResult returns the result in a JSON-RPC answer, or its error as *Error.
func rpcResult(b []byte, status int, strict bool) (json.RawMessage, error) {
	var w struct {
		Version str             `json:"jsonrpc"`
		Result  json.RawMessage `json:"result"`
		Error   json.RawMessage `json:"error"`
	}
	if !isObject(b) || json.Unmarshal(b, &w) != nil || !isVersion2(string(w.Version), strict) {
		return nil, notA2AError(b, status, strict)
	}
	failed := len(w.Error) > 0 && string(w.Error) != "null"
	if !strict {
		failed = reason.IsSet(w.Error)
	}
	switch {
	case failed:
		var e struct {
			Code    str `json:"code"`
			Message str `json:"message"`
		}
		isOne := json.Unmarshal(w.Error, &e) == nil
		if strict && !isOne {
			return nil, notA2AError(b, status, strict)
		}
		code, _ := strconv.Atoi(string(e.Code))
		if !strict {
			e.Message = str(cmp.Or(reason.Find(fmt.Appendf(nil, `{"error":%s}`, w.Error)), string(e.Message)))
		}
		return nil, refusedError(code, status, string(e.Message))
	case len(w.Result) == 0:
		return nil, notA2AError(b, status, strict)
	}
	return w.Result, nil
}

// isVersion2 reports whether the version of JSON-RPC in an answer is 2.0, which some languages write as a number.
func isVersion2(v string, strict bool) bool {
	return v == "2.0" || !strict && v == "2"
}

// restError returns the error in an HTTP+JSON answer as *Error, or nil if the answer is no error.
func restError(b []byte, status int, strict bool) error {
	var w struct {
		Error *struct {
			Status  str               `json:"status"`
			Message str               `json:"message"`
			Details []json.RawMessage `json:"details"`
		} `json:"error"`
		// Fields of A2A 0.3.
		Message str `json:"message"`
		Code    int `json:"code"`
	}
	object := isObject(b)
	if object && status < 300 {
		var probe struct {
			Error json.RawMessage `json:"error"`
		}
		if json.Unmarshal(b, &probe) == nil && !isObject(probe.Error) {
			return nil
		}
	}
	if !object || json.Unmarshal(b, &w) != nil && w.Error == nil {
		return notA2AError(b, status, strict)
	}
	if w.Error == nil {
		if status == http.StatusNotFound && strings.Contains(strings.ToLower(string(w.Message)), "task") {
			return refusedError(CodeTaskNotFound, status, string(w.Message))
		}
		if w.Code < 0 {
			return refusedError(w.Code, status, string(w.Message))
		}
		return notA2AError(b, status, strict)
	}
	code := 0
	for _, d := range w.Error.Details {
		var info struct {
			Reason str `json:"reason"`
		}
		if json.Unmarshal(d, &info) == nil && reasonCode[string(info.Reason)] != 0 {
			code = reasonCode[string(info.Reason)]
		}
	}
	switch {
	case code != 0:
	case w.Error.Status == "NOT_FOUND":
		code = CodeTaskNotFound
	case w.Error.Status == "INVALID_ARGUMENT":
		code = CodeInvalidParams
	case w.Error.Status == "UNIMPLEMENTED":
		code = CodeUnsupported
	case w.Error.Status == "INTERNAL":
		code = CodeInternal
	case w.Error.Status == "UNAUTHENTICATED", w.Error.Status == "PERMISSION_DENIED":
		return &Error{Fault: FaultAuth, Status: status, Text: "the agent refused the credentials"}
	default:
		return notA2AError(b, status, strict)
	}
	return refusedError(code, status, string(w.Error.Message))
}

func refusedError(code, status int, message string) *Error {
	if code == -31401 || code == -31403 { // codes of the library a2a-go for failed authentication
		return &Error{Fault: FaultAuth, Status: status, Text: "the agent refused the credentials"}
	}
	return &Error{Fault: FaultRefused, Code: code, Status: status, Text: Line(message, maxReason)}
}

// notA2AError describes an answer that is not A2A, so that users see which kind of service runs at the address, with
// its own reason.
func notA2AError(b []byte, status int, strict bool) *Error {
	what := "something that is not JSON"
	trimmed := bytes.TrimSpace(b)
	switch {
	case len(trimmed) == 0:
		what = "nothing"
	case trimmed[0] == '<':
		what = "a web page"
	case json.Valid(trimmed):
		what = "JSON that is not A2A"
	}
	isJSON := len(trimmed) > 0 && trimmed[0] == '{'
	if why := Line(reason.Find(trimmed), maxReason); !strict && (isJSON || status >= 400) && !reason.IsTitle(why) {
		what += fmt.Sprintf(", which says %q", why)
	}
	if status >= 300 {
		e := shapeError(status, "it answered with HTTP %d and %s", status, what)
		if status >= 500 || status == http.StatusTooManyRequests {
			e.Fault = FaultStatus
		}
		return e
	}
	return shapeError(status, "it answered with %s", what)
}

func mediaType(resp *http.Response) string {
	t, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return t
}

// capped is a reader that fails after left bytes, because an io.LimitedReader would look like a normal
// end.
type capped struct {
	r    io.Reader
	left int64
}

// Read implements io.Reader. After left bytes it returns a FaultLimit error.
func (c *capped) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, limitError("the agent's answer is larger than %d MiB", maxTotal>>20)
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

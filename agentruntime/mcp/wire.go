package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"agentsite/internal/a2a"
	"agentsite/internal/egress"
	"agentsite/internal/reason"
)

const (
	maxResponse = 8 << 20 // bytes of one response; a larger one fails the call
	maxSession  = 64 << 20
	// maxRequests bounds the requests of a session. A long call makes many if its server ends its
	// streams.
	maxRequests = 1000
	// farewellTime bounds ending a session and canceling a call at a server.
	farewellTime = 3 * time.Second
	// headBytes is the part of an answer that is kept for error messages.
	headBytes = 1024
)

// wire is the RoundTripper of one session. The SDK reads whole bodies and drains the rest of a stream,
// so bodies are bounded here. It resumes streams, so requests are counted here. It makes its own
// sentences of errors, so the exchanges are recorded here.
type wire struct {
	rt       http.RoundTripper
	endpoint *url.URL
	header   string // header field and value of the credential
	value    string

	farewellCtx   context.Context // ends notifications that endSession or a cancellation still sends
	skipFarewells context.CancelFunc

	mu       sync.Mutex // guards all below
	requests int
	bytes    int64
	limit    error     // the bound that was exceeded; nil for none
	last     *exchange // the latest request with an id
	stopSent chan struct{}
	listing  *bytes.Buffer        // the latest answer to tools/list, for listedSchemas
	asked    map[string]*exchange // requests by the text of their ids, for mendMessage
	stream   bool                 // answers arrive in one stream, as in version 2024-11-05
	renewed  renewal
}

// exchange is the record of a request and its answer, from which explainError finds the reason of a
// failure.
type exchange struct {
	method string // the MCP method, such as tools/call
	status int
	media  string
	err    error
	head   []byte
	id     json.RawMessage
	// refusal is an error of JSON-RPC that arrived with the id of another request, or none.
	refusal *jsonrpc.Error
}

// errShape is the type of errors about answers that are not MCP.
type errShape struct{ text string }

// Error implements error. The text continues a sentence.
func (e *errShape) Error() string { return e.text }

// errLimit is the type of errors about our own bounds.
type errLimit struct{ text string }

// Error implements error. The text continues a sentence.
func (e *errLimit) Error() string { return e.text }

func newWire(rt http.RoundTripper, endpoint, header, secret string) (*wire, error) {
	u, err := egress.CheckURL(strings.TrimSpace(endpoint))
	if err != nil {
		return nil, err
	}
	w := &wire{rt: rt, endpoint: u, stopSent: make(chan struct{})}
	w.farewellCtx, w.skipFarewells = context.WithCancel(context.Background())
	if secret != "" {
		if strings.ContainsFunc(secret, unicode.IsControl) {
			return nil, errors.New("the credential has a line break in it")
		}
		w.header, w.value = header, secret
		if header == "" {
			w.header, w.value = "Authorization", "Bearer "+secret
			if scheme, rest, ok := strings.Cut(secret, " "); ok && rest != "" &&
				(strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "Basic")) {
				w.value = secret
			}
		}
	}
	return w, nil
}

// httpClient returns the HTTP client for the SDK. It follows no redirects, because the credential
// belongs to one endpoint.
func (w *wire) httpClient() *http.Client {
	return &http.Client{
		Transport:     w,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// RoundTrip implements http.RoundTripper. It adds the credential for the registered endpoint only,
// bounds the body and records the exchange.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	x := &exchange{}
	x.method, x.id = headOf(req)
	fail := func(err error) (*http.Response, error) {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	w.mu.Lock()
	if w.requests++; w.requests > maxRequests && w.limit == nil {
		w.limit = &errLimit{fmt.Sprintf("the server caused more than %d requests", maxRequests)}
	}
	limit := w.limit
	if x.wantsAnswer() {
		w.last = x
		if id := idText(x.id); id != "" {
			if w.asked == nil || len(w.asked) > maxRequests {
				w.asked = make(map[string]*exchange)
			}
			w.asked[id] = x
		}
	}
	w.mu.Unlock()
	goodbye := req.Method == http.MethodDelete || x.method == "notifications/cancelled"
	if x.method == "notifications/cancelled" {
		defer w.markTold()
	}
	if limit != nil && !goodbye {
		return fail(limit)
	}
	if err := w.farewellCtx.Err(); err != nil && goodbye {
		return fail(err)
	}
	if req.URL.Scheme != w.endpoint.Scheme || req.URL.Host != w.endpoint.Host {
		return fail(&errLimit{"the server redirects to another address"})
	}
	ctx, cancel := context.WithCancel(req.Context())
	if goodbye {
		ctx, cancel = context.WithTimeout(req.Context(), farewellTime)
		unhook := context.AfterFunc(w.farewellCtx, cancel)
		context.AfterFunc(ctx, func() { unhook() })
	}
	out := req.Clone(ctx)
	if x.method == "initialize" {
		w.noteBegin(req)
	}
	resp, err := w.roundTrip(out)
	if err == nil && resp.StatusCode >= 400 && x.wantsAnswer() {
		resp, err = w.renewSession(out, resp)
	}
	if err != nil {
		cancel()
		w.withLock(func() { x.err = err })
		return nil, err
	}
	if x.method == "notifications/initialized" && resp.StatusCode >= 400 &&
		!slices.Contains([]int{401, 403, 404}, resp.StatusCode) {
		resp.Body.Close() // The session has begun all the same, or the next request says that it has not.
		resp.StatusCode, resp.Status = http.StatusAccepted, "202 Accepted"
		resp.Body, resp.ContentLength = http.NoBody, 0
	}
	resp.Request = req
	if resp.ContentLength > maxResponse {
		resp.Body.Close()
		cancel()
		err := w.exceedLimit(x)
		return nil, err
	}
	source := &body{rc: resp.Body, w: w, x: x, left: maxResponse, cancel: cancel}
	if req.Method == http.MethodGet && w.stream {
		source.left = maxSession
	}
	resp.Body = source
	media := w.mendBody(resp, x, source)
	w.withLock(func() { x.status, x.media = resp.StatusCode, media })
	return resp, nil
}

// roundTrip sends a request with the credential and, after a renewal, with the new session.
func (w *wire) roundTrip(req *http.Request) (*http.Response, error) {
	if w.value != "" {
		req.Header.Set(w.header, w.value)
	}
	w.withLock(func() { w.renewed.replaceID(req.Header) })
	return w.rt.RoundTrip(req)
}

// mendBody makes the body of an answer one that the SDK can read, and returns its media type. A type that
// is not of MCP is replaced by that of the first bytes.
func (w *wire) mendBody(resp *http.Response, x *exchange, source *body) string {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	in := bufio.NewReader(source)
	if resp.StatusCode >= 400 && x.wantsAnswer() {
		_, _ = in.Peek(headBytes) // The SDK does not read all errors; the source keeps their beginning.
	}
	if resp.StatusCode < 300 && media != "application/json" && media != "text/event-stream" {
		switch first, _ := in.Peek(6); {
		case len(first) == 0:
		case strings.ContainsRune("{[\xef", rune(first[0])):
			media = "application/json"
		case bytes.HasPrefix(first, []byte("data:")), bytes.HasPrefix(first, []byte("event:")),
			bytes.HasPrefix(first, []byte("id:")), first[0] == ':':
			media = "text/event-stream"
		}
		resp.Header.Set("Content-Type", media)
	}
	mend := func(b []byte) []byte {
		b = mendMessage(b, w.methodOf)
		w.noteMessage(b, x)
		return b
	}
	switch {
	case media == "text/event-stream":
		resp.Body = &readCloser{&mendStream{in: in, mend: mend,
			old: w.stream && resp.Request.Method == http.MethodGet}, source}
	case media == "application/json":
		resp.Body = &readCloser{&mendWhole{in: in, source: source, mend: mend}, source}
		resp.ContentLength = -1
		resp.Header.Del("Content-Length")
	default:
		resp.Body = &readCloser{in, source}
	}
	return media
}

type readCloser struct {
	io.Reader
	io.Closer
}

// mendWhole is the body of an answer that is one JSON text.
type mendWhole struct {
	in     io.Reader
	source *body
	mend   func([]byte) []byte
	out    *bytes.Reader
	err    error
}

// Read implements io.Reader.
func (m *mendWhole) Read(p []byte) (int, error) {
	if m.out == nil {
		b, err := io.ReadAll(m.in)
		if err == nil {
			b = m.mend(b)
			err = m.source.checkID(b)
		}
		m.out, m.err = bytes.NewReader(b), err
	}
	n, err := m.out.Read(p)
	if errors.Is(err, io.EOF) && m.err != nil {
		err = m.err
	}
	return n, err
}

// methodOf returns the method and the exact id of the request with an id as text.
func (w *wire) methodOf(id string) (method string, exact json.RawMessage, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.asked[id]
	if x == nil {
		return "", nil, false
	}
	return x.method, x.id, true
}

// noteMessage keeps the answer to tools/list.
func (w *wire) noteMessage(b []byte, x *exchange) {
	if x.method == "tools/list" || w.stream && bytes.Contains(b, []byte(`"inputSchema"`)) {
		w.withLock(func() { w.listing = bytes.NewBuffer(b) })
	}
}

func (w *wire) withLock(fn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fn()
}

func (w *wire) markTold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.stopSent:
	default:
		close(w.stopSent)
	}
}

// exceedLimit records in x that an answer is larger than maxResponse, and returns that error.
func (w *wire) exceedLimit(x *exchange) error {
	err := &errLimit{fmt.Sprintf("the answer is larger than %d MiB", maxResponse>>20)}
	w.withLock(func() { x.err = err })
	return err
}

// wantsAnswer reports whether the request expects an answer: notifications and requests without a method
// do not.
func (x *exchange) wantsAnswer() bool {
	return x.method != "" && !strings.HasPrefix(x.method, "notifications/")
}

// headOf reads the MCP method of a request and its id, or "resume" for a request that resumes a stream.
func headOf(req *http.Request) (method string, id json.RawMessage) {
	if req.Method == http.MethodGet {
		return "resume", nil
	}
	if req.GetBody == nil {
		return "", nil
	}
	b, err := req.GetBody()
	if err != nil {
		return "", nil
	}
	defer b.Close()
	// The SDK writes jsonrpc, id and method before possibly long fields.
	d := json.NewDecoder(io.LimitReader(b, 4<<10))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return "", nil
	}
	for d.More() && (method == "" || id == nil) {
		k, err := d.Token()
		if err != nil || k == "params" {
			break
		}
		var v json.RawMessage
		if d.Decode(&v) != nil {
			break
		}
		switch k {
		case "method":
			if json.Unmarshal(v, &method) != nil {
				return "", nil
			}
		case "id":
			id = v
		}
	}
	return method, id
}

// body is the body of one response. It bounds the bytes and records the beginning for error messages.
type body struct {
	rc     io.ReadCloser
	w      *wire
	x      *exchange
	left   int64
	err    error
	cancel context.CancelFunc // ends the request
}

// Read implements io.Reader. It fails with an errLimit beyond the bound.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	n, err := b.rc.Read(p[:min(int64(len(p)), b.left+1)])
	if int64(n) > b.left {
		n, err = int(b.left), b.w.exceedLimit(b.x)
	}
	b.left -= int64(n)
	b.w.mu.Lock()
	if b.w.bytes += int64(n); b.w.bytes > maxSession && b.w.limit == nil {
		b.w.limit = &errLimit{fmt.Sprintf("the server sent more than %d MiB", maxSession>>20)}
	}
	if b.w.limit != nil && err == nil {
		n, err = 0, b.w.limit
	}
	if room := headBytes - len(b.x.head); room > 0 {
		b.x.head = append(b.x.head, p[:min(n, room)]...)
	}
	if err != nil && !errors.Is(err, io.EOF) && b.x.err == nil {
		b.x.err = err
	}
	b.w.mu.Unlock()
	b.err = err
	return n, err
}

// checkID checks that a whole answer has the id of its request, because the SDK would wait for one that
// has. The SDK itself refuses answers that are no JSON-RPC.
func (b *body) checkID(whole []byte) error {
	var msg struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *jsonrpc.Error  `json:"error"`
	}
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if b.x.id == nil || b.x.status >= 300 || json.Unmarshal(whole, &msg) != nil || msg.Version != "2.0" ||
		bytes.Equal(msg.ID, b.x.id) {
		return nil
	}
	b.x.refusal = msg.Error
	b.x.err = &errShape{"its answer does not belong to the request"}
	return b.x.err
}

// Close implements io.Closer. It also cancels the request, so that an abandoned stream ends at once.
func (b *body) Close() error {
	err := b.rc.Close()
	b.cancel()
	return err
}

// describeHead describes an answer that is not MCP by its beginning, with the reason in it, for error messages.
func (x *exchange) describeHead() string {
	said := a2a.Line(reason.Find(x.head), 300)
	if reason.IsTitle(said) || x.status < 400 && len(x.head) > 0 && bytes.TrimSpace(x.head)[0] != '{' {
		return x.describeForm()
	}
	return fmt.Sprintf("%s, which says %q", x.describeForm(), said)
}

func (x *exchange) describeForm() string {
	head := bytes.TrimSpace(x.head)
	switch {
	case x.media == "text/html" || len(head) > 0 && head[0] == '<':
		return "a web page"
	case x.media != "" && x.media != "application/json" && x.media != "text/event-stream":
		return "something that is not MCP"
	case len(head) == 0:
		return "nothing"
	case head[0] == '{' && x.media != "text/event-stream", head[0] == '[':
		return "JSON that is not MCP"
	case x.media == "text/event-stream" && utf8.Valid(head[:max(0, len(head)-utf8.UTFMax)]) &&
		bytes.Contains(head, []byte(`"jsonrpc"`)):
		return "a stream that ended without the answer"
	}
	return "something that is not MCP"
}

package wasm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentsite/agentruntime/wasm/guest"
	"agentsite/agentruntime/wasm/sandbox"
	"agentsite/internal/clock"
	"agentsite/internal/egress"
	"agentsite/internal/fault"
	"agentsite/internal/openai"
	"agentsite/internal/task"
	"agentsite/internal/weborigin"
)

// Bounds of the functions that one task calls.
const (
	maxCalls        = 5000 // all functions
	maxSaid         = 512 << 10
	maxModelCalls   = 32
	maxRequests     = 32
	maxRequestBody  = 512 << 10
	maxResponseBody = 512 << 10
	maxHeaders      = 32
	maxMessages     = 64
	modelTokens     = 2048
	requestTime     = time.Minute
	modelTime       = 5 * time.Minute
	maxKeptLogs     = 20
)

// meter counts the functions that a task calls, and keeps the logs of its program.
type meter struct {
	stop                    context.CancelCauseFunc // ends the run
	calls, models, requests int

	mu   sync.Mutex // guards logs, which another goroutine writes
	logs []task.Traced

	files map[string]int // the bytes of each artifact, by its name
}

// errOveruse ends a run that calls more than it may: the reason as a sentence.
type errOveruse string

func (e errOveruse) Error() string { return string(e) }

// errNoGrant is the answer to a function for which the owner gave no grant.
func errNoGrant(what string) error {
	return fmt.Errorf("this program has no grant for %s; its owner can give it", what)
}

var _ sandbox.Host = (*run)(nil)

// Call implements sandbox.Host.
func (r *run) Call(ctx context.Context, name string, arg []byte) (out []byte, err error) {
	if r.meter.calls++; r.meter.calls > maxCalls {
		err := errOveruse(fmt.Sprintf("The program called the portal more than %d times and was stopped.", maxCalls))
		r.meter.stop(err)
		return nil, err
	}
	switch name {
	case "reply":
		return nil, r.streamText(string(arg))
	case "status":
		r.keeper.Status(string(arg))
		return out, nil
	case "artifact":
		return nil, r.addArtifact(arg)
	case "find", "ask":
		text, failed := r.useTool(ctx, name, arg)
		if failed {
			return nil, errors.New(text)
		}
		return json.Marshal(map[string]string{"text": text})
	case "memory":
		return r.useMemory(ctx, arg)
	case "library":
		return r.useLibrary(ctx, arg)
	case "model":
		return r.askModel(ctx, arg)
	case guest.HTTPFunction:
		return r.sendRequest(ctx, arg)
	}
	return nil, fmt.Errorf("the portal has no function %q", name)
}

// useMemory keeps or recalls memories of the person. The argument is {"remember": text} or {"recall": query}.
func (r *run) useMemory(ctx context.Context, arg []byte) ([]byte, error) {
	var in struct {
		Remember string `json:"remember"`
		Recall   string `json:"recall"`
	}
	if err := json.Unmarshal(arg, &in); err != nil || (in.Remember == "") == (in.Recall == "") {
		return nil, errors.New("give remember or recall, a text")
	}
	name, args := "remember", map[string]string{"text": in.Remember}
	if in.Recall != "" {
		name, args = "recall", map[string]string{"query": in.Recall}
	}
	b, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	text, failed := r.useTool(ctx, name, b)
	if failed {
		return nil, errors.New(text)
	}
	return json.Marshal(map[string]string{"text": text})
}

// useLibrary lists, reads or writes files of the person. The argument is {"list": prefix}, {"read": path, "offset": n}
// or {"write": path, "text": text}.
func (r *run) useLibrary(ctx context.Context, arg []byte) ([]byte, error) {
	var in struct {
		List   *string `json:"list"`
		Read   string  `json:"read"`
		Write  string  `json:"write"`
		Offset int     `json:"offset"`
		Text   string  `json:"text"`
	}
	if err := json.Unmarshal(arg, &in); err != nil {
		return nil, errors.New("give list, read or write")
	}
	var name string
	var args any
	switch {
	case in.List != nil:
		name, args = "library_list", map[string]string{"prefix": *in.List}
	case in.Read != "":
		name, args = "library_read", map[string]any{"path": in.Read, "offset": in.Offset}
	case in.Write != "":
		name, args = "library_write", map[string]string{"path": in.Write, "text": in.Text}
	default:
		return nil, errors.New("give list, read or write")
	}
	b, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	text, failed := r.useTool(ctx, name, b)
	if failed {
		return nil, errors.New(text)
	}
	return json.Marshal(map[string]string{"text": text})
}

// Log implements sandbox.Host.
func (r *run) Log(line string) {
	r.meter.mu.Lock()
	defer r.meter.mu.Unlock()
	if len(r.meter.logs) < maxKeptLogs {
		r.meter.logs = append(r.meter.logs, task.Traced{At: clock.Now(), Head: task.TracedLog, Body: cleanText(line),
			Size: int64(len(line))})
	}
}

// traceLogs gives the logs to the owner's trace of the call.
func (r *run) traceLogs(ctx context.Context) {
	r.meter.mu.Lock()
	logs := r.meter.logs
	r.meter.logs = nil
	r.meter.mu.Unlock()
	if t := task.Trace(ctx); t != nil {
		for _, l := range logs {
			t.AddTrace(l)
		}
	}
}

// traceFailure gives the end of a program that failed to the owner's trace of the call, and to the operator's log.
func (r *run) traceFailure(ctx context.Context, f *sandbox.Failure) {
	if t := task.Trace(ctx); t != nil {
		t.AddTrace(task.Traced{At: clock.Now(), Head: task.TracedTrap, Body: cleanText(f.Text), Size: int64(len(f.Text))})
	}
	r.d.cfg.Log.Debug("a hosted program failed", "agent", r.call.Agent.Name, "task", r.call.TaskID, "error", f.Text)
}

// streamText streams text to the readers.
func (r *run) streamText(text string) error {
	text = cleanText(text)
	if len(r.said)+len(text) > maxSaid {
		err := errOveruse(fmt.Sprintf("The answer is longer than %d KiB and was cut.", maxSaid>>10))
		r.meter.stop(err)
		return err
	}
	r.said += text
	r.keeper.Text(text)
	return nil
}

// askModel asks the model that the owner granted. The argument is {messages: [{role, content}], max_tokens}.
func (r *run) askModel(ctx context.Context, arg []byte) ([]byte, error) {
	if r.conf.Model == "" || r.d.cfg.Models == nil {
		return nil, errNoGrant("a model")
	}
	if r.meter.models++; r.meter.models > maxModelCalls {
		return nil, fmt.Errorf("one task may ask a model at most %d times", maxModelCalls)
	}
	var in struct {
		Messages []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"messages"`
		MaxTokens int `json:"max_tokens"`
	}
	if err := json.Unmarshal(arg, &in); err != nil || len(in.Messages) == 0 || len(in.Messages) > maxMessages {
		return nil, fmt.Errorf("give 1 to %d messages with role and content", maxMessages)
	}
	var messages []openai.Message
	for _, m := range in.Messages {
		if !slices.Contains([]string{openai.System, openai.User, openai.Assistant}, m.Role) {
			return nil, fmt.Errorf("%.20q is no role; use system, user or assistant", m.Role)
		}
		messages = append(messages, openai.Message{Role: m.Role, Content: openai.Content(m.Content)})
	}
	if in.MaxTokens <= 0 || in.MaxTokens > modelTokens {
		in.MaxTokens = modelTokens
	}
	r.keeper.Status("Asking a model…")
	mctx, cancel := context.WithTimeout(ctx, modelTime)
	defer cancel()
	text, err := r.d.cfg.Models.AskModel(mctx, r.call, r.conf.Model, messages, in.MaxTokens)
	if err != nil {
		return nil, r.safeError(ctx, "the model did not answer", err)
	}
	return json.Marshal(map[string]string{"text": text})
}

// safeError returns the part of an error that a program may see.
func (r *run) safeError(ctx context.Context, otherwise string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind != fault.Internal {
		return errors.New(f.Safe)
	}
	r.d.cfg.Log.Warn("a function of a hosted program failed", "agent", r.call.Agent.Name, "error", err)
	return errors.New(otherwise)
}

// hopHeaders are headers that a program cannot set, because they belong to the connection or to the portal.
var hopHeaders = []string{"Host", "Connection", "Content-Length", "Transfer-Encoding", "Upgrade", "Te", "Trailer",
	"Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "Expect", "Forwarded", "Idempotency-Key", "Signature",
	"Signature-Input", "Cookie"}

// sendRequest sends an HTTP request to a host that the owner granted.
func (r *run) sendRequest(ctx context.Context, arg []byte) ([]byte, error) {
	var in guest.HTTPRequest
	if err := json.Unmarshal(arg, &in); err != nil {
		return nil, errors.New("the request cannot be read")
	}
	u, err := url.Parse(in.URL)
	if err != nil || u.Host == "" || u.User != nil {
		return nil, errors.New("the address cannot be read")
	}
	switch {
	case !slices.Contains(r.conf.Hosts, weborigin.ReadHost(u.Host)):
		return nil, errNoGrant(fmt.Sprintf("%.100q", u.Host))
	case !weborigin.IsConfidential(in.URL):
		return nil, errors.New("use https")
	case len(in.Body) > maxRequestBody:
		return nil, errors.New("the body is too long")
	}
	if r.meter.requests++; r.meter.requests > maxRequests {
		return nil, fmt.Errorf("one task may make at most %d requests", maxRequests)
	}
	ctx, cancel := context.WithTimeout(task.WithTrace(ctx, nil), requestTime)
	defer cancel()
	req, err := newRequest(ctx, in, r.call.TaskID+"-"+strconv.Itoa(r.meter.requests))
	if err != nil {
		return nil, err
	}
	resp, err := r.d.cfg.RT.RoundTrip(req)
	if err != nil {
		if egress.CodeOf(err) != "" {
			return nil, errors.New(egress.Reason(err))
		}
		return nil, r.safeError(ctx, "the host did not answer", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponseBody+1))
	if err != nil {
		return nil, r.safeError(ctx, "the answer of the host broke off", err)
	}
	if len(body) > maxResponseBody {
		return nil, fmt.Errorf("the answer is longer than %d KiB", maxResponseBody>>10)
	}
	out := guest.HTTPResponse{Status: resp.StatusCode, Headers: make(map[string]string), Body: body}
	for name, values := range resp.Header {
		if len(out.Headers) < maxHeaders && len(values) > 0 && len(values[0]) <= 1<<10 && name != "Set-Cookie" {
			out.Headers[strings.ToLower(name)] = values[0]
		}
	}
	return json.Marshal(out)
}

// newRequest returns the request without headers that a program cannot set. Key lets the host notice a repetition after
// an interruption.
func newRequest(ctx context.Context, in guest.HTTPRequest, key string) (*http.Request, error) {
	if in.Method == "" {
		in.Method = http.MethodGet
	}
	if !slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}, in.Method) {
		return nil, fmt.Errorf("%.20q is no method that a program may use", in.Method)
	}
	req, err := http.NewRequestWithContext(ctx, in.Method, in.URL, strings.NewReader(string(in.Body)))
	if err != nil || len(in.Headers) > maxHeaders {
		return nil, errors.New("the request cannot be made")
	}
	for name, value := range in.Headers {
		name = http.CanonicalHeaderKey(name)
		if slices.Contains(hopHeaders, name) || strings.HasPrefix(name, "Agentsite-") ||
			strings.ContainsAny(value, "\r\n") {
			return nil, fmt.Errorf("the header %.80q cannot be set", name)
		}
		req.Header.Set(name, value)
	}
	if in.Method != http.MethodGet && in.Method != http.MethodHead {
		req.Header.Set("Idempotency-Key", key)
	}
	return req, nil
}

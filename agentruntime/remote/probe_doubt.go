package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	"agentsite/internal/hub"
)

// This file holds second requests, for ambiguous answers to a probe. Like the first, they make an agent
// do no work.

// question is a RoundTripper that records the beginning of an answer. With odd set it requests a method
// or path that no server has.
type question struct {
	rt  http.RoundTripper
	odd bool

	status int
	begin  bytes.Buffer
}

// maxBegin bounds the recorded beginning of an answer in bytes.
const maxBegin = 4 << 10

// RoundTrip implements http.RoundTripper. The caller reads the recorded status and beginning after its
// client has read the body.
func (q *question) RoundTrip(req *http.Request) (*http.Response, error) {
	if q.odd {
		req = req.Clone(req.Context())
		if req.Method == http.MethodGet {
			req.URL.Path, req.URL.RawPath = req.URL.Path+"/none-such", ""
		} else {
			req.Body.Close()
			const body = `{"jsonrpc":"2.0","id":"1","method":"agentsite/none-such","params":{}}`
			req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
			req.GetBody = nil
		}
	}
	resp, err := q.rt.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	q.status = resp.StatusCode
	resp.Body = &overheard{resp.Body, &q.begin}
	return resp, nil
}

type overheard struct {
	io.ReadCloser
	into *bytes.Buffer
}

func (o *overheard) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	o.into.Write(p[:min(n, maxBegin-o.into.Len())])
	return n, err
}

// serverFailed reports whether the answer is an internal error: HTTP 5xx, or code -32603 of JSON-RPC.
func (q *question) serverFailed() bool {
	var w struct {
		Error struct {
			Code json.Number `json:"code"`
		} `json:"error"`
	}
	return q.status >= 500 || json.Unmarshal(q.begin.Bytes(), &w) == nil && w.Error.Code == "-32603"
}

// failsAlways reports whether an agent answers any request with an internal error. It is asked for an
// agent that answered so for an unknown task, because careless agents do that although they work.
func (p *Prober) failsAlways(ctx context.Context, t hub.Target) bool {
	q := &question{rt: p.rt, odd: true}
	client, _, err := a2aClient(q, t.Endpoint, t.Config, t.Secret, false)
	if err != nil {
		return false
	}
	_ = client.ProbeUnknownTask(ctx) // The recorded answer matters, not the error of the client.
	return q.serverFailed()
}

// lacksModel reports whether a server itself answers that it has no such model. Many accept names that
// they do not list.
func (p *Prober) lacksModel(ctx context.Context, t hub.Target, model string) bool {
	status, body := p.getPath(ctx, t, "/models/"+url.PathEscape(model))
	said := strings.ToLower(string(body))
	return status == http.StatusNotFound && strings.Contains(said, "model") &&
		(strings.Contains(said, strings.ToLower(model)) || strings.Contains(said, "model_not_found"))
}

// hasChat reports whether a server that lists no models has the chat route: it refuses a GET because of
// the method, not the path.
func (p *Prober) hasChat(ctx context.Context, t hub.Target) bool {
	status, _ := p.getPath(ctx, t, "/chat/completions")
	return status == http.StatusMethodNotAllowed
}

// getPath gets a path below the endpoint with the credential. status is 0 when there is no answer; body
// is cut to its beginning.
func (p *Prober) getPath(ctx context.Context, t hub.Target, path string) (status int, body []byte) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(t.Endpoint, "/")+path, nil)
	if err != nil {
		return 0, nil
	}
	req.Header.Set("Accept", "application/json")
	if t.Secret != "" {
		req.Header.Set("Authorization", "Bearer "+t.Secret)
	}
	resp, err := p.rt.RoundTrip(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	body, _ = io.ReadAll(io.LimitReader(resp.Body, maxBegin))
	return resp.StatusCode, body
}

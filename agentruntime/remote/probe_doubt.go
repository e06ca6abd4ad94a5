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

// Second questions, for answers that leave a doubt. They make an agent work as
// little as the first.

// question is a RoundTripper that remembers how an answer began. With odd set
// it asks for something that nobody offers.
type question struct {
	rt  http.RoundTripper
	odd bool

	status int
	begin  bytes.Buffer
}

// maxBegin is how much of an answer is remembered.
const maxBegin = 4 << 10

// RoundTrip implements http.RoundTripper.
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

// failed reports whether the answer says that the server itself is at a loss.
func (q *question) failed() bool {
	var w struct {
		Error struct {
			Code json.Number `json:"code"`
		} `json:"error"`
	}
	return q.status >= 500 || json.Unmarshal(q.begin.Bytes(), &w) == nil && w.Error.Code == "-32603"
}

// failsAlways reports whether an agent that answered a question about an
// unknown task with an internal error, as careless ones do, says the same to
// everything.
func (p *Prober) failsAlways(ctx context.Context, t hub.Target) bool {
	q := &question{rt: p.rt, odd: true}
	client, _, err := a2aClient(q, t.Endpoint, t.Config, t.Secret)
	if err != nil {
		return false
	}
	_ = client.ProbeUnknownTask(ctx) // what it said is in q
	return q.failed()
}

// lacks reports whether a server says itself that it has no such model. Many
// take names that they do not list.
func (p *Prober) lacks(ctx context.Context, t hub.Target, model string) bool {
	status, body := p.get(ctx, t, "/models/"+url.PathEscape(model))
	said := strings.ToLower(string(body))
	return status == http.StatusNotFound && strings.Contains(said, "model") &&
		(strings.Contains(said, strings.ToLower(model)) || strings.Contains(said, "model_not_found"))
}

// chats reports whether a server that lists no models has the address where
// models are asked: it refuses a GET of it as a method, not as an address.
func (p *Prober) chats(ctx context.Context, t hub.Target) bool {
	status, _ := p.get(ctx, t, "/chat/completions")
	return status == http.StatusMethodNotAllowed
}

// get returns 0 when there is no answer.
func (p *Prober) get(ctx context.Context, t hub.Target, path string) (status int, body []byte) {
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

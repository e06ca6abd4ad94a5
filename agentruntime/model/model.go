// Package model calls models on servers that are OpenAI-compatible or speak Anthropic's Messages API: the
// portal's models, those of accounts, and agents of kind openai.
//
// It bounds the data that it reads, streams, retries at most once and only before the first
// token, and returns errors as plain sentences. It does not depend on tasks, agents or budgets.
package model

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"agentsite/internal/egress"
	"agentsite/internal/fault"
	"agentsite/internal/lenientjson"
	"agentsite/internal/models"
)

// Bounds of one answer, because the server is untrusted.
const (
	// MaxText is the maximum size of one answer's text in bytes.
	MaxText   = 256 << 10
	maxBody   = 8 << 20 // of a stream, which is not kept, or a list of models
	maxModels = 1000
	maxName   = 256 // bytes of a model's id
)

// Errors that a caller may branch on; a *fault.Error wraps them.
var (
	// ErrKey: the endpoint requires a key, or another one.
	ErrKey = errors.New("the endpoint refused the key")
	// ErrProtocol: the endpoint does not implement this API.
	ErrProtocol = errors.New("not the API of a model")
	// ErrInterrupted: the answer ended in the middle; the Reply holds the part that was received.
	ErrInterrupted = errors.New("interrupted")
	// ErrTooLong: the answer exceeded MaxText; the Reply holds that much.
	ErrTooLong = errors.New("answer too long")
)

// Client calls one server with one key. It is safe for concurrent use and holds nothing that must be
// closed.
type Client struct {
	provider models.Provider
	base     *url.URL
	key      string
	http     *http.Client
}

// New returns a client of a server. rt must bound time. The key is sent to the server's own origin only.
func New(rt http.RoundTripper, server models.Server) (*Client, error) {
	u, err := url.Parse(server.URL)
	if err != nil || u.Host == "" {
		return nil, fault.Wrap(fault.Invalid, err, "The model's address is not a URL.")
	}
	if strings.ContainsAny(server.Key, "\r\n\x00") {
		return nil, fault.New(fault.Invalid, "The model's key has a line break in it.")
	}
	return &Client{provider: server.Provider, base: u, key: server.Key, http: &http.Client{
		Transport:     rt,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Models lists the ids of the server's models, at most 1,000. It makes no model work, so it costs
// nothing and serves as a probe.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	path := "/models"
	if c.provider == models.Anthropic {
		path += "?limit=1000" // else 20
	}
	resp, err := c.sendRequest(ctx, http.MethodGet, path, nil, "application/json")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if !isAnswer(resp.StatusCode) {
		return nil, c.refusalFault(resp, "", false)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return nil, unavailableFault(err)
	}
	// The list is in "data"; some servers call it "models" or send it alone.
	b = bytes.TrimSpace(lenientjson.TrimMark(b))
	var where struct {
		Data   json.RawMessage `json:"data"`
		Models json.RawMessage `json:"models"`
	}
	raw, empty := b, false
	if lenientjson.Decode(b, &where) == nil && where.Data != nil {
		raw, empty = where.Data, true
	} else if where.Models != nil {
		raw, empty = where.Models, true
	}
	var list []listedModel
	if len(raw) == 0 || raw[0] != '[' || lenientjson.Decode(raw, &list) != nil || len(list) == 0 && !empty {
		return nil, c.notModelFault(b, resp)
	}
	ids := []string{}
	add := func(id string) {
		if id != "" && len(id) <= maxName && len(ids) < maxModels {
			ids = append(ids, id)
		}
	}
	for _, m := range list {
		add(cmp.Or(m.ID, m.Name, m.Model))
	}
	return ids, nil
}

// listedModel is one model of a list: an object, or its id alone.
type listedModel struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Model string `json:"model"`
}

// SetText implements lenientjson.TextSetter.
func (m *listedModel) SetText(s string) { m.ID = s }

// sendRequest sends one request with the key. The caller closes the body of the response. Errors of the
// connection are Unavailable faults.
func (c *Client) sendRequest(ctx context.Context, method, path string, body []byte, accept string) (*http.Response,
	error) {
	u := *c.base
	path, query, _ := strings.Cut(path, "?")
	u.Path = strings.TrimRight(u.Path, "/") + path
	u.RawPath, u.Fragment = "", ""
	if query != "" {
		u.RawQuery = query
	}
	var rd io.Reader
	if body != nil {
		rd = strings.NewReader(string(body))
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), rd)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "The model's address is not a URL.")
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", accept)
	switch {
	case c.provider == models.Anthropic:
		req.Header.Set("Anthropic-Version", anthropicVersion)
		if c.key != "" {
			req.Header.Set("X-Api-Key", c.key)
		}
	case c.key != "":
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, unavailableFault(err)
	}
	return resp, nil
}

func unavailableFault(err error) error {
	return fault.Wrap(fault.Unavailable, err, "The model could not be reached: %s.", egress.Reason(err))
}

func mediaType(resp *http.Response) string {
	t, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return t
}

package mcp

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

const sessionHeader = "Mcp-Session-Id"

// maxRenewals bounds how often the session of a wire is begun again.
const maxRenewals = 2

// renewal is the state of a session that the server ended: a server that does not know a session has not
// run the request, so the portal begins another and repeats the request. The SDK does not notice.
type renewal struct {
	begin *http.Request // the request that began the session
	body  []byte        // of begin
	id    string        // the id of the present session; "" while it is the first
	count int
}

// replaceID sets the present session in the header of a request.
func (r *renewal) replaceID(h http.Header) {
	if r.id != "" && h.Get(sessionHeader) != "" {
		h.Set(sessionHeader, r.id)
	}
}

// noteBegin keeps the request that begins a session.
func (w *wire) noteBegin(req *http.Request) {
	if req.GetBody == nil {
		return
	}
	b, err := req.GetBody()
	if err != nil {
		return
	}
	defer b.Close()
	body, err := io.ReadAll(b)
	if err == nil {
		w.withLock(func() { w.renewed.begin, w.renewed.body = req.Clone(w.farewellCtx), body })
	}
}

// renewSession begins a new session if resp says that the one of req is gone, and repeats req in it. It
// returns resp itself for other refusals, and when there can be no other session.
func (w *wire) renewSession(req *http.Request, resp *http.Response) (*http.Response, error) {
	var begin *http.Request
	var body []byte
	w.withLock(func() {
		r := &w.renewed
		if r.begin != nil && req.Header.Get(sessionHeader) != "" && r.count < maxRenewals && req.GetBody != nil {
			begin, body = r.begin, r.body
		}
	})
	if begin == nil || !isGone(resp) {
		return resp, nil
	}
	w.withLock(func() { w.renewed.count++ })
	again := begin.Clone(req.Context())
	again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	again.Header.Del(sessionHeader)
	first, err := w.roundTrip(again)
	if err != nil {
		return resp, nil
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(first.Body, maxResponse)) // Some servers begin when all is read.
	first.Body.Close()
	id := first.Header.Get(sessionHeader)
	if first.StatusCode != http.StatusOK || id == "" {
		return resp, nil
	}
	w.withLock(func() { w.renewed.id = id })
	note := []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	begun := req.Clone(req.Context())
	begun.Body, begun.ContentLength = io.NopCloser(bytes.NewReader(note)), int64(len(note))
	noted, err := w.roundTrip(begun)
	if err != nil {
		return resp, nil
	}
	noted.Body.Close()
	repeat := req.Clone(req.Context())
	if repeat.Body, err = req.GetBody(); err != nil {
		return resp, nil
	}
	resp.Body.Close()
	return w.roundTrip(repeat)
}

// isGone reports whether a server refuses a session that it does not know: 404 as the protocol has it, or
// 400 with a word about the session. Its body can be read again.
func isGone(resp *http.Response) bool {
	if resp.StatusCode == http.StatusNotFound {
		return true
	}
	if resp.StatusCode != http.StatusBadRequest {
		return false
	}
	head, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	resp.Body = &readCloser{io.MultiReader(bytes.NewReader(head), resp.Body), resp.Body}
	return strings.Contains(strings.ToLower(string(head)), "session")
}

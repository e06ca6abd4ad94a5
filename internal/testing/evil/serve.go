package evil

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"agentsite/internal/record"
)

// On answers requests whose path ends with end by h. The longest matching end wins.
func (p *Portal) On(end string, h http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[end] = h
}

// Asked returns the number of answered requests whose path ends with end.
func (p *Portal) Asked(end string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count(end)
}

// count is Asked for callers that hold mu.
func (p *Portal) count(end string) (n int) {
	for path, c := range p.asked {
		if strings.HasSuffix(path, end) {
			n += c
		}
	}
	return n
}

// Wait waits until requests whose path ends with end were answered n times.
func (p *Portal) Wait(ctx context.Context, end string, n int) error {
	for {
		p.mu.Lock()
		rung, have := p.rung, p.count(end)
		p.mu.Unlock()
		if have >= n {
			return nil
		}
		select {
		case <-rung:
		case <-ctx.Done():
			return fmt.Errorf("nobody asked for %s: %w", end, ctx.Err())
		}
	}
}

func (p *Portal) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	var h http.HandlerFunc
	longest := -1
	for end, f := range p.answers {
		if strings.HasSuffix(r.URL.Path, end) && len(end) > longest {
			h, longest = f, len(end)
		}
	}
	if v := p.shown; h == nil { // Use the state at the arrival of the request: a later On must not affect it.
		h = func(w http.ResponseWriter, r *http.Request) { p.answer(w, r, v) }
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.asked[r.URL.Path]++
		close(p.rung)
		p.rung = make(chan struct{})
		p.mu.Unlock()
	}()
	h(w, r)
}

// honest answers a request as an honest portal would, with the published state.
func (p *Portal) honest(w http.ResponseWriter, r *http.Request) { p.answer(w, r, p.view()) }

// answer answers a request as an honest portal would, with the state v.
func (p *Portal) answer(w http.ResponseWriter, r *http.Request, v shown) {
	io.Copy(io.Discard, io.LimitReader(r.Body, 1<<20))
	type told struct {
		Card json.RawMessage `json:"card,omitempty"`
		Head json.RawMessage `json:"head,omitempty"`
	}
	path := r.URL.Path
	switch {
	case path == "/.well-known/agentsite", strings.HasSuffix(path, "/peering/v1/portal"):
		Say(w, map[string]any{"network": p.Network, "portal": p.ID, "origin": p.Origin, "card": json.RawMessage(v.card), "head": json.RawMessage(v.head)})
	case strings.HasSuffix(path, "/hello"):
		Say(w, map[string]any{"card": json.RawMessage(v.card), "head": json.RawMessage(v.head), "state": "active"})
	case strings.HasSuffix(path, "/heads/diff"):
		Say(w, map[string]any{"heads": []told{{v.card, v.head}}, "behind": []string{}, "more": false})
	case strings.HasSuffix(path, "/heads/hint"), strings.HasSuffix(path, "/attest"):
		Say(w, map[string]any{"refused": []any{}})
	case strings.HasSuffix(path, "/head"):
		Say(w, told{v.card, v.head})
	case strings.HasSuffix(path, "/log"):
		Lines(w, false, v.after(r)...)
	case strings.HasSuffix(path, "/leaves"):
		Lines(w, false, v.from(r)...)
	case strings.HasSuffix(path, "/agents"):
		Lines(w, false, v.agents(r)...)
	case strings.HasSuffix(path, "/attests"):
		Lines(w, false)
	case strings.HasSuffix(path, "/status"):
		Say(w, map[string]any{"version": "1", "network": p.Network, "portal": p.ID, "portals": 1, "agents": 1, "tier": "replica"})
	default:
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"error":{"kind":"not_found","reason":"absent","message":"nothing"}}`)
	}
}

// Log returns the lines of an honest answer to a request for the log, the head first.
func (p *Portal) Log(r *http.Request) [][]byte { return p.view().after(r) }

func (v shown) after(r *http.Request) [][]byte {
	after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	list := [][]byte{v.head}
	for _, e := range v.log {
		if e.seq > after {
			list = append(list, e.wire)
		}
	}
	return list
}

func (v shown) from(r *http.Request) [][]byte {
	var from record.Hash
	from.UnmarshalText([]byte(r.URL.Query().Get("from"))) // zero, for all leaves, without the parameter
	list := [][]byte{v.head}
	for _, l := range v.leaves {
		if bytes.Compare(l.key[:], from[:]) >= 0 {
			list = append(list, fmt.Appendf(nil, `["%s","%s"]`, l.key, l.hash))
		}
	}
	return list
}

func (v shown) agents(r *http.Request) [][]byte {
	keys := r.URL.Query()["key"]
	list := [][]byte{v.head}
	for _, e := range v.log {
		if slices.Contains(keys, e.key.String()) {
			list = append(list, e.wire)
		}
	}
	return list
}

// Say answers a request with v as JSON.
func Say(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.Encode(v) // an error means that the client has gone
}

// Lines answers a request with newline-delimited JSON. With more it says that the next page must be
// requested.
func Lines(w http.ResponseWriter, more bool, lines ...[]byte) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	if more {
		w.Header().Set("Agentsite-More", "true")
	}
	for _, l := range lines {
		w.Write(append(slices.Clip(l), '\n'))
	}
}

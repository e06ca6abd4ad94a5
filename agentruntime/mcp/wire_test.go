package mcp

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// pages is a RoundTripper that answers each request with the next text.
type pages []string

func (p *pages) RoundTrip(*http.Request) (*http.Response, error) {
	body := (*p)[0]
	*p = (*p)[1:]
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		ContentLength: -1, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// The end of a stream may be read after the next page has arrived. The schemas are those of the newest page then.
func TestWire_KeepsTheSchemasOfTheNewestPage(t *testing.T) {
	page := func(tool string) string {
		return `data: {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"` + tool + `","inputSchema":{"type":"object","z":1,"a":2}}]}}` +
			"\n\n: the end\n\n"
	}
	w, err := newWire(&pages{page("first"), page("second")}, "http://127.0.0.1/mcp", "", "")
	if err != nil {
		t.Fatal(err)
	}
	list := func() *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/mcp",
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := w.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	read := func(r io.Reader, n int64) {
		t.Helper()
		if _, err := io.CopyN(io.Discard, r, n); err != nil && err != io.EOF {
			t.Fatal(err)
		}
	}
	first := list()
	read(first.Body, int64(len(page("first"))-10))
	second := list()
	read(second.Body, int64(len(page("second"))-10))
	read(first.Body, 100)
	if got := string(w.listedSchemas()["second"]); got != `{"type":"object","z":1,"a":2}` {
		t.Errorf("the schemas are %q", got)
	}
}

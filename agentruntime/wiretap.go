package agentruntime

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"agentsite/internal/hub"
	"agentsite/internal/task"
)

// Wiretap is a RoundTripper that reports the exchanges of traced calls (task.WithTrace) and passes on
// all others untouched. The values of headers that carry credentials are hidden.
type Wiretap struct{ Next http.RoundTripper }

// RoundTrip implements http.RoundTripper. It reports each body once it has been read to its end or
// closed, so that streams are not delayed.
func (w Wiretap) RoundTrip(r *http.Request) (*http.Response, error) {
	trace := task.Trace(r.Context())
	if trace == nil {
		return w.Next.RoundTrip(r)
	}
	sent := &tap{trace: trace, out: true, head: formatHead(fmt.Sprintf("%s %s", r.Method, r.URL.Redacted()), r.Header)}
	if r.Body == nil || r.Body == http.NoBody {
		sent.reportBody()
	} else {
		r = r.Clone(r.Context())
		sent.body, r.Body = r.Body, sent
	}
	resp, err := w.Next.RoundTrip(r)
	if err != nil {
		trace.AddTrace(task.Traced{At: time.Now(), Head: "No answer: " + err.Error()})
		return resp, err
	}
	resp.Body = &tap{trace: trace, head: formatHead(resp.Proto+" "+resp.Status, resp.Header), body: resp.Body}
	return resp, nil
}

// formatHead formats a first line and headers, sorted by name, each on a line. Values of headers that
// are not in ordinary are hidden.
func formatHead(first string, h http.Header) string {
	var b strings.Builder
	b.WriteString(first)
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, v := range h[name] {
			if secretHeader(name) {
				v = "[removed]"
			}
			fmt.Fprintf(&b, "\n%s: %s", name, v)
		}
	}
	return clipText(b.String())
}

// ordinary lists the headers that are shown with their values. An agent may ask for its credential in a header of
// any other name.
var ordinary = []string{"Accept", "Accept-Encoding", "Cache-Control", "Connection", "Content-Length", "Content-Type",
	"Date", "Etag", "Keep-Alive", "Last-Modified",
	"A2a-Version", "A2a-Extensions", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Retry-After", "Server",
	"Transfer-Encoding", "User-Agent", "Vary", "Www-Authenticate", "X-Request-Id"}

func secretHeader(name string) bool { return !slices.Contains(ordinary, name) }

func clipText(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= task.MaxTraced {
		return s
	}
	s = s[:task.MaxTraced]
	for len(s) > 0 && !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s
}

// tap reports a body when it has been read to its end or is closed.
type tap struct {
	trace task.Tracer
	out   bool
	head  string
	body  io.ReadCloser

	mu   sync.Mutex // guards the fields below
	kept bytes.Buffer
	size int64
	done bool
}

// Read implements io.Reader. It keeps at most task.MaxTraced bytes for the report and counts all of
// them.
func (t *tap) Read(p []byte) (int, error) {
	n, err := t.body.Read(p)
	t.mu.Lock()
	t.size += int64(n)
	if room := task.MaxTraced - t.kept.Len(); room > 0 {
		t.kept.Write(p[:min(n, room)])
	}
	t.mu.Unlock()
	if err != nil {
		t.reportBody()
	}
	return n, err
}

// Close implements io.Closer. It reports what was read of a body that is closed early.
func (t *tap) Close() error {
	err := t.body.Close()
	t.reportBody()
	return err
}

func (t *tap) reportBody() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done {
		return
	}
	t.done = true
	t.trace.AddTrace(task.Traced{At: time.Now(), Out: t.out, Head: t.head, Body: clipText(t.kept.String()), Size: t.size})
}

// tracer collects the traces of one call, at most task.MaxTraces. It is safe for concurrent use.
type tracer struct {
	secret string

	mu   sync.Mutex // guards list
	list []hub.Trace
}

// AddTrace implements task.Tracer. It removes the stored credential from the entry.
func (t *tracer) AddTrace(e task.Traced) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.list) >= task.MaxTraces {
		return
	}
	hide := func(s string) string {
		if len(t.secret) >= 4 {
			s = strings.ReplaceAll(s, t.secret, "[removed]")
		}
		return clipText(s)
	}
	t.list = append(t.list, hub.Trace{At: e.At, Sent: e.Out, Head: hide(e.Head), Body: hide(e.Body), Size: e.Size})
}

func (t *tracer) allTraces() []hub.Trace {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.list)
}

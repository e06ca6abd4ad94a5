package mcp

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
)

// oldServer is a server of the HTTP+SSE transport of 2024-11-05. It writes its stream in the forms of real servers.
type oldServer struct {
	first    string // the stream begins with it; ORIGIN is the server's own
	event    string // an answer, with MESSAGE in it
	accepted func(http.ResponseWriter)
	refused  int                 // the status of a POST at the address of the stream
	mend     func(string) string // of each answer; nil for none

	stream chan string
	mu     sync.Mutex
	paths  []string // of the messages
}

// ServeHTTP implements http.Handler.
func (s *oldServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/mcp/sse":
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, strings.ReplaceAll(s.first, "ORIGIN", "http://"+r.Host))
		http.NewResponseController(w).Flush()
		for {
			select {
			case <-r.Context().Done():
				return
			case m := <-s.stream:
				io.WriteString(w, strings.ReplaceAll(s.event, "MESSAGE", m))
				http.NewResponseController(w).Flush()
			}
		}
	case r.URL.Path == "/mcp/sse" && r.URL.RawQuery == "":
		w.WriteHeader(s.refused)
	default:
		s.mu.Lock()
		s.paths = append(s.paths, r.URL.RequestURI())
		s.mu.Unlock()
		var m rpc
		json.NewDecoder(r.Body).Decode(&m)
		s.accepted(w)
		if m.ID == nil {
			return
		}
		result := `{"content":[{"type":"text","text":"you said hi"}]}`
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}`
		case "tools/list":
			result = `{"tools":[` + echoTool + `]}`
		}
		answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
		if s.mend != nil {
			answer = s.mend(answer)
		}
		s.stream <- answer
	}
}

// Servers of the transport of 2024-11-05 write the address for messages, their answers and the status of a POST in
// many ways.
func TestDriver_SpeaksTheTransportOf2024AsItIsWritten(t *testing.T) {
	const endpoint, event = "event: endpoint\ndata: /mcp/messages?session=7\n\n", "event: message\ndata: MESSAGE\n\n"
	status := func(code int, text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.WriteHeader(code); io.WriteString(w, text) }
	}
	accepted := status(http.StatusAccepted, "Accepted")
	for name, c := range map[string]struct {
		s    *oldServer
		path string // of the messages
	}{
		"as in the specification": {&oldServer{first: endpoint}, ""},
		"a whole address":         {&oldServer{first: "event: endpoint\ndata: ORIGIN/mcp/messages?session=7\n\n"}, ""},
		"beside the stream":       {&oldServer{first: "event: endpoint\ndata: messages?session=7\n\n"}, ""},
		"without a scheme":        {&oldServer{first: "event: endpoint\ndata: //HOST/mcp/messages?session=7\n\n"}, ""},
		"a query alone":           {&oldServer{first: "event: endpoint\ndata: ?session=7\n\n"}, "/mcp/sse?session=7"},
		"Windows lines":           {&oldServer{first: "event: endpoint\r\ndata: /mcp/messages?session=7\r\n\r\n", event: "event: message\r\ndata: MESSAGE\r\n\r\n"}, ""},
		"no spaces":               {&oldServer{first: "event:endpoint\ndata:/mcp/messages?session=7\n\n", event: "event:message\ndata:MESSAGE\n\n"}, ""},
		"a byte order mark":       {&oldServer{first: "\ufeff" + endpoint}, ""},
		"a comment first":         {&oldServer{first: ": hello\n\n" + endpoint, event: ": ping\n\n" + event}, ""},
		"a time to come back":     {&oldServer{first: "retry: 3000\n\n" + endpoint}, ""},
		"the data first":          {&oldServer{first: "data: /mcp/messages?session=7\nevent: endpoint\n\n"}, ""},
		"with ids":                {&oldServer{first: "id: 0\n" + endpoint, event: "id: 1\n" + event}, ""},
		"a ping before":           {&oldServer{first: "event: ping\ndata: {}\n\n" + endpoint, event: "event: ping\ndata: 2025-01-01\n\n" + event}, ""},
		"an address in quotes":    {&oldServer{first: "event: endpoint\ndata: \"/mcp/messages?session=7\"\n\n"}, ""},
		"an address in an object": {&oldServer{first: "event: endpoint\ndata: {\"uri\":\"/mcp/messages?session=7\"}\n\n"}, ""},
		"answers without a name":  {&oldServer{first: endpoint, event: "data: MESSAGE\n\n"}, ""},
		"ids as text": {&oldServer{first: endpoint, mend: func(s string) string {
			return strings.NewReplacer(`"id":`, `"id":"`, `,"result"`, `","result"`).Replace(s)
		}}, ""},
		"null for nothing":         {&oldServer{first: endpoint, mend: func(s string) string { return strings.TrimSuffix(s, "}") + `,"error":null}` }}, ""},
		"an answer in two lines":   {&oldServer{first: endpoint, mend: func(s string) string { return strings.Replace(s, `,"result"`, ",\ndata: \"result\"", 1) }}, ""},
		"a POST is said to be OK":  {&oldServer{first: endpoint, accepted: status(http.StatusOK, "ok")}, ""},
		"a POST has an object":     {&oldServer{first: endpoint, accepted: status(http.StatusOK, `{"status":"accepted"}`)}, ""},
		"a POST has nothing":       {&oldServer{first: endpoint, accepted: status(http.StatusNoContent, "")}, ""},
		"not found at the stream":  {&oldServer{first: endpoint, refused: http.StatusNotFound}, ""},
		"bad request there":        {&oldServer{first: endpoint, refused: http.StatusBadRequest}, ""},
		"unsupported media there":  {&oldServer{first: endpoint, refused: http.StatusUnsupportedMediaType}, ""},
		"a warning within":         {&oldServer{first: endpoint, event: "data: warming up\n\n" + event}, ""},
		"a list of one":            {&oldServer{first: endpoint, mend: func(s string) string { return "[" + s + "]" }}, ""},
		"a time in the same event": {&oldServer{first: "retry: 1\nid: 7\n" + endpoint}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.s
			s.stream = make(chan string, 8)
			if s.event == "" {
				s.event = event
			}
			if s.accepted == nil {
				s.accepted = accepted
			}
			if s.refused == 0 {
				s.refused = http.StatusMethodNotAllowed
			}
			if c.path == "" {
				c.path = "/mcp/messages?session=7"
			}
			n := agenttest.NewNetwork()
			srv := n.Serve(s)
			s.first = strings.ReplaceAll(s.first, "HOST", strings.TrimPrefix(srv.URL, "http://"))
			t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
			d := New(n.Transport(t), Config{})
			t.Cleanup(d.Close)
			res, _ := do(t, d, textCall(srv.URL+"/mcp/sse", nil, `echo text="hi"`))
			if got := task.PlainText(res.Parts); got != "you said hi" {
				t.Errorf("%q %s", got, res.Reason)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, p := range s.paths {
				if p != c.path {
					t.Errorf("a message went to %s", p)
				}
			}
		})
	}
}

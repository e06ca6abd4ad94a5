package remote

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"agentsite/internal/a2a"
	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
)

// An agent that takes no more requests now is busy, which is no failure.
func TestA2A_TooManyRequestsIsBusy(t *testing.T) {
	t.Parallel()
	const rpc, rest = `{"jsonrpc":"2.0","id":"1","error":{"code":-32000,"message":"calc is busy, about 40 s. Try again then."}}`,
		`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"calc is busy, about 40 s. Try again then.","details":[]}}`
	const theirs = "calc is busy, about 40 s. Try again then."
	for name, c := range map[string]struct {
		binding, body, after string
		peer                 bool
		wait                 time.Duration
		reason               string
	}{
		"JSON-RPC":             {a2a.BindingRPC, rpc, "40", false, 40 * time.Second, "The agent is busy, about 40 s. Try again then."},
		"HTTP+JSON":            {a2a.BindingREST, rest, "40", false, 40 * time.Second, "The agent is busy, about 40 s. Try again then."},
		"another portal":       {a2a.BindingRPC, rpc, "40", true, 40 * time.Second, theirs},
		"a proxy in its place": {a2a.BindingRPC, "<html>", "300", true, 5 * time.Minute, "The agent is busy, about 5 min. Try again then."},
		"without a time":       {a2a.BindingREST, "", "", false, 30 * time.Second, "The agent is busy, about 30 s. Try again then."},
		"a time that is no":    {a2a.BindingREST, "{}", "-5", false, 30 * time.Second, "The agent is busy, about 30 s. Try again then."},
		"a year":               {a2a.BindingREST, "{}", "31536000", false, 24 * time.Hour, "The agent is busy, about 1440 min. Try again then."},
	} {
		for _, streaming := range []bool{false, true} {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if c.after != "" {
					w.Header().Set("Retry-After", c.after)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusTooManyRequests)
				fmt.Fprint(w, c.body)
			}))
			t.Cleanup(srv.Close)
			call := task.Call{TaskID: "t", MessageID: "m", Attempt: 1, Parts: []task.Part{task.TextPart("2+2")},
				Agent: task.Target{Endpoint: srv.URL, Config: fmt.Appendf(nil, `{"binding":%q,"version":"1.0","streaming":%t}`, c.binding, streaming)}}
			res, err := newA2A(t).runTask(t.Context(), way{rt: transport(t), subject: "The agent", peer: c.peer}, call, &agenttest.Recorder{})
			if err != nil || res.State != task.Rejected || res.RetryAfter != c.wait || res.Reason != c.reason || len(res.Parts) > 0 {
				t.Errorf("%s, streaming %t: %+v, %v", name, streaming, res, err)
			}
		}
	}
}

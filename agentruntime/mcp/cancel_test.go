package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"agentsite/internal/testing/agenttest"
)

// A server of MCP versions before 2026-07-28 does not stop a call whose connection ends: it must be told. The
// notification names the call, and comes only for a call without an answer.
func TestDriver_TellsServersOfAbandonedCalls(t *testing.T) {
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		for _, answered := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/answered=%v", version, answered), func(t *testing.T) {
				calls, notes := make(chan json.RawMessage, 8), make(chan json.RawMessage, 8)
				url := speaking(t, func(w http.ResponseWriter, r rpc) {
					switch {
					case r.Method == "initialize":
						fmt.Fprintf(reply(w), `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{"tools":{}},`+
							`"serverInfo":{"name":"old","version":"1"}}}`, r.ID, version)
					case r.Method == "notifications/cancelled":
						var p struct {
							RequestID json.RawMessage `json:"requestId"`
						}
						_ = json.Unmarshal(r.Params, &p)
						notes <- p.RequestID
						w.WriteHeader(http.StatusAccepted)
					case begun(w, r):
					case r.Method == "tools/list":
						fmt.Fprintf(reply(w), `{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}`, r.ID, echoTool)
					case r.Method == "tools/call" && answered:
						fmt.Fprintf(reply(w), `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"Hi"}]}}`, r.ID)
						calls <- r.ID
					case r.Method == "tools/call":
						calls <- r.ID
						<-r.ctx.Done()
					default:
						w.WriteHeader(http.StatusMethodNotAllowed)
					}
				})
				d := newDriver(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan error, 1)
				go func() {
					_, err := d.Run(ctx, textCall(url, nil, "Hi"), &agenttest.Recorder{})
					ended <- err
				}()
				call := <-calls
				if answered {
					if err := <-ended; err != nil {
						t.Fatal(err)
					}
					cancel()
					d.Close() // waits for what is still to be sent
					select {
					case id := <-notes:
						t.Errorf("call %s was answered, and %s is cancelled", call, id)
					default:
					}
					return
				}
				cancel()
				<-ended
				d.Close() // waits for what is still to be sent
				select {
				case id := <-notes:
					if string(id) != string(call) {
						t.Errorf("%s is cancelled, the call is %s", id, call)
					}
				default:
					t.Errorf("call %s was abandoned, and the server was not told", call)
				}
			})
		}
	}
}

package mcp

import (
	"encoding/json"
	"testing"

	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
)

// newDriver returns a driver that is closed before the far side is.
func newDriver(t testing.TB) *Driver {
	d := New(transport(t), Config{})
	t.Cleanup(d.Close)
	return d
}

// echoConfig is the settings of a server that was read before.
func echoConfig(modern bool) json.RawMessage {
	v := legacy
	if modern {
		v = "2026-07-28"
	}
	b, _ := json.Marshal(hub.MCPConfig{Version: v, Tools: []hub.Tool{{Name: "echo", InputSchema: json.RawMessage(agenttest.EchoSchema)}}})
	return b
}

func textCall(endpoint string, config json.RawMessage, text string) task.Call {
	return partsCall(endpoint, config, task.TextPart(text))
}

func partsCall(endpoint string, config json.RawMessage, parts ...task.Part) task.Call {
	return task.Call{
		TaskID: ident.NewID(), MessageID: ident.NewID(), Attempt: 1, Parts: parts,
		Caller: task.Caller{Kind: "person", Handle: "ada"},
		Agent:  task.Target{Kind: "mcp", Endpoint: endpoint, Config: config},
	}
}

func TestDriver_Conforms(t *testing.T) {
	for name, modern := range map[string]bool{"modern": true, "legacy": false} {
		for how, config := range map[string]json.RawMessage{"read": echoConfig(modern), "unread": nil} {
			t.Run(name+"_"+how, func(t *testing.T) {
				agenttest.Run(t, func(t *testing.T) (task.Agent, agenttest.Script) {
					network := agenttest.NewNetwork()
					s := network.MCPServer(t, modern)
					d := New(network.Transport(t), Config{})
					t.Cleanup(d.Close)
					return d, agenttest.Script{
						Started: s.Started, Stopped: s.Stopped,
						Call: func(m agenttest.Mode, text string) (task.Call, bool) {
							return textCall(s.Endpoint(m), config, text), true
						},
					}
				})
			})
		}
	}
}

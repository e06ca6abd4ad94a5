package remote

import (
	"encoding/json"
	"testing"
	"time"

	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
)

func TestOpenAI_Conforms(t *testing.T) {
	agenttest.Run(t, func(t *testing.T) (task.Agent, agenttest.Script) {
		network := agenttest.NewNetwork()
		s := network.OpenAIServer(t)
		return NewOpenAI(network.Transport(t), Config{}), agenttest.Script{
			Started: s.Started, Stopped: s.Stopped, Streams: true,
			Call: func(m agenttest.Mode, text string) (task.Call, bool) { return openaiCall(s, m, text), true },
		}
	})
}

func openaiCall(s *agenttest.OpenAIServer, m agenttest.Mode, text string) task.Call {
	config, _ := json.Marshal(hub.OpenAIConfig{Model: "echo-1"})
	return task.Call{
		TaskID: ident.NewID(), MessageID: ident.NewID(), Attempt: 1, Parts: []task.Part{task.TextPart(text)},
		Caller: task.Caller{Kind: "person", Handle: "ada"},
		Agent:  task.Target{Kind: "openai", Endpoint: s.Base(m), Config: config},
	}
}

// combination is one way to speak A2A.
type combination struct {
	version, binding string
	streaming        bool
}

var combinations = []combination{
	{"1.0", "JSONRPC", true}, {"1.0", "JSONRPC", false}, {"1.0", "HTTP+JSON", true}, {"1.0", "HTTP+JSON", false},
	{"0.3", "JSONRPC", true}, {"0.3", "JSONRPC", false}, {"0.3", "HTTP+JSON", true}, {"0.3", "HTTP+JSON", false},
}

func (c combination) String() string {
	if c.streaming {
		return c.version + "_" + c.binding + "_streaming"
	}
	return c.version + "_" + c.binding
}

func TestA2A_Conforms(t *testing.T) {
	for _, c := range combinations {
		t.Run(c.String(), func(t *testing.T) {
			agenttest.Run(t, func(t *testing.T) (task.Agent, agenttest.Script) {
				network := agenttest.NewNetwork()
				s := network.A2AServer(t, c.version, c.binding)
				d := NewA2A(network.Transport(t), Config{Portal: "home.example"})
				t.Cleanup(d.Close)
				return d, agenttest.Script{
					Started: s.Started, Stopped: s.Stopped, Streams: c.streaming,
					Call: func(m agenttest.Mode, text string) (task.Call, bool) {
						// What misbehaves does so alike in most combinations.
						known := m == agenttest.Echo || m == agenttest.Wait || c.streaming || c == combinations[1]
						return a2aCall(s, m, c.streaming, text), known
					},
				}
			})
		})
	}
}

// newA2A returns a driver that is closed before the far side is.
func newA2A(t *testing.T) *A2A {
	d := NewA2A(transport(t), Config{Portal: "home.example", PollMin: 5 * time.Millisecond})
	t.Cleanup(d.Close)
	return d
}

func a2aCall(s *agenttest.A2AServer, m agenttest.Mode, streaming bool, text string) task.Call {
	config, _ := json.Marshal(hub.A2AConfig{Version: s.Version, Binding: s.Binding, Streaming: streaming})
	return task.Call{
		TaskID: ident.NewID(), MessageID: ident.NewID(), Attempt: 1, Parts: []task.Part{task.TextPart(text)},
		Agent: task.Target{Kind: "a2a", Endpoint: s.Endpoint(m), Config: config},
	}
}

package link

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"agentsite/internal/linkwire"
	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
)

func TestLink_Conforms(t *testing.T) {
	agenttest.Run(t, func(t *testing.T) (task.Agent, agenttest.Script) {
		d := New(Config{Grace: 200 * time.Millisecond, ConnectWait: 200 * time.Millisecond, StartWait: time.Millisecond,
			AcceptWait: 10 * time.Second, Idle: time.Second})
		t.Cleanup(d.Close)
		started, stopped := make(chan struct{}, 8), make(chan struct{}, 8)
		connected := make(map[agenttest.Mode]bool)
		return d, agenttest.Script{Started: started, Stopped: stopped,
			Call: func(m agenttest.Mode, text string) (task.Call, bool) {
				if !connected[m] {
					connected[m] = true
					var huge []byte // made before memory is measured
					if m == agenttest.Oversize {
						huge = bytes.Repeat([]byte("a"), 100<<20)
					}
					go behave(dial(t, d, string(m)), m, huge, started, stopped)
				}
				return ask(string(m), text), true
			}}
	})
}

// behave is an agent that behaves like mode until its connection ends.
func behave(p *peer, mode agenttest.Mode, huge []byte, started, stopped chan<- struct{}) {
	for {
		m, ok := p.hear()
		if !ok {
			return
		}
		switch m.Method {
		case linkwire.MethodCancel:
			stopped <- struct{}{}
			continue
		case linkwire.MethodTask:
		default:
			continue
		}
		var t linkwire.Task
		if err := json.Unmarshal(m.Params, &t); err != nil {
			p.t.Error(err)
		}
		h := linkwire.Held{Task: t.Task, Lease: t.Lease}
		p.accept(m.ID)
		switch mode {
		case agenttest.Echo:
			answer := agenttest.Echoed(t.Text)
			half := strings.IndexByte(answer, ' ')
			p.delta(h, answer[:half])
			h.Offset = half
			p.delta(h, answer[half:])
			p.finish(7, linkwire.Done{Task: t.Task, Lease: t.Lease, State: linkwire.Completed})
		case agenttest.Wait:
			started <- struct{}{}
			p.delta(h, "I begin")
		case agenttest.Stall:
			p.delta(h, "I begin")
		case agenttest.Babble:
			go func() {
				for text := strings.Repeat("and so on ", 1000); ; h.Offset += len(text) {
					select {
					case <-p.gone:
						return
					default:
						p.delta(h, text)
					}
				}
			}()
		case agenttest.Oversize:
			p.say(huge)
		case agenttest.Garbage:
			p.say([]byte("\x00\xff{{{ not json"))
		case agenttest.Page:
			p.say([]byte("<!doctype html><title>hello</title>"))
		case agenttest.Cut:
			p.delta(h, "I begin")
			p.Close("cut")
		}
	}
}

// Command link is an example for docs/link.md: an agent that repeats each message. Usage: go run
// ./docs/clients/link PORTAL NAME, with the token in AGENTSITE_TOKEN.
package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
)

type m = map[string]any

var jobs sync.Map // active tasks by id; they outlive a connection

// say streams the answer to a task from a byte offset on. If the connection breaks, the portal asks
// to resume it on the next connection.
func say(send func(m) error, j m, offset int) {
	for _, word := range strings.SplitAfter(("You said: " + j["text"].(string))[offset:], " ") {
		delta := m{"task": j["task"], "lease": j["lease"], "offset": offset, "text": word}
		if now, ok := jobs.Load(j["task"]); !ok || now.(m)["lease"] != j["lease"] || send(m{"method": "delta", "params": delta}) != nil {
			return // the task was canceled or given out again, or the connection broke
		}
		offset += len(word)
		time.Sleep(20 * time.Millisecond) // stands for the real work
	}
	send(m{"id": j["task"], "method": "done", "params": m{"task": j["task"], "lease": j["lease"], "state": "completed"}})
}

func connect(portal, name string) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	silence := time.AfterFunc(15*time.Second, stop) // the portal pings every 5 s
	c, _, err := websocket.Dial(ctx, portal+"/link", &websocket.DialOptions{Subprotocols: []string{"agentsite.link.v1"},
		HTTPHeader:     http.Header{"Authorization": {"Bearer " + os.Getenv("AGENTSITE_TOKEN")}},
		OnPingReceived: func(context.Context, []byte) bool { return silence.Reset(15 * time.Second) }})
	if err != nil {
		return err
	}
	c.SetReadLimit(1 << 20)
	send := func(v m) error { v["jsonrpc"] = "2.0"; return wsjson.Write(ctx, c, v) }
	held := []m{}
	jobs.Range(func(id, j any) bool { held = append(held, m{"task": id, "lease": j.(m)["lease"]}); return true })
	send(m{"id": "hello", "method": "hello", "params": m{"protocol": 1, "name": name, "resume": held}})
	for {
		in := m{}
		if err := wsjson.Read(ctx, c, &in); err != nil {
			return err
		}
		p, _ := in["params"].(m)
		switch in["method"] {
		case "task":
			jobs.Store(p["task"], p)
			send(m{"id": in["id"], "result": m{"accepted": true}})
			go say(send, p, 0)
		case "resume": // the portal resumes only tasks that hello listed
			send(m{"id": in["id"], "result": m{"accepted": true}})
			if j, ok := jobs.Load(p["task"]); ok {
				go say(send, j.(m), int(p["offset"].(float64)))
			}
		case "cancel":
			jobs.Delete(p["task"])
		case nil: // an answer of the portal: hello or done was accepted
			jobs.Delete(in["id"])
		}
	}
}

func main() {
	for ; ; time.Sleep(time.Second) {
		err := connect(os.Args[1], os.Args[2])
		log.Print(err)
		if code := websocket.CloseStatus(err); code == 1008 || code > 4000 {
			os.Exit(1) // the portal refuses this agent for good
		}
	}
}

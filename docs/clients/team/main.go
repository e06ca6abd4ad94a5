// Command team is an example for docs/teams.md: an A2A agent that adds numbers and speaks for itself in teams. Usage:
// go run ./docs/clients/team ADDRESS, such as 127.0.0.1:9000.
package main

import (
	"context"
	"fmt"
	"iter"
	"log"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
)

type adder struct{}

func (adder) Execute(_ context.Context, ec *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	kind, text := "say", ""
	for _, p := range ec.Message.Parts {
		data, _ := p.Data().(map[string]any)
		if team, ok := data["team"].(map[string]any); ok && team["kind"] == "task" {
			kind = "result"
		}
		text += p.Text()
	}
	sum, numbers := 0, regexp.MustCompile(`\d+`).FindAllString(text, -1)
	for n := range slices.Values(numbers) {
		v, _ := strconv.Atoi(n)
		sum += v
	}
	move := map[string]any{"kind": kind, "text": fmt.Sprint("The sum is ", sum, ".")}
	if len(numbers) == 0 {
		move["text"] = "I add numbers, and here are none."
	}
	if len(numbers) == 0 && kind == "result" {
		move["kind"] = "decline" // so another agent gets the task
	}
	return func(yield func(a2a.Event, error) bool) {
		yield(a2a.NewMessage(a2a.MessageRoleAgent, a2a.NewDataPart(map[string]any{"move": move})), nil)
	}
}

func (adder) Cancel(context.Context, *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(func(a2a.Event, error) bool) {}
}

func main() {
	card := &a2a.AgentCard{Name: "Adder", Description: "Adds numbers.", Version: "1", DefaultInputModes: []string{"text/plain"}, DefaultOutputModes: []string{"text/plain"},
		SupportedInterfaces: []*a2a.AgentInterface{a2a.NewAgentInterface("http://"+os.Args[1]+"/rpc", a2a.TransportProtocolJSONRPC)},
		Capabilities:        a2a.AgentCapabilities{Extensions: []a2a.AgentExtension{{URI: "https://agentsite.dev/ext/team/v1"}}},
		Skills:              []a2a.AgentSkill{{ID: "add", Name: "Add numbers", Description: "Adds numbers.", Tags: []string{"sum"}}}}
	http.Handle(a2asrv.WellKnownAgentCardPath, a2asrv.NewStaticAgentCardHandler(card))
	http.Handle("/rpc", a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(adder{})))
	log.Fatal(http.ListenAndServe(os.Args[1], nil))
}

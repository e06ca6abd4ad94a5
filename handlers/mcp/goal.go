package mcp

import (
	"context"
	"encoding/json"

	"agentsite/handlers/mcp/endpoint"
	"agentsite/internal/task"
	"agentsite/internal/team"
)

const goalInput = `{"type":"object","properties":{
"goal":{"type":"string","minLength":1,"description":"What is to be reached: a sentence or list entry for each part"},
"members":{"type":"array","items":{"type":"string"},"description":"Handles of agents to invite"},
"recruit":{"type":"string","enum":["here","network","members"],
"description":"Where other agents are searched: here, in the network, or, as usual with members, nowhere"},
"require_all":{"type":"boolean","description":"Fail if one of the members does not join"},
"max_members":{"type":"integer","minimum":1,"maximum":50},
"max_turns":{"type":"integer","minimum":1,"maximum":1000},
"max_depth":{"type":"integer","minimum":0,"maximum":5,"description":"Teams below the team"},
"seconds":{"type":"integer","minimum":1,"maximum":840,"description":"The time for the goal; 840 if left out"},
"tokens":{"type":"integer","minimum":1,"description":"The most that the models of the team may use"},
"context_id":{"type":"string","description":"From an earlier answer: gives its team a further part"}
},"required":["goal"],"additionalProperties":false}`

// giveGoal gives a goal to a team: it asks the built-in agent of that name, which has goals as tasks.
func (d *Handler) giveGoal(ctx context.Context, c *endpoint.Call) (endpoint.Result, error) {
	in := argumentsOf(c)
	q := question{agent: team.AgentName, context: in.readText("context_id", maxIDText)}
	options := map[string]any{"goal": in.requireText("goal", team.MaxGoal)}
	if list := in.readList("members", team.MaxMembers); len(list) > 0 {
		options["members"] = list
	}
	if where := in.readText("recruit", 20); where != "" {
		options["recruit"] = where
	}
	if all, given := in.readFlag("require_all"); given {
		options["require_all"] = all
	}
	for name, most := range map[string]int{"max_members": team.MaxMembers, "max_turns": team.MaxTurns,
		"max_depth": team.MaxDepth, "seconds": maxGoalSeconds, "tokens": 1 << 50} {
		if n := in.readNumber(name, -1, 0, most); n >= 0 {
			options[name] = n
		}
	}
	if bad := in.checkAll(); bad != nil {
		return *bad, nil
	}
	data, err := json.Marshal(options)
	if err != nil {
		return endpoint.Result{}, err
	}
	q.parts = []task.Part{{Data: data, MediaType: "application/json"}}
	return d.runQuestion(ctx, c, q)
}

// maxGoalSeconds is the longest time of a goal that is given as a task.
const maxGoalSeconds = 840

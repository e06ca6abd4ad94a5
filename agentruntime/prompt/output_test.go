package prompt

import (
	"encoding/json"
	"strings"
	"testing"

	"agentsite/internal/openai"
	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
)

const citySchema = `{"type":"object","properties":{"city":{"type":"string"},"people":{"type":"integer"}},"required":["city"],"additionalProperties":false}`

func city() *json.RawMessage {
	s := json.RawMessage(citySchema)
	return &s
}

func TestRun_AnswersInTheFormOfTheSchema(t *testing.T) {
	const fits = `{"city":"Oslo","people":7}`
	for what, tt := range map[string]struct {
		turns []agenttest.Turn
		asked int
		says  string // of a failure
	}{
		"plain":             {[]agenttest.Turn{{Text: fits}}, 1, ""},
		"in a block":        {[]agenttest.Turn{{Text: "Here it is:\n```json\n{\n \"city\": \"Oslo\",\n \"people\": 7\n}\n```\nBye."}}, 1, ""},
		"at the second":     {[]agenttest.Turn{{Text: "It is Oslo."}, {Text: fits}}, 2, ""},
		"another form":      {[]agenttest.Turn{{Text: `{"town":"Oslo"}`}, {Text: fits}}, 2, ""},
		"never":             {[]agenttest.Turn{{Text: "It is Oslo."}, {Text: `{"city":7}`}}, 2, "does not fit the schema"},
		"cut":               {[]agenttest.Turn{{Text: `{"city":"Os`}, {Text: `{"city":`}}, 2, "It is no JSON."},
		"the format is new": {[]agenttest.Turn{{Status: 400, Refusal: "unknown field response_format"}, {Text: fits}}, 2, ""},
	} {
		w := newWorld(t, nil, tt.turns...)
		w.cfg.Tools, w.cfg.Output = nil, city()
		res, _ := w.run(w.call("Which city?"))
		reqs, _ := w.s.Requests()
		if len(reqs) != tt.asked {
			t.Errorf("%s: asked %d times", what, len(reqs))
		}
		first, last := reqs[0], reqs[len(reqs)-1]
		if first.ResponseFormat == nil || string(first.ResponseFormat.JSONSchema.Schema) != citySchema || !strings.Contains(string(first.Messages[0].Content), citySchema) {
			t.Errorf("%s: %+v", what, first)
		}
		switch {
		case tt.says != "":
			if res.State != task.Failed || !strings.Contains(res.Reason, tt.says) {
				t.Errorf("%s: %+v", what, res)
			}
		case res.State != task.Completed || len(res.Parts) != 1 || string(res.Parts[0].Data) != fits || res.Parts[0].MediaType != "application/json":
			t.Errorf("%s: %+v", what, res)
		}
		if what == "the format is new" && last.ResponseFormat != nil {
			t.Error("the format was sent again")
		}
		if what == "at the second" && !strings.Contains(string(last.Messages[len(last.Messages)-1].Content), "It is no JSON.") {
			t.Errorf("%+v", last.Messages)
		}
	}
}

func TestRun_AnswersInTheFormOfTheSchemaAfterTools(t *testing.T) {
	w := newWorld(t, files(), agenttest.Turn{Text: "I look.", Calls: []openai.ToolCall{agenttest.Want("1", "files__read", `{"path":"a"}`)}}, agenttest.Turn{Text: `{"city":"Oslo"}`})
	w.cfg.Output = city()
	res, _ := w.run(w.call("Which city?"))
	if res.State != task.Completed || len(res.Parts) != 1 || string(res.Parts[0].Data) != `{"city":"Oslo"}` {
		t.Errorf("%+v", res)
	}
	if reqs, _ := w.s.Requests(); len(reqs) != 2 || reqs[0].ResponseFormat != nil || len(reqs[0].Tools) == 0 {
		t.Errorf("%+v", reqs)
	}
}

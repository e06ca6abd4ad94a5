package prompt

import (
	"bytes"
	"encoding/json"
	"strings"

	"agentsite/agentruntime/model"
	"agentsite/internal/openai"
	"agentsite/internal/schema"
	"agentsite/internal/task"
)

// outputRule is the part of the system message about the form of the answer. The schema is the owner's.
const outputRule = "\nAnswer with one JSON value and nothing else. It has to fit this JSON Schema:\n"

// endWithOutput ends the task with the answer as data, if it fits the schema of the agent. Otherwise the model is asked
// once more, and then the task fails.
func (r *run) endWithOutput(reply model.Reply) {
	data, why := parseOutput(reply.Text)
	if why == "" {
		why = schema.Sentence(schema.Validate(*r.cfg.Output, data))
	}
	switch {
	case why == "":
		r.st.Said = string(data)
		r.out.Replace(r.st.Said)
		r.result = &task.Result{State: task.Completed, Parts: []task.Part{{Data: data, MediaType: "application/json"}}}
	case r.corrected:
		r.failTask("The model's answer does not fit the schema of this agent: %s", clipText(why, maxAbout))
	default:
		r.corrected = true
		r.st.Turns = append(r.st.Turns, openai.Message{Role: openai.Assistant,
			Content: openai.Content(clipText(reply.Text, maxAside))}, openai.Message{Role: openai.User,
			Content: openai.Content("[The portal cannot use this answer: " + clipText(why, maxAbout) +
				" Answer again, with the JSON value alone.]")})
		r.st.Said, r.gap = "", false
		r.out.Replace("")
	}
}

// parseOutput returns the JSON value in an answer. Models put it into a block of code or a sentence around it. why is
// the problem as a sentence, "" for none.
func parseOutput(text string) (data json.RawMessage, why string) {
	text = strings.TrimSpace(text)
	from, to := strings.IndexAny(text, "{["), strings.LastIndexAny(text, "}]")
	for _, s := range []string{text, text[max(from, 0):max(to+1, from, 0)]} {
		if json.Valid([]byte(s)) {
			var out bytes.Buffer
			if json.Compact(&out, []byte(s)) == nil {
				return out.Bytes(), ""
			}
		}
	}
	return nil, "It is no JSON."
}

package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"agentsite/handlers/mcp/endpoint"
	"agentsite/internal/chat"
	"agentsite/internal/task"
)

// answerJSON is the structured result of a call: the state and the answer of a task.
type answerJSON struct {
	Agent     string         `json:"agent"`
	TaskID    string         `json:"task_id"`
	ContextID string         `json:"context_id"`
	State     string         `json:"state"`
	Answer    string         `json:"answer,omitempty"`
	Reason    string         `json:"reason,omitempty"`
	Artifacts []artifactJSON `json:"artifacts,omitempty"`
}

// artifactJSON is an artifact in a structured result.
type artifactJSON struct {
	Name        string            `json:"name,omitempty"`
	Description string            `json:"description,omitempty"`
	Text        string            `json:"text,omitempty"`
	Data        []json.RawMessage `json:"data,omitempty"`
	Files       []fileJSON        `json:"files,omitempty"`
}

type fileJSON struct {
	Name      string `json:"name,omitempty"`
	URL       string `json:"url"`
	MediaType string `json:"media_type,omitempty"`
}

// answerSchema is the JSON schema of answerJSON.
const answerSchema = `{"type":"object","properties":{
"agent":{"type":"string","description":"The agent's handle"},
"task_id":{"type":"string","description":"The task, for get_task and follow_task"},
"context_id":{"type":"string","description":"The conversation: send it as context_id to go on"},
"state":{"type":"string","enum":["submitted","working","input_required","auth_required","completed","failed","canceled","rejected"]},
"answer":{"type":"string"},
"reason":{"type":"string","description":"Why it is not completed"},
"artifacts":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"description":{"type":"string"},"text":{"type":"string"},"data":{"type":"array"},
"files":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"url":{"type":"string"},"media_type":{"type":"string"}},"required":["url"]}}}}}
},"required":["agent","task_id","context_id","state"]}`

// maxAnswer bounds the content of one result in bytes. The rest can be read from the task.
const maxAnswer = 4 << 20

// contentOf converts parts to content of a result. Files become links.
func contentOf(ctx context.Context, files task.Files, parts []task.Part) []endpoint.Content {
	var out []endpoint.Content
	for _, p := range parts {
		switch {
		case p.Text != "":
			out = append(out, endpoint.TextContent(p.Text))
		case p.URL != "":
			at := fileAddress(ctx, files, p.URL)
			out = append(out, endpoint.LinkContent(at, cmp.Or(p.Filename, "file"), p.MediaType))
		case len(p.Raw) > 0:
			kind, _, _ := strings.Cut(p.MediaType, "/")
			switch kind {
			case "image", "audio":
				out = append(out, endpoint.Content{Type: kind, Data: p.Raw, MIMEType: p.MediaType})
			default:
				out = append(out, endpoint.Content{Type: "resource",
					Resource: &endpoint.ResourceContents{URI: "file:///" + cmp.Or(p.Filename, "file"),
						MIMEType: p.MediaType, Blob: p.Raw}})
			}
		case len(p.Data) > 0:
			out = append(out, endpoint.TextContent(string(p.Data)))
		}
	}
	return out
}

// fileAddress returns a signed address at which the client can fetch a file of this portal for a limited
// time. Other addresses stay unchanged.
func fileAddress(ctx context.Context, files task.Files, at string) string {
	if strings.HasPrefix(at, task.FilePath) {
		if open, err := files.Address(ctx, at); err == nil {
			return open
		}
	}
	return at
}

func artifactOf(ctx context.Context, files task.Files, a task.Artifact) artifactJSON {
	out := artifactJSON{Name: a.Name, Description: a.Description}
	var words []task.Part
	for _, p := range a.Parts {
		switch {
		case p.URL != "":
			out.Files = append(out.Files, fileJSON{p.Filename, fileAddress(ctx, files, p.URL), p.MediaType})
		case len(p.Data) > 0:
			out.Data = append(out.Data, p.Data)
		default:
			words = append(words, p)
		}
	}
	out.Text = task.PlainText(words)
	return out
}

// taskResult returns the result for a task. m is the last message of the task's agent, the zero value if
// there is none.
func (d *Handler) taskResult(ctx context.Context, t task.Task, m chat.Message) endpoint.Result {
	v := answerJSON{Agent: t.AgentHandle, TaskID: t.ID, ContextID: t.ConversationID, State: string(t.State),
		Reason: t.Reason}
	var r endpoint.Result
	t2 := t // t2 covers the answer's message, so that its files can be fetched too
	t2.MessageSeq = max(t.MessageSeq, t.AnswerSeq)
	files := d.cfg.Chat.Files.ForTask(t2)
	if m.Kind == chat.Text {
		v.Answer = task.PlainText(m.Parts)
		r.Content = contentOf(ctx, files, m.Parts)
	}
	size := len(v.Answer)
	for _, a := range t.Artifacts {
		j := artifactOf(ctx, files, a)
		if size += len(j.Text); size > maxAnswer {
			break
		}
		v.Artifacts = append(v.Artifacts, j)
	}
	var answer []task.Part
	if m.Kind == chat.Text {
		answer = m.Parts
	}
	for _, a := range task.WithoutAnswer(t.Artifacts[:len(v.Artifacts)], answer) {
		if a.Name != "" {
			r.Content = append(r.Content, endpoint.TextContent("Artifact: "+a.Name))
		}
		r.Content = append(r.Content, contentOf(ctx, files, a.Parts)...)
	}
	r.Structured = v
	switch {
	case t.State.Active():
		r.Content = append(r.Content, endpoint.TextContent("The agent is still working. Follow the task "+t.ID+"."))
	case t.State == task.Failed || t.State == task.Rejected || t.State == task.Canceled:
		r.Failed = true
		if t.Reason != "" || len(r.Content) == 0 {
			r.Content = append(r.Content, endpoint.TextContent(endReason(t)))
		}
	case !t.State.Terminal():
		if len(r.Content) == 0 {
			r.Content = append(r.Content, endpoint.TextContent(cmp.Or(t.Reason, "The agent waits for input.")))
		}
		r.Content = append(r.Content, endpoint.TextContent(`To answer, call again with context_id "`+t.ConversationID+
			`".`))
	}
	return r
}

// endReason returns the reason why a task ended without an answer, as a sentence for the model.
func endReason(t task.Task) string {
	switch t.State {
	case task.Rejected:
		return cmp.Or(t.Reason, "The agent refused.")
	case task.Canceled:
		return cmp.Or(t.Reason, "The task was canceled.")
	}
	return cmp.Or(t.Reason, "The agent failed.")
}

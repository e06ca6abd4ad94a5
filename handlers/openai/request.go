package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"slices"
	"strings"

	"agentsite/internal/chat"
	wire "agentsite/internal/openai"
	"agentsite/internal/task"
)

// maxBody bounds a request: a message with some pictures, and the earlier messages.
const maxBody = 6 << 20

// completionRequest is the body of POST /chat/completions with the fields that count here.
// Parameters of models, such as temperature, are ignored: they are the agent's own choice.
type completionRequest struct {
	Model          string              `json:"model"`
	Messages       []message           `json:"messages"`
	Stream         bool                `json:"stream"`
	StreamOptions  *wire.StreamOptions `json:"stream_options"`
	N              *int                `json:"n"`
	Tools          []json.RawMessage   `json:"tools"`
	ToolChoice     json.RawMessage     `json:"tool_choice"`
	Functions      []json.RawMessage   `json:"functions"`
	ResponseFormat struct {
		Type string `json:"type"`
	} `json:"response_format"`
	Modalities []string `json:"modalities"`
}

type message struct {
	Role    string      `json:"role"`
	Content wire.Pieces `json:"content"`
}

var roles = []string{wire.System, "developer", wire.User, wire.Assistant, wire.ToolRole, "function"}

// check returns an error for a request that agents cannot serve: several answers, tools of the caller, or
// a last message that is not the user's.
func (in *completionRequest) check() error {
	switch {
	case in.Model == "":
		return wrong("model", "Name an agent as the model. GET /v1/models lists them.")
	case len(in.Messages) == 0:
		return wrong("messages", "Send at least one message.")
	case in.N != nil && *in.N != 1:
		return wrong("n", "An agent gives one answer: leave n out, or use 1.")
	case len(in.Tools) > 0 && string(in.ToolChoice) != `"none"`:
		return wrong("tools", `Agents use tools of their own, not the caller's. Leave tools out, or set tool_choice to "none".`)
	case len(in.Functions) > 0:
		return wrong("functions", "Agents use tools of their own, not the caller's. Leave functions out.")
	case in.ResponseFormat.Type != "" && in.ResponseFormat.Type != "text":
		return wrong("response_format", "Agents answer with text. Leave response_format out, and ask for the form you need in the message.")
	case slices.ContainsFunc(in.Modalities, func(m string) bool { return m != "text" }):
		return wrong("modalities", "Agents answer with text. Leave modalities out.")
	}
	for i, m := range in.Messages {
		if !slices.Contains(roles, m.Role) {
			return wrong(fmt.Sprintf("messages[%d].role", i), "The role is one of "+strings.Join(roles, ", ")+".")
		}
	}
	if last := len(in.Messages) - 1; in.Messages[last].Role != wire.User {
		return wrong(fmt.Sprintf("messages[%d].role", last),
			"The last message is the question to the agent: give it the role user.")
	}
	return nil
}

// questionParts returns the last message as parts: its text and its pictures. Content that agents do not
// accept is an error.
func (in *completionRequest) questionParts() ([]task.Part, error) {
	at := len(in.Messages) - 1
	var out []task.Part
	for i, p := range in.Messages[at].Content {
		param := fmt.Sprintf("messages[%d].content[%d]", at, i)
		switch p.Type {
		case "text":
			if p.Text != "" {
				out = append(out, task.TextPart(p.Text))
			}
		case "image_url":
			part, err := readPicture(p.Image, len(out)+1, param+".image_url.url")
			if err != nil {
				return nil, err
			}
			out = append(out, part)
		default:
			return nil, wrong(param+".type", fmt.Sprintf("Parts of the type %.40q cannot be given to an agent; use text and image_url.", p.Type))
		}
	}
	if len(out) == 0 {
		return nil, wrong(fmt.Sprintf("messages[%d].content", at), "Say something.")
	}
	return out, nil
}

// endings maps the media types of the pictures that agents accept to file extensions.
var endings = map[string]string{"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}

// readPicture decodes a data: URL. Other addresses are refused, because any caller could make the portal
// send requests to them. n numbers the picture in its file name; param is the field in errors.
func readPicture(address string, n int, param string) (task.Part, error) {
	rest, ok := strings.CutPrefix(address, "data:")
	kind, data, comma := strings.Cut(rest, ",")
	kind, encoded := strings.CutSuffix(kind, ";base64")
	media, _, err := mime.ParseMediaType(kind)
	if !ok || !comma || !encoded || err != nil || endings[media] == "" {
		return task.Part{}, wrong(param, "Send the picture itself, as data:image/png;base64,… (or jpeg, gif, webp). Other addresses are not fetched.")
	}
	if base64.StdEncoding.DecodedLen(len(data)) > chat.MaxRawBytes+2 {
		return task.Part{}, wrong(param, fmt.Sprintf("A picture has at most %d bytes.", chat.MaxRawBytes))
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(raw) == 0 {
		return task.Part{}, wrong(param, "The picture is not written in base64.")
	}
	return task.Part{Raw: raw, MediaType: media, Filename: fmt.Sprintf("image-%d.%s", n, endings[media])}, nil
}

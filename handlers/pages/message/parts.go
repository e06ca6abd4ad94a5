package message

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/internal/a2a"
	"agentsite/internal/chat"
	"agentsite/internal/schema"
	"agentsite/internal/task"
	"agentsite/templates"
)

// Part adds the content of one part to the view of a message: text to body, data to data, and links and
// files to files.
func (d *Renderer) Part(body *templates.SafeHTML, data *[]templates.DataPart, files *[]templates.FilePart,
	p task.Part) {
	switch {
	case p.URL != "":
		if _, ours := OwnFile(p.URL); ours {
			*files = append(*files, FilePart(p))
			return
		}
		*body += d.markup.Link(p.URL, p.Filename)
	case p.Data != nil:
		*data = append(*data, dataPart(p))
	case p.Raw != nil:
		name := cmp.Or(p.Filename, "file")
		*data = append(*data, templates.DataPart{Label: p.MediaType,
			Code: name + ", " + pages.FormatNumber(int64(len(p.Raw))) + " bytes. It can be had through the API."})
	default:
		*body += d.markup.Message(p.Text)
	}
}

func dataPart(p task.Part) templates.DataPart {
	if call, ok := ToolPart(p.Data); ok {
		return call
	}
	var pretty bytes.Buffer
	// Deep data stays unindented, because indentation grows it with the square of its depth.
	if jsonDepth(p.Data) > maxDataDepth || json.Indent(&pretty, p.Data, "", "  ") != nil {
		pretty.Reset()
		pretty.Write(p.Data)
	}
	return templates.DataPart{Label: cmp.Or(p.MediaType, "application/json"), Code: pretty.String()}
}

// OwnFile returns the hash in the path of a file of this portal; ok is false for other URLs.
func OwnFile(url string) (hash string, ok bool) {
	hash, ok = strings.CutPrefix(url, chat.FileURL(""))
	if b, err := hex.DecodeString(hash); !ok || err != nil || len(b) != 32 || strings.ToLower(hash) != hash {
		return "", false
	}
	return hash, true
}

// FilePart returns a file of this portal as pages show it: with name, size and, for pictures, a preview.
func FilePart(p task.Part) templates.FilePart {
	f := templates.FilePart{Name: chat.FileName(p.Filename), Href: p.URL, Type: p.MediaType}
	if n := PartSize(p); n > 0 {
		f.Size = pages.FormatBytes(n)
	}
	switch p.MediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		f.Preview = p.URL + "/preview"
	}
	return f
}

// PartSize returns the size in bytes that a part states for its file, 0 without one.
func PartSize(p task.Part) int64 {
	var about struct {
		Size int64 `json:"size"`
	}
	if len(p.Metadata) == 0 || json.Unmarshal(p.Metadata, &about) != nil || about.Size < 0 || about.Size > 1<<50 {
		return 0
	}
	return about.Size
}

// maxDataDepth bounds the nesting of JSON data that is shown with indentation.
const maxDataDepth = 32

// jsonDepth returns an upper bound of the nesting of JSON data. Brackets in strings count too, which
// saves parsing.
func jsonDepth(b []byte) int {
	at, most := 0, 0
	for _, c := range b {
		switch c {
		case '{', '[':
			at++
			most = max(most, at)
		case '}', ']':
			at--
		}
	}
	return most
}

const MaxLabel = 200

// ToolCall is the data of a message that makes an MCP agent run a tool.
type ToolCall struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// ToolAsk is the data of an agent's message that asks for the missing arguments of a tool in a form.
type ToolAsk struct {
	Tool      string            `json:"tool"`
	Ask       string            `json:"ask"`
	Schema    json.RawMessage   `json:"schema"`
	Arguments json.RawMessage   `json:"arguments"`
	Wrong     map[string]string `json:"wrong"`
}

func AskedForm(data json.RawMessage) (f ToolAsk, ok bool) {
	if len(data) == 0 || json.Unmarshal(data, &f) != nil || f.Tool == "" || len(f.Tool) > 128 || len(f.Schema) == 0 {
		return ToolAsk{}, false
	}
	return f, schema.Check(f.Schema) == nil
}

// ToolPart returns a ToolCall as text for people; ok is false for other data.
func ToolPart(data json.RawMessage) (templates.DataPart, bool) {
	var call ToolCall
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	if len(data) > request.MaxForm || dec.Decode(&call) != nil || call.Tool == "" || len(call.Tool) > 128 {
		return templates.DataPart{}, false
	}
	p := templates.DataPart{Label: "Tool " + a2a.Line(call.Tool, MaxLabel)}
	var args map[string]json.RawMessage
	if json.Unmarshal(call.Arguments, &args) != nil || len(args) == 0 {
		p.Code = "without arguments"
		return p, true
	}
	names := make([]string, 0, len(args))
	for name := range args {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		value := string(args[name])
		var text string
		if json.Unmarshal(args[name], &text) == nil {
			if value = text; strings.TrimSpace(text) != a2a.Text(text, len(text)+1) {
				// shows invisible characters as escapes, so that they cannot hide text
				value = strconv.QuoteToGraphic(text)
			}
		}
		b.WriteString(a2a.Line(name, MaxLabel) + ": " + value + "\n")
	}
	p.Code = strings.TrimRight(b.String(), "\n")
	return p, true
}

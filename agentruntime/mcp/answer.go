package mcp

import (
	"encoding/json"
	"mime"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentsite/internal/a2a"
	"agentsite/internal/task"
)

const (
	// maxText bounds the text of one answer in bytes, data included.
	maxText  = 256 << 10
	maxFile  = 4 << 20
	maxParts = 100
	// maxToolResult bounds the text in bytes of an answer that goes to the model of another agent.
	maxToolResult = 64 << 10
)

// answer is the result of a tool, converted to parts within the bounds.
type answer struct {
	parts []task.Part // texts, data and links; files are apart
	files []task.Part
	// note describes left-out content; "" for none.
	note string
}

// answerOf converts the result of a tool. Content beyond the bounds is left out and named in note.
func answerOf(res *sdk.CallToolResult) answer {
	var a answer
	room := maxText
	for i, c := range res.Content {
		if i >= maxParts {
			a.note = "The answer has more parts than are shown."
			break
		}
		switch c := c.(type) {
		case *sdk.TextContent:
			room = a.addText(c.Text, room)
		case *sdk.ImageContent:
			a.addFile(c.Data, c.MIMEType, "")
		case *sdk.AudioContent:
			a.addFile(c.Data, c.MIMEType, "")
		case *sdk.ResourceLink:
			room = a.addLink(c, room)
		case *sdk.EmbeddedResource:
			if c.Resource == nil {
				continue
			}
			if len(c.Resource.Blob) > 0 {
				a.addFile(c.Resource.Blob, c.Resource.MIMEType, path.Base(c.Resource.URI))
			} else {
				room = a.addText(c.Resource.Text, room)
			}
		}
	}
	a.addData(res.StructuredContent, room)
	return a
}

func (a *answer) addText(s string, room int) int {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.TrimSpace(s) == "" {
		return room
	}
	if len(s) > room {
		a.note = "The answer is longer than is shown and ends early."
		if s = cutText(s, room); s == "" {
			return 0
		}
	}
	a.parts = append(a.parts, task.TextPart(s))
	return room - len(s)
}

// addData adds the structured content, unless the texts say the same. A text that only repeats it as JSON, which
// servers send for older clients, is left out.
func (a *answer) addData(v any, room int) {
	if v == nil || a.saysResult(v) {
		return
	}
	b, err := json.Marshal(v)
	if err != nil {
		return
	}
	for i, p := range a.parts {
		if p.Text != "" && task.SameJSON([]byte(p.Text), b) {
			a.parts = append(a.parts[:i:i], a.parts[i+1:]...)
			room += len(p.Text)
			break
		}
	}
	if len(b) > room {
		a.note = "The answer is longer than is shown and ends early."
		return
	}
	a.parts = append(a.parts, task.Part{Data: b, MediaType: "application/json"})
}

// saysResult reports whether v is {"result": X}, in which the Python SDK wraps values that are no objects, and the
// texts of the answer say X: as a text, as JSON, or as one text for each item of a list.
func (a *answer) saysResult(v any) bool {
	wrapped, _ := v.(map[string]any)
	x, ok := wrapped["result"]
	if !ok || len(wrapped) != 1 || len(a.parts) == 0 {
		return false
	}
	items, isList := x.([]any)
	if len(a.parts) == 1 && saysValue(a.parts[0], x) {
		return true
	}
	if !isList || len(items) != len(a.parts) {
		return false
	}
	for i, item := range items {
		if !saysValue(a.parts[i], item) {
			return false
		}
	}
	return true
}

// saysValue reports whether a part is a text that says a value as it is or as JSON.
func saysValue(p task.Part, v any) bool {
	s, isText := v.(string)
	b, err := json.Marshal(v)
	return p.Text != "" && (isText && p.Text == s || err == nil && task.SameJSON([]byte(p.Text), b))
}

func (a *answer) addFile(b []byte, media, name string) {
	total := len(b)
	for _, f := range a.files {
		total += len(f.Raw)
	}
	if len(b) == 0 {
		return
	}
	if len(b) > maxFile || total > maxResponse {
		a.note = "A file of the answer is too large and was left out."
		return
	}
	kind, params, err := mime.ParseMediaType(media)
	if err != nil {
		kind, params = "application/octet-stream", nil
	}
	name = a2a.Line(name, 100)
	if name == "" || name == "." || name == "/" {
		name = "file" + fileExtension(kind)
	}
	a.files = append(a.files, task.Part{Raw: b, MediaType: mime.FormatMediaType(kind, params), Filename: name})
}

// fileExtension returns the extension for the media types of tools' answers, "" for others. The system's
// own table is not used, because it differs between machines.
func fileExtension(kind string) string {
	switch kind {
	case "image/png":
		return ".png"
	case "image/jpeg":
		return ".jpg"
	case "image/gif":
		return ".gif"
	case "image/webp":
		return ".webp"
	case "image/svg+xml":
		return ".svg"
	case "audio/wav", "audio/x-wav":
		return ".wav"
	case "audio/mpeg":
		return ".mp3"
	case "application/pdf":
		return ".pdf"
	case "application/json":
		return ".json"
	}
	return ""
}

// addLink keeps web links as such and adds others as text, because a page cannot open them. It returns
// the remaining room in bytes.
func (a *answer) addLink(c *sdk.ResourceLink, room int) int {
	u, err := url.Parse(c.URI)
	if err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && len(c.URI) <= 2048 &&
		len(c.URI) <= room {
		a.parts = append(a.parts, task.Part{URL: c.URI, MediaType: a2a.Line(c.MIMEType, 100),
			Filename: a2a.Line(c.Name, 100)})
		return room - len(c.URI)
	}
	name := c.Title
	if name == "" {
		name = c.Name
	}
	return a.addText(strings.TrimSpace(a2a.Line(name, 100)+" ("+a2a.Line(c.URI, 300)+")"), room)
}

// shownParts returns the answer's parts. For an answer of files alone it returns their names, because an
// answer must not be empty.
func (a *answer) shownParts() []task.Part {
	if len(a.parts) > 0 || len(a.files) == 0 {
		return a.parts
	}
	names := make([]string, len(a.files))
	for i, f := range a.files {
		names[i] = "[file " + f.Filename + "]"
	}
	return []task.Part{task.TextPart(strings.Join(names, "\n"))}
}

// cutText cuts s to at most n bytes at a character boundary.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

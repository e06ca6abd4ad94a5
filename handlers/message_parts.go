package handlers

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"strings"

	"agentsite/internal/chat"
	"agentsite/internal/task"
	"agentsite/templates"
)

// part adds one piece of content to what is shown.
func (d *Door) part(body *templates.SafeHTML, data *[]templates.DataPart, files *[]templates.FilePart, p task.Part) {
	switch {
	case p.URL != "":
		if _, ours := ownFile(p.URL); ours {
			*files = append(*files, filePart(p))
			return
		}
		*body += d.markup.Link(p.URL, p.Filename)
	case p.Data != nil:
		*data = append(*data, dataPart(p))
	case p.Raw != nil:
		name := cmp.Or(p.Filename, "file")
		*data = append(*data, templates.DataPart{Label: p.MediaType, Code: name + ", " + whole(int64(len(p.Raw))) + " bytes. It can be had through the API."})
	default:
		*body += d.markup.Message(p.Text)
	}
}

func dataPart(p task.Part) templates.DataPart {
	if call, ok := toolPart(p.Data); ok {
		return call
	}
	var pretty bytes.Buffer
	// Indenting deep data grows it by the square of its depth.
	if depth(p.Data) > maxDataDepth || json.Indent(&pretty, p.Data, "", "  ") != nil {
		pretty.Reset()
		pretty.Write(p.Data)
	}
	return templates.DataPart{Label: cmp.Or(p.MediaType, "application/json"), Code: pretty.String()}
}

// ownFile is the hash of the portal's own file that a URL names.
func ownFile(url string) (hash string, ok bool) {
	hash, ok = strings.CutPrefix(url, chat.FileURL(""))
	if b, err := hex.DecodeString(hash); !ok || err != nil || len(b) != 32 || strings.ToLower(hash) != hash {
		return "", false
	}
	return hash, true
}

// filePart is a file of the portal as pages show it.
func filePart(p task.Part) templates.FilePart {
	f := templates.FilePart{Name: chat.FileName(p.Filename), Href: p.URL, Type: p.MediaType}
	if n := partSize(p); n > 0 {
		f.Size = bytesText(n)
	}
	switch p.MediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		f.Preview = p.URL + "/preview"
	}
	return f
}

// partSize is how large a part says that its file is, 0 when it does not say.
func partSize(p task.Part) int64 {
	var about struct {
		Size int64 `json:"size"`
	}
	if len(p.Metadata) == 0 || json.Unmarshal(p.Metadata, &about) != nil || about.Size < 0 || about.Size > 1<<50 {
		return 0
	}
	return about.Size
}

// maxDataDepth is how deep data may nest to be shown indented.
const maxDataDepth = 32

// depth bounds from above how deep JSON nests; brackets in its texts count.
func depth(b []byte) int {
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

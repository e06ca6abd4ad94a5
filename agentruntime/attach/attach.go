// Package attach gives agents the files that a conversation holds, in the form
// each kind of agent can use: models get text as text and pictures as
// pictures, agents elsewhere small files as they are and an address of larger
// ones, which opens them for a while.
package attach

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"strings"
	"unicode/utf8"

	"agentsite/internal/a2a"
	"agentsite/internal/task"
)

// Bounds of what goes to a model with one call.
const (
	maxText         = 128 << 10 // of all text files
	maxPictures     = 4
	maxPictureBytes = 4 << 20
)

// MaxInline is the largest file that an agent elsewhere gets as it is, and
// maxInlineAll how much of them with one call.
const (
	MaxInline    = 1 << 20
	maxInlineAll = 4 << 20
)

func ours(p task.Part) bool { return strings.HasPrefix(p.URL, task.FilePath) }

func holds(parts []task.Part) bool {
	for _, p := range parts {
		if ours(p) {
			return true
		}
	}
	return false
}

// none is what stands for a file that cannot be given.
func none(p task.Part, why string) task.Part {
	return task.TextPart(fmt.Sprintf("[file %s%s]", a2a.Line(p.Filename, 200), why))
}

// ForModel returns a call whose files are text, and the pictures among them as
// data URLs in the order in which the text numbers them. The newest come
// first where there are too many.
func ForModel(ctx context.Context, call task.Call) (task.Call, []string) {
	found := holds(call.Parts)
	for _, t := range call.History {
		found = found || holds(t.Parts)
	}
	if !found {
		return call, nil
	}
	m := &toModel{ctx: ctx, files: call.Files, left: maxText}
	call.Parts = m.parts(call.Parts)
	history := make([]task.Turn, len(call.History))
	for i := len(history) - 1; i >= 0; i-- {
		history[i] = call.History[i]
		history[i].Parts = m.parts(call.History[i].Parts)
	}
	call.History = history
	return call, m.pictures
}

type toModel struct {
	ctx      context.Context
	files    task.Files
	left     int
	pictures []string
}

func (m *toModel) parts(in []task.Part) []task.Part {
	if !holds(in) {
		return in
	}
	out := make([]task.Part, len(in))
	for i, p := range in {
		out[i] = p
		if ours(p) {
			out[i] = m.part(p)
		}
	}
	return out
}

func (m *toModel) part(p task.Part) task.Part {
	if m.files == nil {
		return none(p, "")
	}
	f, r, err := m.files.Open(m.ctx, p.URL)
	if err != nil {
		return none(p, ": not there any more")
	}
	defer r.Close()
	kind, _, _ := mime.ParseMediaType(f.MediaType)
	switch {
	case kind == "image/png" || kind == "image/jpeg" || kind == "image/gif" || kind == "image/webp":
		if len(m.pictures) >= maxPictures || f.Size > maxPictureBytes {
			return none(p, ": a picture, not shown")
		}
		b, err := io.ReadAll(io.LimitReader(r, maxPictureBytes))
		if err != nil {
			return none(p, ": a picture, not shown")
		}
		m.pictures = append(m.pictures, "data:"+kind+";base64,"+base64.StdEncoding.EncodeToString(b))
		return task.TextPart(fmt.Sprintf("[picture %d: %s]", len(m.pictures), a2a.Line(p.Filename, 200)))
	case textual(kind):
		if m.left <= 0 {
			return none(p, ": left out")
		}
		b, err := io.ReadAll(io.LimitReader(r, int64(m.left)))
		if err != nil {
			return none(p, ": cannot be read")
		}
		m.left -= len(b)
		text := strings.ReplaceAll(strings.ToValidUTF8(string(b), ""), "\x00", "")
		whole := ""
		if int64(len(b)) < f.Size {
			whole = fmt.Sprintf(", the first %d of %d bytes", len(b), f.Size)
		}
		fence := "```"
		for strings.Contains(text, fence) {
			fence += "`"
		}
		return task.TextPart(fmt.Sprintf("[file %s%s]\n%s\n%s\n%s", a2a.Line(p.Filename, 200), whole, fence, strings.TrimSuffix(text, "\n"), fence))
	}
	return none(p, fmt.Sprintf(", %s, %d bytes", kind, f.Size))
}

func textual(kind string) bool {
	return strings.HasPrefix(kind, "text/") || kind == "application/json" || kind == "application/yaml" || kind == "application/x-ndjson" || kind == "application/xml"
}

// Elsewhere returns parts as an agent on another machine gets them: files of at
// most inline bytes as they are, larger ones by an address.
func Elsewhere(ctx context.Context, files task.Files, parts []task.Part, inline int64) []task.Part {
	if !holds(parts) {
		return parts
	}
	left := min(inline*4, maxInlineAll)
	out := make([]task.Part, len(parts))
	for i, p := range parts {
		switch {
		case !ours(p):
			out[i] = p
		case files == nil:
			out[i] = none(p, "")
		default:
			out[i] = elsewhere(ctx, files, p, min(inline, left))
			left -= int64(len(out[i].Raw))
		}
	}
	return out
}

func elsewhere(ctx context.Context, files task.Files, p task.Part, inline int64) task.Part {
	f, r, err := files.Open(ctx, p.URL)
	if err != nil {
		return none(p, ": not there any more")
	}
	defer r.Close()
	if f.Size <= inline {
		b, err := io.ReadAll(io.LimitReader(r, inline+1))
		if err == nil && int64(len(b)) == f.Size && len(b) > 0 {
			p.URL, p.Raw, p.MediaType = "", b, f.MediaType
			return p
		}
	}
	address, err := files.Address(ctx, p.URL)
	if err != nil || !utf8.ValidString(address) {
		return none(p, ": not there any more")
	}
	p.URL, p.MediaType = address, f.MediaType
	return p
}

// Package attach gives agents the files of a conversation, in the form that each kind of agent can use:
// models get text as text and pictures as pictures; remote agents get small files inline and a
// temporary address for larger ones.
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
	"agentsite/internal/textfile"
)

// Bounds of the files for a model in one call.
const (
	maxText         = 128 << 10 // bytes of all text files in one call
	maxPictures     = 4
	maxPictureBytes = 4 << 20
)

// MaxInline is the largest file in bytes that a remote agent gets inline, and maxInlineAll bounds the
// sum of them in one call.
const (
	MaxInline    = 1 << 20
	maxInlineAll = 4 << 20
)

func isLocalFile(p task.Part) bool { return strings.HasPrefix(p.URL, task.FilePath) }

func hasFiles(parts []task.Part) bool {
	for _, p := range parts {
		if isLocalFile(p) {
			return true
		}
	}
	return false
}

// missingFile returns the text in place of a file that cannot be given. why, such as ": not there any
// more", continues the text after the file's name; "" adds nothing.
func missingFile(p task.Part, why string) task.Part {
	return task.TextPart(fmt.Sprintf("[file %s%s]", a2a.Line(p.Filename, 200), why))
}

// ForModel returns a call with its files as text, and the pictures among them as data URLs in the order
// in which the text numbers them. If there are too many, the newest are kept.
func ForModel(ctx context.Context, call task.Call) (task.Call, []string) {
	found := hasFiles(call.Parts)
	for _, t := range call.History {
		found = found || hasFiles(t.Parts)
	}
	if !found {
		return call, nil
	}
	m := &toModel{ctx: ctx, files: call.Files, left: maxText}
	call.Parts = m.convertParts(call.Parts)
	history := make([]task.Turn, len(call.History))
	for i := len(history) - 1; i >= 0; i-- {
		history[i] = call.History[i]
		history[i].Parts = m.convertParts(call.History[i].Parts)
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

func (m *toModel) convertParts(in []task.Part) []task.Part {
	if !hasFiles(in) {
		return in
	}
	out := make([]task.Part, len(in))
	for i, p := range in {
		out[i] = p
		if isLocalFile(p) {
			out[i] = m.convertPart(p)
		}
	}
	return out
}

func (m *toModel) convertPart(p task.Part) task.Part {
	if m.files == nil {
		return missingFile(p, "")
	}
	f, r, err := m.files.Open(m.ctx, p.URL)
	if err != nil {
		return missingFile(p, ": not there any more")
	}
	defer r.Close()
	kind, _, _ := mime.ParseMediaType(f.MediaType)
	switch {
	case kind == "image/png" || kind == "image/jpeg" || kind == "image/gif" || kind == "image/webp":
		if len(m.pictures) >= maxPictures || f.Size > maxPictureBytes {
			return missingFile(p, ": a picture, not shown")
		}
		b, err := io.ReadAll(io.LimitReader(r, maxPictureBytes))
		if err != nil {
			return missingFile(p, ": a picture, not shown")
		}
		m.pictures = append(m.pictures, "data:"+kind+";base64,"+base64.StdEncoding.EncodeToString(b))
		return task.TextPart(fmt.Sprintf("[picture %d: %s]", len(m.pictures), a2a.Line(p.Filename, 200)))
	case isText(kind):
		if m.left <= 0 {
			return missingFile(p, ": left out")
		}
		b, err := io.ReadAll(io.LimitReader(r, int64(m.left)))
		if err != nil {
			return missingFile(p, ": cannot be read")
		}
		text, err := textfile.Decode(b, int64(len(b)) < f.Size)
		if err != nil {
			return missingFile(p, ": cannot be read, because its encoding is not known; save it as UTF-8")
		}
		m.left -= len(text)
		whole := ""
		if int64(len(b)) < f.Size {
			whole = fmt.Sprintf(", the first %d of %d bytes", len(b), f.Size)
		}
		fence := "```"
		for strings.Contains(text, fence) {
			fence += "`"
		}
		return task.TextPart(fmt.Sprintf("[file %s%s]\n%s\n%s\n%s", a2a.Line(p.Filename, 200), whole, fence,
			strings.TrimSuffix(text, "\n"), fence))
	}
	return missingFile(p, fmt.Sprintf(", %s, %d bytes", kind, f.Size))
}

func isText(kind string) bool {
	return strings.HasPrefix(kind, "text/") || kind == "application/json" || kind == "application/yaml" ||
		kind == "application/x-ndjson" || kind == "application/xml"
}

// ForRemote returns parts for an agent on another machine: files of at most inline bytes inline, larger
// ones by an address.
func ForRemote(ctx context.Context, files task.Files, parts []task.Part, inline int64) []task.Part {
	if !hasFiles(parts) {
		return parts
	}
	left := min(inline*4, maxInlineAll)
	out := make([]task.Part, len(parts))
	for i, p := range parts {
		switch {
		case !isLocalFile(p):
			out[i] = p
		case files == nil:
			out[i] = missingFile(p, "")
		default:
			out[i] = convertRemote(ctx, files, p, min(inline, left))
			left -= int64(len(out[i].Raw))
		}
	}
	return out
}

func convertRemote(ctx context.Context, files task.Files, p task.Part, inline int64) task.Part {
	f, r, err := files.Open(ctx, p.URL)
	if err != nil {
		return missingFile(p, ": not there any more")
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
		return missingFile(p, ": not there any more")
	}
	p.URL, p.MediaType = address, f.MediaType
	return p
}

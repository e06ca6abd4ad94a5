package chat

import (
	"bytes"
	"context"
	"encoding/hex"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// MaxRawBytes bounds a part that holds a file as it is; larger ones are sent
// on their own and referred to.
const MaxRawBytes = 1 << 20

// maxNameBytes bounds names of files.
const maxNameBytes = 200

// checkParts returns an error for invalid parts of a message.
func checkParts(actor ident.Actor, parts []task.Part) error {
	var c fault.Check
	c.Field(len(parts) > 0, "text", "say something")
	c.Field(len(parts) <= MaxParts, "parts", "use at most %d parts", MaxParts)
	limit := MaxTextBytes
	if actor.IsVisitor() {
		limit = MaxGuestTextBytes
	}
	size, words := 0, false
	for _, p := range parts {
		size += len(p.Text) + len(p.Data) + len(p.URL)
		set := 0
		for _, ok := range []bool{p.Text != "", p.Raw != nil, p.URL != "", p.Data != nil} {
			if ok {
				set++
			}
		}
		words = words || strings.TrimSpace(p.Text) != "" || p.Text == ""
		c.Field(set == 1, "parts", "each part holds exactly one of text, raw, url and data")
		c.Field(len(p.Raw) <= MaxRawBytes, "parts", "a file in a message has at most %d bytes; send larger ones on their own and refer to them", MaxRawBytes)
		c.Field(p.Raw == nil || len(p.Raw) > 0, "parts", "a file is empty")
		c.Field(len(p.MediaType) <= 200 && len(p.Filename) <= 300 && len(p.Metadata) <= 4096, "parts", "a part's names are too long")
		c.Field(utf8.ValidString(p.Text) && !strings.ContainsRune(p.Text, 0), "text", "use UTF-8 text without NUL")
		c.Field(p.URL == "" || isAddressable(p.URL), "parts", "a url is either that of a file that was sent here, %s and its hash, or begins with https:// or http://", task.FilePath)
	}
	c.Field(size <= limit, "text", "is %d bytes long; use at most %d", size, limit)
	c.Field(words || len(parts) == 0, "text", "say something")
	return c.Err()
}

// isAddressable reports whether a part may hold the URL.
func isAddressable(s string) bool {
	if strings.HasPrefix(s, "/") {
		_, ok := fileHash(s)
		return ok
	}
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && len(s) <= 2000
}

// fileHash is the hash of the file of this portal that a part's URL names.
func fileHash(url string) (hash string, ok bool) {
	hash, ok = strings.CutPrefix(url, task.FilePath)
	return hash, ok && validHash(hash)
}

func validHash(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 32 && strings.ToLower(s) == s
}

// FileName makes a name that may be shown and stored of whatever a sender
// calls a file: without folders and without characters that do not show.
func FileName(name string) string {
	name = strings.ToValidUTF8(name, "")
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) && r != ' ' {
			return -1
		}
		return r
	}, name)
	name = strings.Trim(name, ". ")
	if len(name) > maxNameBytes { // the file extension shows the type
		end := ""
		if i := strings.LastIndexByte(name, '.'); i > 0 && len(name)-i <= 16 {
			end = name[i:]
		}
		name = strings.ToValidUTF8(name[:maxNameBytes-len(end)], "") + end
	}
	if name == "" {
		return "file"
	}
	return name
}

// withFiles checks the files of this portal that parts name, stores the files that parts carry,
// and returns the parts in their stored form with the hashes of their files.
func (s *Service) withFiles(ctx context.Context, actor ident.Actor, parts []task.Part) (out []task.Part, files []string, err error) {
	out = parts
	copied := false
	for i, p := range parts {
		if hash, ours := fileHash(p.URL); p.Raw != nil || ours {
			var f File
			if p.Raw != nil {
				f, err = s.Files.storeFile(ctx, memberKind(actor), actor.ID, fileDraft(p), fileBounds(actor))
			} else if f, err = s.store.FileFor(ctx, hash, memberKind(actor), actor.ID); fault.Is(err, fault.NotFound) {
				err = asField(fault.New(fault.NotFound, "There is no file %.80q of yours; send it first.", p.URL), "parts")
			}
			if err != nil {
				return nil, nil, err
			}
			if !copied {
				out, copied = append([]task.Part(nil), parts...), true
			}
			out[i] = filePart(f, p)
			files = append(files, f.Hash)
		}
	}
	return out, files, nil
}

func fileDraft(p task.Part) FileDraft {
	return FileDraft{Name: p.Filename, MediaType: p.MediaType, Content: bytes.NewReader(p.Raw)}
}

// filePart is a part that refers to a file; p has its name.
func filePart(f File, p task.Part) task.Part {
	return task.Part{URL: FileURL(f.Hash), Filename: FileName(p.Filename), MediaType: f.MediaType, Metadata: p.Metadata}
}

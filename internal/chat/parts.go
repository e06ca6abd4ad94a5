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

// MaxRawBytes is the largest file content in a part; larger files are uploaded first and referred to by URL.
const MaxRawBytes = 1 << 20

// maxNameBytes is the longest file name.
const maxNameBytes = 200

// checkParts returns an Invalid fault for parts that are empty, too large or inconsistent.
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

// isAddressable reports whether a part may have this URL: a file of this portal or an http(s) URL of at
// most 2000 bytes.
func isAddressable(s string) bool {
	if strings.HasPrefix(s, "/") {
		_, ok := fileHash(s)
		return ok
	}
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && len(s) <= 2000
}

// fileHash returns the hash in the URL of a file of this portal; ok is false for all other URLs.
func fileHash(url string) (hash string, ok bool) {
	hash, ok = strings.CutPrefix(url, task.FilePath)
	return hash, ok && validHash(hash)
}

func validHash(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 32 && strings.ToLower(s) == s
}

// FileName returns a name that is safe to show and store: the last path element, without unprintable
// characters, at most maxNameBytes long, "file" if nothing remains.
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
	if len(name) > maxNameBytes { // The extension is kept, because it selects the media type.
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

// withFiles prepares parts for storage: it checks that the actor may use the files of this portal they refer to, and
// uploads the files they contain. It returns the stored parts and the hashes of all their files.
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

// filePart returns a part that refers to the stored file f; name and metadata are taken from p.
func filePart(f File, p task.Part) task.Part {
	return task.Part{URL: FileURL(f.Hash), Filename: FileName(p.Filename), MediaType: f.MediaType, Metadata: p.Metadata}
}

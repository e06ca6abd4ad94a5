package library

import (
	"context"
	"errors"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/textfile"
)

// maxSearched are the bytes at the begin of a text that a search looks through.
const maxSearched = 128 << 10

// foldText returns a text in the form in which searches compare: small letters, one space between words.
func foldText(s string) string {
	return strings.Join(strings.Fields(cases.Fold().String(norm.NFKC.String(s))), " ")
}

// cutText cuts a folded text, which can be longer than the text, to maxSearched bytes.
func cutText(s string) string {
	if len(s) <= maxSearched {
		return s
	}
	end := maxSearched
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// isText reports whether a media type may be that of text. The content decides.
func isText(mediaType string) bool {
	kind, _, _ := strings.Cut(mediaType, ";")
	return strings.HasPrefix(kind, "text/") || kind == "application/json" || kind == "application/yaml" ||
		kind == "application/x-ndjson"
}

// wordsOf returns the words by which a search finds a version: its path and the first part of its text.
func (s *Service) wordsOf(ctx context.Context, owner ident.Actor, v Version) (string, error) {
	words := foldText(v.Path)
	var text string
	var err error
	switch {
	case IsPDF(v.MediaType):
		text, err = s.documentText(ctx, owner, v)
	case isText(v.MediaType):
		text, _, err = s.readText(ctx, owner, v.Hash, maxSearched)
	}
	if errors.Is(err, textfile.ErrEncoding) || text == "" && err == nil {
		return words, nil
	}
	return words + "\n" + cutText(foldText(text)), err
}

// IsPDF reports whether a media type is that of PDF files.
func IsPDF(mediaType string) bool {
	kind, _, _ := strings.Cut(mediaType, ";")
	return kind == "application/pdf"
}

// documentText returns the text of a PDF file, "" if it has none that can be read.
func (s *Service) documentText(ctx context.Context, owner ident.Actor, v Version) (string, error) {
	if s.documents == nil {
		return "", nil
	}
	c, r, err := s.contents.OpenContent(ctx, owner, v.Hash)
	if err != nil {
		return "", err
	}
	defer r.Close()
	return s.documents.DocumentText(ctx, owner.ID, r, c.Size)
}

// ReadText returns a version of a file as text to read, the newest for number 0: of a PDF file the text of its pages,
// of others as Text does. ErrNoText or ErrLongText for contents without such a text.
func (s *Service) ReadText(ctx context.Context, actor ident.Actor, path string, number int) (string, Version, error) {
	v, r, err := s.Open(ctx, actor, path, number)
	if err != nil {
		return "", v, err
	}
	r.Close()
	if !IsPDF(v.MediaType) {
		return s.Text(ctx, actor, path, v.Number)
	}
	text, err := s.documentText(ctx, ownerOf(actor), v)
	if err == nil && text == "" {
		err = ErrNoText
	}
	return text, v, err
}

// readText returns the first bytes of a content as text; cut is true if there is more.
func (s *Service) readText(ctx context.Context, owner ident.Actor, hash string, most int64) (text string, cut bool,
	err error) {
	_, r, err := s.contents.OpenContent(ctx, owner, hash)
	if err != nil {
		return "", false, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return "", false, err
	}
	cut = int64(len(b)) > most
	text, err = textfile.Decode(b[:min(int64(len(b)), most)], cut)
	return text, cut, err
}

// Text returns a version of a file as text, the newest for number 0. ErrNoText or ErrLongText for contents
// that cannot be edited as text.
func (s *Service) Text(ctx context.Context, actor ident.Actor, path string, number int) (string, Version, error) {
	v, r, err := s.Open(ctx, actor, path, number)
	if err != nil {
		return "", v, err
	}
	r.Close()
	text, cut, err := s.readText(ctx, ownerOf(actor), v.Hash, MaxText)
	switch {
	case errors.Is(err, textfile.ErrEncoding):
		return "", v, ErrNoText
	case err == nil && cut:
		return "", v, ErrLongText
	}
	return text, v, err
}

// ErrNoText is the fault of a file that is no text, ErrLongText that of a text that is too long to edit.
var (
	ErrNoText   = fault.New(fault.Conflict, "The file is no text.")
	ErrLongText = fault.New(fault.Conflict, "The text is longer than %d KiB. Load the file instead.", MaxText>>10)
)

// excerptOf returns the text around the first word that is found after the line with the path.
func excerptOf(text string, words []string) string {
	const around = 80
	_, body, _ := strings.Cut(text, "\n")
	for _, w := range words {
		at := strings.Index(body, w)
		if at < 0 {
			continue
		}
		from, to := max(at-around, 0), min(at+len(w)+around, len(body))
		for from > 0 && !unicode.IsSpace(rune(body[from-1])) && at-from < 2*around {
			from--
		}
		return strings.ToValidUTF8(strings.TrimSpace(body[from:to]), "")
	}
	return ""
}

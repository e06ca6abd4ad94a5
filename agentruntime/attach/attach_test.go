package attach

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
)

func put(s agenttest.Shelf, kind string, body []byte) task.Part {
	return s.Put(fmt.Sprintf("a\u202e%d", len(s)), kind, body)
}

func TestForModel_NothingToDoChangesNothing(t *testing.T) {
	t.Parallel()
	call := task.Call{Parts: []task.Part{task.TextPart("hi"), {URL: "https://example.org/x.png"}}, History: []task.Turn{{Parts: []task.Part{{Data: []byte(`{}`)}}}}}
	got, pictures := ForModel(t.Context(), call)
	if &got.Parts[0] != &call.Parts[0] || &got.History[0] != &call.History[0] || pictures != nil {
		t.Error("a call without files is changed")
	}
}

func TestForModel_TextAndPictures(t *testing.T) {
	t.Parallel()
	s := agenttest.Shelf{}
	note, pic, zip := put(s, "text/markdown", []byte("# hi\n```\ncode\n```\n")), put(s, "image/png", []byte("PNG")), put(s, "application/zip", []byte("PK"))
	old := put(s, "image/jpeg", []byte("JPG"))
	call := task.Call{Files: s, Parts: []task.Part{task.TextPart("look"), note, pic, zip, {URL: task.FilePath + "gone", Filename: "gone"}},
		History: []task.Turn{{Parts: []task.Part{old}}}}
	got, pictures := ForModel(t.Context(), call)
	want := "look\n\n[file a0]\n````\n# hi\n```\ncode\n```\n````\n\n[picture 1: a1]\n\n[file a2, application/zip, 2 bytes]\n\n[file gone: not there any more]"
	if s := task.PlainText(got.Parts); s != want {
		t.Errorf("%q", s)
	}
	if s := task.PlainText(got.History[0].Parts); s != "[picture 2: a3]" {
		t.Errorf("%q", s)
	}
	if len(pictures) != 2 || pictures[0] != "data:image/png;base64,"+base64.StdEncoding.EncodeToString([]byte("PNG")) || !strings.HasPrefix(pictures[1], "data:image/jpeg;") {
		t.Error(pictures)
	}
	if task.PlainText(call.Parts) == want {
		t.Error("the call itself was changed")
	}
	call.Files = nil
	if got, pictures = ForModel(t.Context(), call); len(pictures) != 0 || strings.Contains(task.PlainText(got.Parts), "hi\n") {
		t.Error("without files")
	}
}

func TestForModel_Bounded(t *testing.T) {
	t.Parallel()
	s := agenttest.Shelf{}
	call := task.Call{Files: s}
	for range 10 {
		call.Parts = append(call.Parts, put(s, "text/plain", []byte(strings.Repeat("é", 20<<10))), put(s, "image/png", []byte("x")))
	}
	call.Parts = append(call.Parts, put(s, "image/png", make([]byte, maxPictureBytes+1)))
	got, pictures := ForModel(t.Context(), call)
	if n := len(task.PlainText(got.Parts)); n > maxText+4<<10 || len(pictures) != maxPictures {
		t.Errorf("%d bytes, %d pictures", n, len(pictures))
	}
	if !strings.Contains(task.PlainText(got.Parts), "the first ") {
		t.Error("it does not say that a file was cut")
	}
}

func TestElsewhere(t *testing.T) {
	t.Parallel()
	s := agenttest.Shelf{}
	small, large := put(s, "text/plain", []byte("small")), put(s, "image/png", make([]byte, 100))
	parts := []task.Part{task.TextPart("hi"), small, large, {URL: "https://example.org"}, {URL: task.FilePath + "gone", Filename: "g"}}
	got := ForRemote(t.Context(), s, parts, 50)
	if string(got[1].Raw) != "small" || got[1].URL != "" || got[2].Raw != nil || !strings.HasPrefix(got[2].URL, "https://home.example/files/1?key=") || got[3].URL != "https://example.org" || !strings.HasPrefix(got[4].Text, "[file g") {
		t.Errorf("%+v", got)
	}
	for _, p := range append(ForRemote(t.Context(), s, parts, 0), ForRemote(t.Context(), nil, parts, 50)...) {
		if strings.HasPrefix(p.URL, "/") || p.Raw != nil {
			t.Errorf("%+v", p)
		}
	}
	parts = nil
	for range 10 {
		parts = append(parts, put(s, "text/plain", make([]byte, 40)))
	}
	raw := 0
	for _, p := range ForRemote(t.Context(), s, parts, 50) {
		raw += len(p.Raw)
	}
	if raw > 200 {
		t.Errorf("%d bytes as they are", raw)
	}
	if plain := []task.Part{task.TextPart("x")}; &ForRemote(t.Context(), s, plain, 50)[0] != &plain[0] {
		t.Error("parts without files are changed")
	}
}

func TestForModel_DecodesOtherEncodings(t *testing.T) {
	t.Parallel()
	s := agenttest.Shelf{}
	latin := strings.Repeat("Gr\xfc\xdfe aus K\xf6ln, die Stra\xdfe ist gesperrt.\n", 5)
	call := task.Call{Files: s, Parts: []task.Part{put(s, "text/plain", []byte(latin)),
		put(s, "text/plain", []byte("\xff\xfeh\x00i\x00")), put(s, "text/plain", []byte("secret\x00\x01\xff part"))}}
	got, _ := ForModel(t.Context(), call)
	text := task.PlainText(got.Parts)
	if !strings.Contains(text, "Grüße aus Köln, die Straße") || !strings.Contains(text, "```\nhi\n```") ||
		strings.Contains(text, "secret") || !strings.Contains(text, "cannot be read") {
		t.Errorf("%s", text)
	}
}

package chat_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"io"
	"net/url"
	"path"
	"strings"
	"testing"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
)

func drawing(w, h int) []byte {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for x := range w {
		m.Set(x, x%h, color.NRGBA{uint8(x), 200, 0, 255})
	}
	var b bytes.Buffer
	png.Encode(&b, m)
	return b.Bytes()
}

func (w *world) put(who ident.Actor, name string, content []byte) chat.File {
	w.t.Helper()
	f, err := w.Files.Put(w.t.Context(), who, chat.FileDraft{Name: name, Content: bytes.NewReader(content)})
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

// with is a draft of a text and files.
func (w *world) with(s string, files ...chat.File) chat.Draft {
	d := w.draft(s)
	for _, f := range files {
		d.Parts = append(d.Parts, task.Part{URL: chat.FileURL(f.Hash), Filename: "../a\u202e.txt", MediaType: "text/html"})
	}
	return d
}

func checkRead(r io.ReadCloser) string {
	defer r.Close()
	b, _ := io.ReadAll(r)
	return string(b)
}

func TestPutFile_TellsWhatItIsByItsContent(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, c := range []struct{ name, said, content, want string }{
		{"a.png", "", string(drawing(2, 2)), "image/png"},
		{"a.txt", "image/png", "hello", "text/plain"},
		{"a.md", "", "# hello", "text/markdown"},
		{"a.csv", "", "a,b", "text/csv"},
		{"x", "application/json", `{"a":1}`, "application/json"},
		{"a.png", "image/png", "<html><script>1</script>", "text/html"},
		{"a.svg", "image/svg+xml", `<svg xmlns="http://www.w3.org/2000/svg" onload="x()"/>`, "text/plain"},
		{"a.html", "text/html", "no tags", "text/plain"},
		{"a.exe", "", "MZ\x00\x01", "application/octet-stream"},
		{"a.docx", "", "PK\x03\x04xx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
		{"a.pdf", "", "%PDF-1.7", "application/pdf"},
	} {
		f, err := w.Files.Put(t.Context(), w.ada, chat.FileDraft{Name: c.name, MediaType: c.said, Content: strings.NewReader(c.content)})
		if err != nil || f.MediaType != c.want || f.Size != int64(len(c.content)) {
			t.Errorf("%s %.20q: %+v %v, want %s", c.name, c.content, f, err, c.want)
		}
	}
	_, err := w.Files.Put(t.Context(), w.ada, chat.FileDraft{Content: strings.NewReader("")})
	kind(t, "nothing", err, fault.Invalid)
	g := guest()
	_, err = w.Files.Put(t.Context(), g, chat.FileDraft{Content: io.LimitReader(zeros{}, chat.MaxGuestFileBytes+1)})
	kind(t, "a guest's large one", err, fault.Invalid)
	for i := range 5 {
		_, err = w.Files.Put(t.Context(), g, chat.FileDraft{Content: io.MultiReader(strings.NewReader(string(rune('a'+i))), io.LimitReader(zeros{}, chat.MaxGuestFileBytes-1))})
	}
	kind(t, "more than a guest's quota", err, fault.RateLimited)
	for i := range 10 { // refused, it does not fill the disk either
		_, err = w.Files.Put(t.Context(), g, chat.FileDraft{Content: io.MultiReader(strings.NewReader(string(rune('k'+i))), io.LimitReader(zeros{}, chat.MaxGuestFileBytes-1))})
	}
	if err == nil || !strings.Contains(err.Error(), "today") {
		t.Errorf("a guest who is over the quota goes on sending: %v", err)
	}
	_, err = w.Files.Put(t.Context(), ident.Actor{}, chat.FileDraft{Content: strings.NewReader("x")})
	kind(t, "nobody", err, fault.Unauthenticated)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestFiles_AreReadByWhoReadsAMessageWithThem(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "bob")
	f := w.put(w.ada, "a.txt", []byte("hello"))
	open := func(who ident.Actor) error {
		got, r, err := w.Files.Open(t.Context(), who, f.Hash)
		if err == nil {
			if s := checkRead(r); s != "hello" || got.MediaType != "text/plain" {
				t.Errorf("%q %+v", s, got)
			}
		}
		return err
	}
	kind(t, "who sent it", open(w.ada), "")
	kind(t, "who may not yet", open(w.bob), fault.NotFound)
	_, err := w.Post(t.Context(), w.bob, room, w.with("look what I have", f))
	kind(t, "a file of somebody else", err, fault.NotFound)
	m := w.post(w.ada, room, w.with("look", f)).Message
	if p := m.Parts[1]; p.URL != chat.FileURL(f.Hash) || p.Filename != "a.txt" || p.MediaType != "text/plain" {
		t.Errorf("%+v", p)
	}
	kind(t, "a member", open(w.bob), "")
	kind(t, "a stranger", open(w.eve), fault.NotFound)
	other := w.room(w.bob, "eve")
	w.post(w.bob, other, w.with("passed on", f)) // who can read it may send it
	kind(t, "who got it from a member", open(w.eve), "")
	for _, bad := range []string{"/files/x", "/account", "//evil.example/x", "javascript:alert(1)", "data:text/html,x", "files/" + f.Hash, chat.FileURL(strings.ToUpper(f.Hash)), chat.FileURL(f.Hash) + "/../x"} {
		d := w.draft("x")
		d.Parts = append(d.Parts, task.Part{URL: bad})
		_, err := w.Post(t.Context(), w.ada, room, d)
		kind(t, bad, err, fault.Invalid)
	}
	d := w.draft("x")
	d.Parts = append(d.Parts, task.Part{URL: "https://example.org/a.png"})
	w.post(w.ada, room, d)
	_, err = w.DeleteMessage(t.Context(), w.ada, room, m.Seq)
	kind(t, "take away", err, "")
	if err := w.Remove(t.Context(), w.bob, other, "bob"); err != nil {
		t.Fatal(err)
	}
	kind(t, "who sees no message with it any more", open(w.bob), fault.NotFound)
	storetest.Sound(t, w.db)
}

func TestPost_KeepsRawPartsAsFiles(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada)
	d := w.draft("with bytes")
	d.Parts = append(d.Parts, task.Part{Raw: []byte("some bytes"), Filename: "a/b.txt"})
	m := w.post(w.ada, room, d).Message
	hash := path.Base(m.Parts[1].URL)
	if m.Parts[1].Raw != nil || m.Parts[1].Filename != "b.txt" {
		t.Fatalf("%+v", m.Parts[1])
	}
	_, r, err := w.Files.Open(t.Context(), w.ada, hash)
	if err != nil || checkRead(r) != "some bytes" {
		t.Error(err)
	}
	d = w.draft("x")
	d.Parts = append(d.Parts, task.Part{Raw: make([]byte, chat.MaxRawBytes+1)})
	_, err = w.Post(t.Context(), w.ada, room, d)
	kind(t, "more than 1 MiB", err, fault.Invalid)
	d.Parts[1].Raw = []byte{}
	_, err = w.Post(t.Context(), w.ada, room, d)
	kind(t, "nothing", err, fault.Invalid)
}

func TestFinish_KeepsWhatAgentsSendAsFiles(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc", "bob")
	k := w.say(w.ada, room, "@calc draw").Tasks[0]
	k.Artifacts = []task.Artifact{{ID: "a", Parts: []task.Part{{Raw: []byte("in an artifact"), Filename: "x.txt"}, {URL: "/account"}}}}
	r := task.Done("here")
	r.Parts = append(r.Parts, task.Part{Raw: drawing(3, 3), Filename: "p.png"})
	if err := w.Finish(t.Context(), k, r); err != nil {
		t.Fatal(err)
	}
	m := w.last(room)
	if m.Parts[1].MediaType != "image/png" || m.Parts[1].Raw != nil {
		t.Errorf("%+v", m.Parts[1])
	}
	if len(m.Parts) != 3 || m.Parts[2].Filename != "x.txt" || m.Parts[2].Raw != nil { // whoever reads the answer sees it
		t.Errorf("%+v", m.Parts)
	}
	got := w.task(k.ID)
	if len(got.Artifacts) != 1 || len(got.Artifacts[0].Parts) != 1 || got.Artifacts[0].Parts[0].Raw != nil {
		t.Fatalf("%+v", got.Artifacts)
	}
	_, r2, err := w.Files.Open(t.Context(), w.bob, path.Base(got.Artifacts[0].Parts[0].URL))
	if err != nil || checkRead(r2) != "in an artifact" {
		t.Error("a member reads the artifact:", err)
	}
	// What is too much is left out with a line about it.
	k = w.say(w.ada, room, "@calc draw").Tasks[0]
	r = task.Result{State: task.Completed, Parts: []task.Part{task.TextPart("many")}}
	for i := range 22 {
		r.Parts = append(r.Parts, task.Part{Raw: []byte{'x', byte(i)}, Filename: "n"})
	}
	if err := w.Finish(t.Context(), k, r); err != nil {
		t.Fatal(err)
	}
	list := w.messages(room)
	note, m := list[len(list)-1], list[len(list)-2]
	if len(m.Parts) != 21 || note.Kind != chat.Event || !strings.HasPrefix(task.PlainText(note.Parts), "Not kept: n, n.") {
		t.Errorf("%d parts, %+v", len(m.Parts), note)
	}
}

func TestPreview(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "bob")
	f := w.put(w.ada, "a.png", drawing(1280, 320))
	for range 2 {
		b, err := w.Files.Preview(t.Context(), w.ada, f.Hash)
		if err != nil {
			t.Fatal(err)
		}
		c, err := png.DecodeConfig(bytes.NewReader(b))
		if err != nil || c.Width != 640 || c.Height != 160 {
			t.Errorf("%+v %v", c, err)
		}
	}
	_, err := w.Files.Preview(t.Context(), w.bob, f.Hash)
	kind(t, "drawn already, for somebody else", err, fault.NotFound)
	w.post(w.ada, room, w.with("look", f))
	_, err = w.Files.Preview(t.Context(), w.bob, f.Hash)
	kind(t, "a member", err, "")
	for what, content := range map[string][]byte{"text": []byte("hello"), "half a picture": drawing(100, 100)[:80], "too many pixels": append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x01\x00\x00\x00\x01\x00\x00\x08\x06\x00\x00\x00"), make([]byte, 40)...)} {
		f := w.put(w.ada, "a.png", content)
		for range 2 {
			_, err := w.Files.Preview(t.Context(), w.ada, f.Hash)
			kind(t, what, err, fault.NotFound)
		}
	}
}

func TestTaskFiles_OpensWhatTheAskerSees(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc", "guide")
	early := w.put(w.ada, "early.txt", []byte("early"))
	w.post(w.ada, room, w.with("secret", early))
	w.set(room, chat.Change{Past: ptr(chat.PastNothing)})
	if _, err := w.Invite(t.Context(), w.ada, room, "bob"); err != nil {
		t.Fatal(err)
	}
	now, later := w.put(w.bob, "now.txt", []byte("now")), w.put(w.bob, "later.txt", []byte("later"))
	k := w.post(w.bob, room, w.with("@calc read this", now)).Tasks[0]
	w.post(w.bob, room, w.with("one more", later))
	files := w.Files.ForTask(k)
	f, r, err := files.Open(t.Context(), chat.FileURL(now.Hash))
	if err != nil || checkRead(r) != "now" || f.Size != 3 {
		t.Fatal(f, err)
	}
	for what, f := range map[string]chat.File{"before the asker came": early, "after the question": later} {
		_, _, err := files.Open(t.Context(), chat.FileURL(f.Hash))
		kind(t, what, err, fault.NotFound)
		_, err = files.Address(t.Context(), chat.FileURL(f.Hash))
		kind(t, what, err, fault.NotFound)
	}
	address, err := files.Address(t.Context(), chat.FileURL(now.Hash))
	if err != nil || !strings.HasPrefix(address, "https://home.example/files/"+now.Hash+"?key=") {
		t.Fatal(address, err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	key := u.Query().Get(chat.FileKeyParam)
	by := func(hash, key string) error {
		_, r, err := w.Files.OpenByKey(t.Context(), hash, key)
		if err == nil && checkRead(r) != "now" {
			t.Error("another file")
		}
		return err
	}
	kind(t, "the key", by(now.Hash, key), "")
	kind(t, "another file", by(early.Hash, key), fault.NotFound)
	i := strings.IndexByte(key, '.')
	for what, bad := range map[string]string{"longer": "9" + key, "no key": "", "cut": key[:len(key)-1], "a dot": ".", "other": key[:i+1] + strings.Repeat(".", 3) + key[i:], "large": strings.Repeat("x", 1<<20)} {
		kind(t, what, by(now.Hash, bad), fault.NotFound)
	}
	other := chat.New(w.db, w.book, w.hands, chat.Config{})
	_, _, err = other.Files.OpenByKey(t.Context(), now.Hash, key)
	kind(t, "of another portal", err, fault.NotFound)
	if _, err := w.DeleteMessage(t.Context(), w.bob, room, k.MessageSeq); err != nil {
		t.Fatal(err)
	}
	kind(t, "once the message is taken away", by(now.Hash, key), fault.NotFound)
}

func TestEdit_KeepsItsFiles(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "bob")
	one, two, bobs := w.put(w.ada, "1.txt", []byte("1")), w.put(w.ada, "2.txt", []byte("2")), w.put(w.bob, "b.txt", []byte("b"))
	m := w.post(w.ada, room, w.with("look", one)).Message
	m, err := w.Edit(t.Context(), w.ada, room, m.Seq, w.with("look here", one, two).Parts)
	if err != nil || len(m.Parts) != 3 || m.Parts[1].Filename != "a.txt" {
		t.Fatalf("%+v %v", m, err)
	}
	if _, _, err := w.Files.Open(t.Context(), w.bob, two.Hash); err != nil {
		t.Error("a file of an edit:", err)
	}
	_, err = w.Edit(t.Context(), w.ada, room, m.Seq, w.with("look here", bobs).Parts)
	kind(t, "somebody else's file", err, fault.NotFound)
	storetest.Sound(t, w.db)
}

package api_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"mime/multipart"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"agentsite/internal/chat"
	"agentsite/internal/task"
	"agentsite/internal/testing/sitetest"
	"agentsite/internal/testing/storetest"
)

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func (s *apiSite) upload(b *sitetest.Browser, name, content string) (url string) {
	s.T.Helper()
	return s.must(b, http.MethodPost, "/files?name="+name, content, http.StatusCreated)["url"].(string)
}

func TestFiles_AreSavedNeverShown(t *testing.T) {
	s := newAPISite(t)
	ann := s.Person("ann")
	const page = "<html><script>alert(1)</script>"
	url := s.upload(ann, "evil.html", page)
	w := s.call(ann, "", http.MethodGet, url+"?name=../a%22b%0d%0aX-Evil:1.html", nil)
	h := w.Header()
	if w.Code != http.StatusOK || w.Body.String() != page || h.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment; filename=") ||
		!strings.Contains(h.Get("Content-Security-Policy"), "sandbox") || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Evil") != "" || strings.Contains(h.Get("Content-Disposition"), "..") {
		t.Errorf("%d %v", w.Code, h)
	}
	tag := h.Get("ETag")
	if w := s.call(ann, "", http.MethodGet, url, nil, header("If-None-Match", tag)); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("the same again: %d", w.Code)
	}
	w = s.call(ann, "", http.MethodGet, url, nil, header("Range", "bytes=1-4"))
	if w.Code != http.StatusPartialContent || w.Body.String() != "html" || w.Header().Get("Content-Range") != "bytes 1-4/31" {
		t.Errorf("a range: %d %q %v", w.Code, w.Body, w.Header())
	}
	if w := s.call(ann, "", http.MethodGet, url, nil, header("Range", "bytes=99-")); w.Code != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("a range behind the end: %d", w.Code)
	}
	// Whether somebody else has it is nothing to find out.
	bob := s.Person("bob")
	s.Acquaint(ann, bob)
	for _, path := range []string{url, chat.FileURL(strings.Repeat("0", 64)), chat.FileURL("x"), chat.FileURL(strings.ToUpper(url[len("/files/"):]))} {
		if w := s.call(bob, "", http.MethodGet, "/api/v1"+path, nil, header("If-None-Match", tag)); w.Code != http.StatusNotFound {
			t.Errorf("%s as a stranger: %d", path, w.Code)
		}
	}
	// The right ends with the conversation.
	id := s.open(ann, "bob")
	s.must(ann, http.MethodPost, "/conversations/"+id+"/messages", map[string]any{"client_id": "1", "parts": []task.Part{{URL: url, Filename: "evil.html"}}}, http.StatusCreated)
	if w := s.call(bob, "", http.MethodGet, url, nil); w.Code != http.StatusOK {
		t.Errorf("a member: %d", w.Code)
	}
	s.must(ann, http.MethodDelete, "/conversations/"+id+"/members/bob", nil, http.StatusNoContent)
	if w := s.call(bob, "", http.MethodGet, url, nil, header("If-None-Match", tag)); w.Code != http.StatusNotFound {
		t.Errorf("after he was removed: %d", w.Code)
	}
}

func TestFiles_ComeRawOrAsAForm(t *testing.T) {
	s := newAPISite(t)
	ann := s.Person("ann")
	sum := sha256.Sum256([]byte("a,b\n"))
	want := hex.EncodeToString(sum[:])
	f := s.must(ann, http.MethodPost, "/files?name=t%C3%A4ble.csv", "a,b\n", http.StatusCreated)
	if f["hash"] != want || f["size"] != float64(4) || f["media_type"] != "text/csv" || f["url"] != "/files/"+want || f["filename"] != "täble.csv" {
		t.Errorf("%v", f)
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	form.WriteField("other", "x")
	part, _ := form.CreateFormFile("file", `C:\dir\table.csv`)
	io.WriteString(part, "a,b\n")
	form.Close()
	w := s.call(ann, "", http.MethodPost, "/api/v1/files", &body, header("Content-Type", form.FormDataContentType()))
	if json.Unmarshal(w.Body.Bytes(), &f); w.Code != http.StatusCreated || f["hash"] != want || f["filename"] != "table.csv" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for name, send := range map[string]func() int{
		"empty": func() int { return s.call(ann, "", http.MethodPost, "/api/v1/files", "").Code },
		"no file": func() int {
			return s.call(ann, "", http.MethodPost, "/api/v1/files", "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n--x--\r\n", header("Content-Type", "multipart/form-data; boundary=x")).Code
		},
		"half a form": func() int {
			return s.call(ann, "", http.MethodPost, "/api/v1/files", "--x\r\nContent-Disposition: form-data; name=\"a\"; filename=\"b\"\r\n\r\nc", header("Content-Type", "multipart/form-data; boundary=x")).Code
		},
		"no boundary": func() int {
			return s.call(ann, "", http.MethodPost, "/api/v1/files", "x", header("Content-Type", "multipart/form-data")).Code
		},
		"many parts": func() int {
			return s.call(ann, "", http.MethodPost, "/api/v1/files", strings.Repeat("--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n", 100)+"--x--\r\n", header("Content-Type", "multipart/form-data; boundary=x")).Code
		},
	} {
		if code := send(); code != http.StatusBadRequest {
			t.Errorf("%s: %d", name, code)
		}
	}
}

// zeros is a body of n bytes that counts what was read of it.
type zeros struct{ left, read int64 }

func (z *zeros) Read(b []byte) (int, error) {
	n := min(int64(len(b)), z.left)
	clear(b[:n])
	z.left, z.read = z.left-n, z.read+n
	if z.left == 0 {
		return int(n), io.EOF
	}
	return int(n), nil
}

func TestFiles_AreBoundedAndNotHeldInMemory(t *testing.T) {
	s := newAPISite(t)
	ann := s.Person("ann")
	body := &zeros{left: chat.MaxFileBytes}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if w := s.call(ann, "", http.MethodPost, "/api/v1/files", body); w.Code != http.StatusCreated {
		t.Fatalf("the largest: %d %s", w.Code, w.Body)
	}
	most := uint64(16 << 20)
	if storetest.OnPostgres() {
		most = 3 * chat.MaxFileBytes // each part passes through the driver's buffers
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > most {
		t.Errorf("%d MiB were allocated for it", (after.TotalAlloc-before.TotalAlloc)>>20)
	}
	body = &zeros{left: chat.MaxFileBytes + 1}
	if w := s.call(ann, "", http.MethodPost, "/api/v1/files", body); w.Code != http.StatusRequestEntityTooLarge && w.Code != http.StatusBadRequest {
		t.Errorf("one byte more: %d %s", w.Code, w.Body)
	}
	body = &zeros{left: 1 << 40}
	w := s.call(ann, "", http.MethodPost, "/api/v1/files", body, func(r *http.Request) { r.ContentLength = 1 << 40 })
	if w.Code != http.StatusRequestEntityTooLarge || body.read > 0 {
		t.Errorf("one that says it is too large: %d after %d bytes", w.Code, body.read)
	}
	body = &zeros{left: 1 << 30}
	if w := s.call(s.Guest(), "", http.MethodPost, "/api/v1/files", body); w.Code != http.StatusUnauthorized || body.read > 0 {
		t.Errorf("of nobody: %d after %d bytes", w.Code, body.read)
	}
}

func TestFiles_PreviewsAreOursAndComeByTheLinkToo(t *testing.T) {
	s := newAPISite(t)
	ann := s.Person("ann")
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 900, 30))); err != nil {
		t.Fatal(err)
	}
	b.WriteString("<script>") // what is not the picture does not come along
	url := s.upload(ann, "a.png", b.String())
	id := s.open(ann)
	s.must(ann, http.MethodPost, "/conversations/"+id+"/messages", map[string]any{"client_id": "1", "parts": []task.Part{{URL: url, Filename: "a.png"}}}, http.StatusCreated)
	l := s.must(ann, http.MethodPost, "/conversations/"+id+"/links", map[string]any{"kind": "read"}, http.StatusCreated)["url"].(string)
	link := strings.TrimPrefix(l, "http://portal.test")
	other := s.upload(ann, "b.txt", "not in the conversation")
	for _, c := range []struct {
		who  *sitetest.Browser
		path string
	}{{ann, url + "/preview"}, {ann, "/api/v1" + url + "/preview"}, {nil, link + url + "/preview"}} {
		w := s.call(c.who, "", http.MethodGet, c.path, nil)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "image/png" || w.Header().Get("Content-Disposition") != "inline" || strings.Contains(w.Body.String(), "<script>") {
			t.Fatalf("%s: %d %v", c.path, w.Code, w.Header())
		}
		if img, err := png.Decode(w.Body); err != nil || img.Bounds().Dx() > 640 {
			t.Errorf("%s: %v", c.path, err)
		}
	}
	if w := s.call(nil, "", http.MethodGet, link+url, nil); w.Code != http.StatusOK || w.Body.Len() != b.Len() || w.Header().Get("X-Robots-Tag") == "" {
		t.Errorf("by the link: %d, %d bytes", w.Code, w.Body.Len())
	}
	for _, path := range []string{link + other, link + other + "/preview", link + "x" + url, strings.Replace(link, "shared", "join", 1) + url} {
		if w := s.call(nil, "", http.MethodGet, path, nil); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := s.call(ann, "", http.MethodGet, "/api/v1"+other+"/preview", nil); w.Code != http.StatusNotFound {
		t.Errorf("a preview of text: %d", w.Code)
	}
}

func TestFiles_AKeyOpensOneFileForAnAgent(t *testing.T) {
	s := newAPISite(t)
	ann := s.Person("ann")
	url, other := s.upload(ann, "a.txt", "for the agent"), s.upload(ann, "b.txt", "not for it")
	id := s.open(ann, "guide")
	s.must(ann, http.MethodPost, "/conversations/"+id+"/messages", map[string]any{"client_id": "1", "parts": []task.Part{task.TextPart("Read this"), {URL: url, Filename: "a.txt"}}}, http.StatusCreated)
	list, _, err := s.Tasks.List(t.Context(), ann.Actor, id, "", "", 1)
	if err != nil || len(list) != 1 {
		t.Fatal(len(list), err)
	}
	address, err := s.Chat.Files.ForTask(list[0]).Address(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	path, key, _ := strings.Cut(address, "?")
	if w := s.call(nil, "", http.MethodGet, path+"?"+key, nil); w.Code != http.StatusOK || w.Body.String() != "for the agent" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, bad := range []string{other + "?" + key, path + "?" + key + "x", path + "?key=x", path + "?key=1.2.3.4.5"} {
		if w := s.call(nil, "", http.MethodGet, bad, nil); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", bad, w.Code)
		}
	}
}

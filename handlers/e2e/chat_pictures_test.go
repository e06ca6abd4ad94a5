package e2e

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"agentsite/internal/testing/apptest"
)

// pictureServer is another site with pictures. It counts requests, and fails the test for one with facts about the reader.
func pictureServer(t *testing.T, hits *atomic.Int32) *httptest.Server {
	img := image.NewNRGBA(image.Rect(0, 0, 60, 40))
	for i := range 60 * 40 {
		img.Set(i%60, i/60, color.NRGBA{200, 60, 20, 255})
	}
	var data bytes.Buffer
	if err := png.Encode(&data, img); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/red.png", func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		if r.Header.Get("Cookie") != "" || r.Header.Get("Referer") != "" || r.Header.Get("Signature") != "" {
			t.Errorf("the request has the headers %v", r.Header)
		}
		http.SetCookie(w, &http.Cookie{Name: "track", Value: "1"})
		w.Header().Set("Content-Type", "image/png")
		w.Write(append(data.Bytes(), "<script>trailing</script>"...))
	})
	mux.HandleFunc("/moved.png", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/red.png", http.StatusFound) })
	mux.HandleFunc("/vector.png", func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`))
	})
	mux.HandleFunc("/large.png", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		w.Write(bytes.Repeat([]byte("x"), 9<<20))
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// TestChat_ShowsAPictureOnClick has a message that names a picture of another site: nothing is loaded before a click,
// and then by the portal. Without scripts the page of the message has a button.
func TestChat_ShowsAPictureOnClick(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	for name, s := range map[string]screen{"desk": desk, "phone": screens["phone"], "plain": screens["phone without scripts"]} {
		t.Run(name, func(t *testing.T) {
			var hits atomic.Int32
			far := pictureServer(t, &hits)
			ada := p.User(t, "ada-"+name)
			b := visit(t, root, p, s).as(ada)
			room := ada.Conversation()
			ada.Say(room, "Look: ![a red box]("+far.URL+"/red.png) and ![broken]("+far.URL+"/vector.png)")
			if !s.scripts {
				b.open("/chat/" + room + "/m/1")
				b.press(`form[action$="/picture"] button`)
				b.until("the picture", `document.contentType === "image/png" && document.images[0].naturalWidth === 60`)
				return
			}
			b.enterRoom(room)
			b.until("a link", `document.querySelector("a.linked-picture").innerText === "a red box"`)
			if hits.Load() != 0 || eval[int](b, `document.querySelectorAll(".prose img").length`) != 0 {
				t.Errorf("%d pictures were loaded before a click", hits.Load())
			}
			b.click("a.linked-picture")
			b.until("the picture", `document.querySelector(".loaded-picture")?.naturalWidth === 60 && document.querySelector(".loaded-picture").alt === "a red box"`)
			b.shot("picture-"+name+"-light", false)
			b.scheme("dark")
			b.shot("picture-"+name+"-dark", false)
			b.allow("400 (Bad Request)")
			b.click("a.linked-picture:not([data-picture])")
			b.until("the reason", `document.querySelector(".picture-failed")?.innerText.includes("There is no picture")`)
			if hits.Load() != 1 {
				t.Errorf("the picture was fetched %d times", hits.Load())
			}
			b.clean("pictures")
		})
	}
}

// TestPictures_OfMessagesAlone asks for pictures without a browser: only those that a message names, for readers that may
// read it, drawn anew, and nothing that is too large or no picture.
func TestPictures_OfMessagesAlone(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	var hits atomic.Int32
	far := pictureServer(t, &hits)
	ada, eve := p.User(t, "ada"), p.User(t, "eve")
	room := ada.Conversation()
	var text strings.Builder
	for _, name := range []string{"red", "moved", "vector", "large"} {
		text.WriteString("![" + name + "](" + far.URL + "/" + name + ".png)\n")
	}
	ada.Say(room, text.String()+"["+far.URL+"/linked.png]("+far.URL+"/linked.png)")
	ask := func(c *apptest.Client, address string) apptest.Answer {
		return c.Do(http.MethodPost, "/chat/"+room+"/m/1/picture", url.Values{"url": {address}})
	}
	for _, address := range []string{far.URL + "/linked.png", far.URL + "/red.png?2", "http://169.254.169.254/", "file:///etc/passwd", ""} {
		if a := ask(ada, address); a.Status != http.StatusBadRequest {
			t.Errorf("%s: %d", address, a.Status)
		}
	}
	if a := ask(eve, far.URL+"/red.png"); a.Status != http.StatusNotFound {
		t.Errorf("a stranger gets %d", a.Status)
	}
	if hits.Load() != 0 {
		t.Fatalf("%d fetches for requests that are refused", hits.Load())
	}
	for name, want := range map[string]int{"red": 200, "moved": 503, "vector": 400, "large": 400} {
		a := ask(ada, far.URL+"/"+name+".png")
		if a.Status != want && (name != "large" || a.Status != http.StatusServiceUnavailable) {
			t.Errorf("%s: %d: %.300s", name, a.Status, a.Body)
		}
		if want == 200 && (strings.Contains(a.Body, "trailing") || a.Header.Get("Content-Type") != "image/png" || a.Header.Get("Set-Cookie") != "") {
			t.Errorf("%s came as %v", name, a.Header)
		}
	}
	ada.Do(http.MethodDelete, "/api/v1/conversations/"+room+"/messages/1", nil)
	if a := ask(ada, far.URL+"/red.png"); a.Status == http.StatusOK {
		t.Error("a picture of a deleted message is shown")
	}
}

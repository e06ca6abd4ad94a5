package e2e

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"

	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
)

// posts sends the composer's form as a browser without scripts does.
func posts(t *testing.T, c *apptest.Client, path string, fields url.Values, files map[string][]byte) apptest.Answer {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for name, list := range fields {
		for _, v := range list {
			w.WriteField(name, v)
		}
	}
	for name, content := range files {
		f, err := w.CreateFormFile("file", name)
		if err != nil {
			t.Fatal(err)
		}
		f.Write(content)
	}
	w.Close()
	return c.Do(http.MethodPost, path, &body, func(r *http.Request) { r.Header.Set("Content-Type", w.FormDataContentType()) })
}

// gradient is a picture.
func gradient(t *testing.T) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, 640, 400))
	for y := range 400 {
		for x := range 640 {
			m.Set(x, y, color.RGBA{uint8(x * 255 / 640), uint8(y * 255 / 400), 140, 255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestRoomLooks fills a room with all there is and looks at it, with a script
// and without one.
func TestRoomLooks(t *testing.T) {
	onlyDrawn(t)
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t, func(c *app.Config) { c.Name = "Agora" })
	far, sea := newModel(t), newModel(t)
	far.answers(func(string) []string { return strings.SplitAfter(report, " ") })
	sea.answers(func(string) []string { return []string{"High water is at 04:12 and 16:38. ", "Low water is at 10:25."} })
	ada, bob, cyd := p.User(t, "ada"), p.User(t, "bob"), p.User(t, "cyd")
	ada.Meets(bob, cyd)
	register(ada, agents(far.base())[0])
	register(ada, agents(sea.base())[1])
	room := ada.Conversation("invoice-reader", "tide-tables", "guide", "bob", "cyd")
	path := "/chat/" + room
	form := func(c *apptest.Client, to string, pairs ...string) apptest.Answer {
		t.Helper()
		in := url.Values{}
		for i := 0; i < len(pairs); i += 2 {
			in.Add(pairs[i], pairs[i+1])
		}
		return c.Do(http.MethodPost, to, in)
	}
	goes := func(a apptest.Answer) {
		t.Helper()
		if a.Status >= 400 {
			t.Errorf("answered %d: %.300s", a.Status, a.Body)
		}
	}
	// answers waits until agents have said n things.
	stream := ada.Socket(room)
	answers := func(n int) {
		t.Helper()
		seen := map[int64]bool{}
		stream.Wait(fmt.Sprint(n, " answers"), func(e apptest.Event) bool {
			if e.Type == "message" && e.Kind == "text" && e.Sender.Kind == "agent" {
				seen[e.Seq] = true
			}
			return len(seen) == n
		})
	}
	told := []string{"told", "invoice-reader", "told", "tide-tables", "share", "all"}
	goes(form(ada, path+"/rename", "title", "Moorings and invoices"))
	said := posts(t, ada, path, url.Values{"text": {"Here are the invoices and the plan of the harbour."}, "told": {"invoice-reader"}, "share": {"own"}, "client_id": {"a1"}},
		map[string][]byte{"harbour.png": gradient(t), "invoices.csv": []byte("no,customer,sum\n1,Lindner,1204\n")})
	goes(said)
	goes(form(ada, path, append(told, "text", "@invoice-reader which of these are overdue?", "client_id", "a2")...))
	answers(1)
	goes(form(bob, path, append(told, "text", "Thanks. @tide-tables when is high water?", "client_id", "b1")...))
	answers(2)
	goes(form(bob, path, "text", "And a second line under the same head.", "client_id", "b2"))
	goes(form(cyd, path, "text", "I will be there.", "client_id", "c1"))
	var list struct {
		Messages []struct {
			Seq    int64
			Sender struct{ Kind, Handle string }
			Parts  []struct{ Text string }
		}
	}
	ada.Get(http.MethodGet, "/api/v1/conversations/"+room+"/messages?limit=100", nil, http.StatusOK, &list)
	seq := func(text string) string {
		t.Helper()
		for _, m := range list.Messages {
			for _, x := range m.Parts {
				if strings.Contains(x.Text, text) {
					return fmt.Sprint(m.Seq)
				}
			}
		}
		t.Fatalf("nobody said %q", text)
		return ""
	}
	tides, there, second, over := seq("High water is"), seq("I will be there"), seq("And a second"), seq("are overdue")
	goes(form(ada, path, "text", "Then we meet at four.", "reply_to", tides, "client_id", "a3"))
	goes(form(ada, path+"/m/"+there+"/react", "emoji", "👍"))
	goes(form(bob, path+"/m/"+there+"/react", "emoji", "👍"))
	goes(form(bob, path+"/m/"+there+"/react", "emoji", "🎉"))
	goes(form(cyd, path+"/m/"+there+"/edit", "text", "I will be there **at four**.", "client_id", "c2"))
	goes(form(bob, path+"/m/"+second+"/unsay"))
	goes(form(bob, path+"/m/"+tides+"/again"))
	answers(3)
	goes(form(ada, path+"/role", "member", "cyd", "role", "reader"))
	goes(form(ada, path+"/settings", "form", "room", "speaks", "agent", "speaker", "guide", "past", "nothing", "hops", "2", "turns", "4", "budget", "64"))
	goes(form(ada, path+"/links", "kind", "join", "role", "member", "uses", "5", "life", "7"))
	goes(form(ada, path+"/pin", "pinned", "true"))

	a := visit(t, root, p, desk).as(ada)
	a.allow("404 (Not Found)")
	a.open(path)
	a.look("room-end")
	eval[bool](a, `document.getElementById("m`+over+`").scrollIntoView({ block: "start" }), true`)
	a.look("room-report")
	eval[bool](a, `document.querySelector("[data-transcript]").scrollTop = -1e6, true`)
	a.look("room-files")
	a.open(path)
	eval[bool](a, `[...document.querySelectorAll("[data-actions]")].at(-1).open = true`)
	a.look("room-menu")
	a.open(path + "?reply=" + tides)
	a.look("room-reply")
	a.open(path)
	command(a, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	a.shot("room-print", true)
	command(a, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{})
	a.open(path + "?at=" + second)
	eval[bool](a, `document.querySelector("[data-earlier-answer]").open = true`)
	a.look("room-middle")
	a.open(path)
	eval[bool](a, `document.querySelector("[data-side]").open = true`)
	a.look("room-side")
	a.open(path + "/settings")
	a.look("room-settings")
	a.open(path + "/m/" + there)
	a.look("room-message")
	c := visit(t, root, p, screen{width: 390, height: 844, phone: true, scripts: false}).as(cyd)
	c.allow("404 (Not Found)")
	c.open(path)
	c.look("room-reader-plain")
	fresh := ada.Conversation("tide-tables")
	sea.answers(nil)
	b := visit(t, root, p, screen{width: 390, height: 844, phone: true, scripts: false}).as(ada)
	b.open("/chat/" + fresh)
	b.look("room-new-plain")
	goes(form(ada, "/chat/"+fresh, append(told, "text", "When is low water?", "client_id", "f1")...))
	sea.pieces <- "Low water "
	b.open("/chat/" + fresh)
	b.fill("#text", "half a thou")
	b.look("room-working-plain")
	b.press(`button[name="look"]`)
	b.holds("#text", "half a thou")
	sea.pieces <- ""
}

package e2e

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"agentsite/internal/testing/apptest"
)

// form opens the form for a kind.
func (b *tab) form(kind string) {
	b.t.Helper()
	b.open("/agents/new?kind=" + kind)
	b.until("the kind", `document.querySelector("#kind-`+kind+`").checked`)
}

// more opens the folded part of the form.
func (b *tab) more() {
	b.t.Helper()
	b.click(".form-more > summary")
	b.until("the rest of the form", `document.querySelector(".form-more").open`)
}

// TestRegister_NamesMistakesWhileTyping looks for messages that come and go
// without the form being sent.
func TestRegister_NamesMistakesWhileTyping(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t, ownModel(parrotModel(t)))
	b := visit(t, root, p, desk).as(p.User(t, "ann"))
	b.form("openai")
	eval[bool](b, "window.__old = true")
	wrong := func(id, text string) {
		t.Helper()
		b.until("the mistake in "+id, `document.getElementById(`+js(id+"-error")+`)?.innerText.includes(`+js(text)+`) && document.getElementById(`+js(id)+`).getAttribute("aria-invalid") === "true"`)
	}
	right := func(id string) {
		t.Helper()
		b.until(id+" to be right", `!document.getElementById(`+js(id+"-error")+`) && !document.getElementById(`+js(id)+`).hasAttribute("aria-invalid")`)
	}
	b.fill("#name", "calc") // a built-in agent
	wrong("name", "taken")
	b.until("free names", `[...document.querySelectorAll("[data-free-names] button")].some((x) => x.textContent === "calc-ann")`)
	b.click("[data-free-names] button")
	right("name")
	b.holds("#name", "calc-ann")
	b.fill("#name", "ann") // herself
	wrong("name", "taken")
	b.fill("#name", "admin")
	wrong("name", "reserved by the portal")
	b.fill("#name", "9lives")
	wrong("name", "start with a letter")
	b.fill("#name", "nine-lives")
	right("name")
	b.fill("#endpoint", "ftp://cats.example")
	if eval[bool](b, `Boolean(document.getElementById("endpoint-error"))`) {
		t.Error("the address is found wrong before it is whole")
	}
	b.click("#model")
	wrong("endpoint", "http")
	b.fill("#endpoint", "https://cats.example/v1")
	right("endpoint")
	if eval[bool](b, `Boolean(document.getElementById("description-error") || document.getElementById("model-error"))`) {
		t.Error("fields are found wrong that nobody has filled in")
	}
	b.more()
	b.click(".form-more .fold:has(#per_minute) > summary")
	b.fill("#per_minute", "many")
	b.click("#per_day")
	wrong("per_minute", "whole number")
	b.fill("#per_minute", "10")
	right("per_minute")
	if !eval[bool](b, "window.__old") {
		t.Error("the page was left")
	}
	b.clean("typing with mistakes")
}

// TestRegister_IsTriedBeforeItIsThere tries an agent from the form; what was
// typed stays, and nothing is registered.
func TestRegister_IsTriedBeforeItIsThere(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range walked("desk", "phone") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := apptest.Start(t, ownModel(parrotModel(t)))
			ann := p.User(t, "ann")
			b := visit(t, root, p, s).as(ann)
			b.allow("400 (Bad Request)")
			try := func(text string) {
				t.Helper()
				b.fill("#try", text)
				if s.scripts {
					b.click("[data-try-button]")
				} else {
					b.press("[data-try-button]")
				}
			}
			b.form("prompt")
			b.fill("#name", "poet")
			try("Too early")
			b.until("what is missing", `document.getElementById("instructions-error")?.innerText.includes("say what")`)
			b.holds("#try", "Too early")
			b.fill("#instructions", "You write poems.")
			try("A rose")
			b.until("the answer, rendered", `[...document.querySelectorAll(".a-try .prose strong")].at(-1)?.innerText === "A rose"`)
			try("A tulip")
			b.until("both answers", `document.querySelectorAll(".a-try").length === 2 && [...document.querySelectorAll(".a-try .prose strong")].at(-1).innerText === "A tulip"`)
			b.holds("#name", "poet")
			b.holds("#instructions", "You write poems.")
			b.shot("tried-"+strings.ReplaceAll(name, " ", "-"), true)
			if s.width > 1000 && !eval[bool](b, `document.querySelector(".try").getBoundingClientRect().left > document.querySelector("#instructions").getBoundingClientRect().right`) {
				t.Error("the try does not stand beside the form")
			}
			ann.Must(http.MethodGet, "/api/v1/agents/poet", nil, http.StatusNotFound)
			b.press(`button[name="save"]`)
			b.says("It is registered")
			b.clean("trying")
			// An edit is tried too, as it would be.
			b.open("/agents/poet/edit")
			b.fill("#instructions", "You write prose.")
			try("Again")
			b.until("an answer", `[...document.querySelectorAll(".a-try .prose strong")].at(-1)?.innerText === "Again"`)
			b.clean("trying an edit")
		})
	}
}

// TestRegister_DraftPreviewPublish saves a draft nobody else sees, looks at it
// and publishes it.
func TestRegister_DraftPreviewPublish(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range walked("phone") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := apptest.Start(t, ownModel(parrotModel(t)))
			b, guest := visit(t, root, p, s).as(p.User(t, "ann")), p.Guest(t)
			b.form("prompt")
			b.fill("#name", "poet")
			b.fill("#instructions", "Always rhyme.")
			b.more()
			b.fill("#description", "Writes **poems** for birthdays. Give it a name.")
			b.fill(`[id="skill_name.0"]`, "Rhyme")
			b.fill(`[id="skill_examples.0"]`, "A poem for Bob")
			b.press(`button[name="preview"]`)
			b.says("Preview: nothing is saved yet")
			b.until("the preview", `document.querySelector(".preview-page").innerText.includes("Writes poems for birthdays.") && document.querySelector(".preview-page").innerText.includes("A poem for Bob")`)
			for field, want := range map[string]string{"#name": "poet", "#instructions": "Always rhyme.", `[id="skill_name.0"]`: "Rhyme", `[id="skill_examples.0"]`: "A poem for Bob"} {
				b.holds(field, want)
			}
			b.shot("preview-"+strings.ReplaceAll(name, " ", "-"), true)
			b.click(`.preview a[href="#sheet"]`)
			b.press(`button[name="draft"]`)
			if got := b.path(); got != "/agents/poet" {
				t.Fatalf("a draft leads to %s", got)
			}
			guest.Must(http.MethodGet, "/api/v1/agents/poet", nil, http.StatusNotFound)
			b.open("/agents/poet/edit")
			b.holds("#instructions", "Always rhyme.")
			b.press(`button[name="publish"]`)
			guest.Must(http.MethodGet, "/api/v1/agents/poet", nil, http.StatusOK)
			b.open("/agents/poet/edit")
			b.fill("#title", "Poet laureate")
			b.fill("#note", "A better title")
			b.press(`button[name="save"]`)
			b.says("Poet laureate")
			b.open("/agents/poet/versions")
			b.says("A better title")
			b.clean("draft, preview, publish")
		})
	}
}

// upload puts a file into a field.
func (b *tab) upload(selector, name string, content []byte) {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.do(chromedp.SetUploadFiles(selector, []string{path}))
}

// plainPicture is a PNG of one colour.
func plainPicture(t testing.TB, c color.Color) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, 300, 200))
	for i := range 300 * 200 {
		m.Set(i%300, i/300, c)
	}
	var buf bytes.Buffer
	if err := png.Encode(&buf, m); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// TestRegister_TakesAPicture uploads a picture, keeps it over a mistake,
// refuses what is none and removes it.
func TestRegister_TakesAPicture(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name := range walked("phone without scripts") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := apptest.Start(t, ownModel(parrotModel(t)))
			b := visit(t, root, p, screens[name]).as(p.User(t, "ann"))
			b.allow("400 (Bad Request)")
			shown := `document.querySelector(".icon-now")?.naturalWidth === 128`
			b.form("prompt")
			b.fill("#name", "poet")
			b.upload("#icon", "rose.png", plainPicture(t, color.RGBA{200, 20, 60, 255}))
			b.press(`button[name="save"]`)
			b.wrong("instructions")
			b.until("the picture", shown)
			b.fill("#instructions", "Always rhyme.")
			b.press(`button[name="save"]`)
			b.until("the picture on the profile", `[...document.querySelectorAll(".profile-head > img")].some((x) => x.complete && x.naturalWidth === 128)`)
			b.open("/agents/poet/edit")
			b.until("the picture in the form", shown)
			b.upload("#icon", "rose.png", []byte("<svg onload=xss()>"))
			b.press(`button[name="save"]`)
			b.until("the refusal", `document.getElementById("icon-error").innerText.includes("PNG, JPEG")`)
			b.click("#icon-remove")
			b.press(`button[name="save"]`)
			b.until("no picture on the profile", `!document.querySelector(".profile-head > img")`)
			b.clean("a picture")
		})
	}
}

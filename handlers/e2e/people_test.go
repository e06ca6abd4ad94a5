package e2e

import (
	"image/color"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"testing"

	"agentsite/internal/testing/apptest"
)

// accountScreens are the screens of the walks through the pages of an account.
var accountScreens = []string{"desk", "phone", "phone without scripts"}

// fits is true if the page is not wider than the screen.
const fits = `document.documentElement.scrollWidth <= document.documentElement.clientWidth`

// saveProfile sends the form of the profile.
func (b *tab) saveProfile() {
	b.t.Helper()
	b.press(`form[action="/account/profile"] button`)
}

// TestPeople_ProfileIsPrivateUntilShown gives an account a picture and a display name, which others see only while it
// shows them.
func TestPeople_ProfileIsPrivateUntilShown(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	const face = `document.querySelector("main img[src^='/people/ann/picture']")`
	for _, name := range accountScreens {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := apptest.Start(t)
			ann := p.User(t, "ann")
			agent := ann.Agent("public", newModel(t).base())
			a, g := visit(t, root, p, screens[name]).as(ann), visit(t, root, p, screens[name])
			a.allow("400 (Bad Request)")
			g.allow("404 (Not Found)")
			hidden := func() {
				t.Helper()
				g.open("/people/ann")
				g.until("the name alone", `document.querySelector("h1").innerText === "ann" && !`+face)
				g.until("the public agent", `document.querySelector('main a[href="/agents/`+agent+`"]')`)
				if !eval[bool](g, fits) {
					t.Error("the page of a person is wider than the screen")
				}
			}
			hidden()
			g.open("/people/bob")
			g.says("no such person")

			a.open("/account")
			a.fill("#display_name", "Guide")
			a.saveProfile()
			a.wrong("display_name")
			a.holds("#display_name", "Guide")
			a.upload("#picture", "me.png", []byte("<svg onload=alert(1)>"))
			a.fill("#display_name", "Ann of Bremen")
			a.saveProfile()
			a.wrong("picture")
			a.upload("#picture", "me.png", plainPicture(t, color.RGBA{R: 200, A: 255}))
			a.saveProfile()
			a.until("the picture", face+`?.naturalWidth === 128`)
			a.holds("#display_name", "Ann of Bremen")
			hidden()

			a.press(`#profile a[href="/people/ann"]`)
			a.until("all of the own page", `document.querySelector("h1").innerText === "Ann of Bremen" && `+face+`?.naturalWidth === 128`)
			a.says("Others see only your name and your public agents")
			a.press(`a[href="/account#profile"]`)
			a.click(`label[for="shown"]`)
			a.saveProfile()
			g.open("/people/ann")
			g.until("what is shown", `document.querySelector("h1").innerText === "Ann of Bremen" && `+face+`?.naturalWidth === 128`)

			a.click(`label[for="picture_remove"]`)
			a.saveProfile()
			a.until("no picture", `!`+face)
			g.open("/people/ann")
			g.until("the name without the picture", `document.querySelector("h1").innerText === "Ann of Bremen" && !`+face)
			a.click(`label[for="shown"]`)
			a.saveProfile()
			hidden()
			a.clean("the own profile")
			g.clean("the profile of somebody")
		})
	}
}

// TestPeople_ThemeStays changes the theme, which holds against the preference of the device, over signing out and in,
// and in another browser.
func TestPeople_ThemeStays(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for _, name := range accountScreens {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := apptest.Start(t)
			client := p.User(t, "ann")
			b := visit(t, root, p, screens[name]).as(client)
			b.allow("HTTP Authentication failed", "401 (Unauthorized)")
			// The colour of the page itself, as a person sees it.
			looks := func(b *tab, want string) {
				t.Helper()
				b.until("a "+want+" page", `(() => {
					const pen = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d");
					const own = getComputedStyle(document.body).backgroundColor;
					pen.fillStyle = own === "rgba(0, 0, 0, 0)" ? getComputedStyle(document.documentElement).backgroundColor : own;
					pen.fillRect(0, 0, 1, 1);
					const [r, g, b] = pen.getImageData(0, 0, 1, 1).data;
					return (r + g + b > 382) === `+map[string]string{"light": "true", "dark": "false"}[want]+`;
				})()`)
			}
			choose := func(theme, chosen string) {
				t.Helper()
				b.open("/account")
				b.press(`button[name="theme"][value="` + theme + `"]`)
				b.until(chosen+" chosen", `[...document.querySelectorAll('button[name="theme"][aria-pressed="true"]')].map((e) => e.innerText.trim()).join() === `+js(chosen))
			}
			for _, device := range []string{"light", "dark"} {
				b.scheme(device)
				choose("dark", "Dark")
				looks(b, "dark")
				choose("light", "Light")
				looks(b, "light")
				choose("", "System")
				looks(b, device)
			}
			b.scheme("light")
			choose("dark", "Dark")
			b.press(`form[action="/logout"] button`)
			b.open("/login")
			looks(b, "light")
			b.fill("#name", "ann")
			b.fill("#password", apptest.Password)
			b.press("main form button")
			looks(b, "dark")
			b.open("/agents")
			looks(b, "dark")
			other := visit(t, root, p, screens[name]).as(p.LogIn(t, "ann"))
			other.scheme("light")
			other.open("/")
			looks(other, "dark")
			other.clean("another browser")
			b.clean("the theme")
		})
	}
}

// caused are the kinds of notices that causeNotices causes, the newest first.
var caused = []string{"report", "unshared", "shared", "taken", "offer", "invited", "mention", "added"}

// reportPath finds the form that closes a report.
var reportPath = regexp.MustCompile(`/admin/reports/[0-9A-Z]+/close`)

// causeNotices makes agents of a model and does what ann gets a notice of each kind of caused for, if none is switched off;
// only with report for that kind, because an account may report a few times an hour.
func causeNotices(base string, report bool, ann, bob, op, stranger *apptest.Client) {
	bob.Say(bob.Conversation("ann"), "@ann hello")
	stranger.Conversation("ann")
	agent := "/api/v1/agents/" + bob.Agent("private", base)
	bob.Must(http.MethodPost, agent+"/offer", map[string]string{"to": "ann"}, http.StatusNoContent)
	own := ann.Agent("private", base)
	ann.Must(http.MethodPost, "/api/v1/agents/"+own+"/offer", map[string]string{"to": "bob"}, http.StatusNoContent)
	bob.Must(http.MethodPost, "/api/v1/offers/"+own, map[string]bool{"accept": false}, http.StatusNoContent)
	bob.Must(http.MethodPost, agent+"/owners", map[string]string{"name": "ann"}, http.StatusOK)
	bob.Must(http.MethodDelete, agent+"/owners/ann", nil, http.StatusNoContent)
	if !report {
		return
	}
	ann.Must(http.MethodPost, "/api/v1/agents/calc/report", map[string]string{"reason": "broken"}, http.StatusNoContent)
	reports := op.Must(http.MethodGet, "/admin/reports", nil, http.StatusOK).Body
	op.Must(http.MethodPost, reportPath.FindString(reports), url.Values{"outcome": {"Seen."}}, http.StatusSeeOther)
}

// TestPeople_SwitchesNoticesOff switches off one kind of notice after the other in the browser. What happens is then
// noted for the kinds that are on, and for no other.
func TestPeople_SwitchesNoticesOff(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for _, name := range accountScreens {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := apptest.Start(t)
			ann, bob, op := p.User(t, "ann"), p.User(t, "bob"), p.Operator(t, "op")
			bob.Meets(ann)
			base := newModel(t).base()
			b := visit(t, root, p, screens[name]).as(ann)
			seen := 0
			// now causes all notices and returns the kinds of those that are new.
			now := func(report bool) (kinds []string) {
				t.Helper()
				causeNotices(base, report, ann, bob, op, p.User(t, apptest.Fresh("cat")))
				var out struct{ Notices []struct{ Kind string } }
				ann.Get(http.MethodGet, "/api/v1/notices", nil, http.StatusOK, &out)
				for _, n := range out.Notices[:len(out.Notices)-seen] {
					kinds = append(kinds, n.Kind)
				}
				seen = len(out.Notices)
				return kinds
			}
			switches := func(kinds ...string) {
				t.Helper()
				b.open("/account")
				for _, kind := range kinds {
					b.click(`label[for="notice-` + kind + `"]`)
				}
				b.press(`form[action="/account/notices"] button`)
			}
			seen = 1 // that of the invitation by which ann met bob
			if got := now(true); !slices.Equal(got, caused) {
				t.Fatalf("with all on: %v", got)
			}
			b.open("/notices")
			b.says("bob mentioned you")
			one := caused
			if name != "desk" {
				one = caused[:1]
			}
			for _, off := range one {
				switches(off)
				on := `[...document.querySelectorAll('input[name="notice"]:not(:checked)')].map((e) => e.value).join()`
				b.until("one switch off", on+` === `+js(off))
				want := slices.DeleteFunc(slices.Clone(caused), func(kind string) bool { return kind == off || kind == "report" })
				if got := now(off == "report"); !slices.Equal(got, want) {
					t.Errorf("without %s: %v", off, got)
				}
				switches(off)
				b.until("all on", on+` === ""`)
			}
			if eval[bool](b, `Boolean(document.getElementById("notice-peer"))`) {
				t.Error("somebody who is no operator has the switch of other portals")
			}
			switches(eval[[]string](b, `[...document.querySelectorAll('input[name="notice"]')].map((e) => e.value)`)...)
			b.open("/notices")
			before := eval[int](b, `document.querySelectorAll(".rows.notices > li").length`)
			if got := now(true); len(got) > 0 {
				t.Errorf("with all off: %v", got)
			}
			b.open("/notices")
			if got := eval[int](b, `document.querySelectorAll(".rows.notices > li").length`); got != before || got == 0 {
				t.Errorf("%d notices on the page, %d before", got, before)
			}
			if !eval[bool](b, fits) {
				t.Error("the page of notices is wider than the screen")
			}
			b.clean("notices")
			o := visit(t, root, p, screens[name]).as(op)
			o.open("/account")
			o.has("#notice-peer")
			o.clean("the switches of an operator")
		})
	}
}

package e2e

import (
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
)

// operates makes the account of the first operator of the portal and signs it in.
func (p *joined) operates(t testing.TB, b *tab) {
	t.Helper()
	b.open("/signup?setup=" + p.setup(t))
	b.fill("#name", "op")
	b.fill("#password", apptest.Password)
	b.press("main form button")
}

// TestOperator_JoinsAPortalByItsBareHost joins a second portal by its host in any spelling, and reads the
// cause of each address that cannot be joined.
func TestOperator_JoinsAPortalByItsBareHost(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for _, name := range []string{"desk", "phone", "phone without scripts"} {
		s := screens[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := joins(t), joins(t)
			op := visitAt(t, root, first.at, s)
			first.operates(t, op)
			op.open("/admin")
			clicks := 0
			press := func(selector string) {
				clicks++
				op.press(selector)
			}
			press(`nav a[href="/admin/peers"]`)
			op.fill("#url", second.host)
			press("main form.search-line[method=post] button")
			op.says("answers")
			if at := op.path(); !strings.HasPrefix(at, "/admin/peers/") || clicks > 2 {
				t.Errorf("%d clicks lead to %s", clicks, at)
			}
			page := op.path()
			for _, spelling := range []string{second.at, "localhost:" + second.host[strings.LastIndexByte(second.host, ':')+1:]} {
				op.open("/admin/peers")
				op.fill("#url", spelling)
				op.press("main form.search-line[method=post] button")
				if at := op.path(); at != page {
					t.Errorf("%s leads to %s, not %s", spelling, at, page)
				}
			}
			op.open("/admin/peers")
			for host, cause := range map[string]string{
				nowhere(t)[len("http://"):]: "connection refused",
				first.host:                  "this portal's own address",
				"nowhere.invalid":           "No host named nowhere.invalid",
			} {
				op.fill("#url", host)
				op.allow("400")
				op.press("main form.search-line[method=post] button")
				op.until("the cause", `document.querySelector("#url-error").innerText.includes(`+js(cause)+`)`)
				op.holds("#url", host)
			}
			if n := eval[int](op, `document.querySelectorAll("table.portals tbody tr").length`); n != 1 {
				t.Errorf("%d portals are known", n)
			}
			op.clean("joining")
		})
	}
}

// TestOperator_ChangesWhoMaySignUp sets up a new portal on its first page, and changes the policy for sign-up in three
// clicks.
func TestOperator_ChangesWhoMaySignUp(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for _, name := range []string{"desk", "phone", "phone without scripts"} {
		s := screens[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := joins(t)
			op := visitAt(t, root, p.at, s)
			p.operates(t, op)
			op.says("Set up your portal")
			op.fill("#contact", "ops@portal.example")
			op.shot("operator-first-"+name, true)
			op.press("main form button")
			if op.path() != "/admin" {
				t.Errorf("the first page leads to %s", op.path())
			}
			clicks := 0
			press := func(selector string) {
				clicks++
				op.press(selector)
			}
			press(`nav a[href="/admin/settings"]`)
			op.holds("#contact", "ops@portal.example")
			op.shot("operator-settings-"+name, true)
			op.choose("#accounts", "closed")
			clicks++
			op.fill("#confirm", apptest.Password)
			press("main form.stack button")
			op.says("Saved: Who may sign up")
			if clicks > 3 {
				t.Errorf("%d clicks", clicks)
			}
			op.says("A change applies after a restart.") // of the limits alone
			op.fill("#name", "Agora Nova")
			op.fill("#confirm", apptest.Password)
			op.press("main form.stack button")
			op.until("the new name", `document.querySelector(".site-header, header").innerText.includes("Agora Nova")`)
			guest := visitAt(t, root, p.at, s)
			guest.open("/signup")
			guest.until("that nobody can sign up", `!document.querySelector("#password")`)
			op.open("/admin/settings")
			op.allow("400")
			op.choose("#accounts", "open")
			op.fill("#confirm", "not the password")
			op.press("main form.stack button")
			op.says("this is not your password")
			op.open("/admin")
			op.press(`nav a[href="/admin/storage"]`) // the only click
			op.says("What fills the disk")
			op.says("Database")
			if !eval[bool](op, `[...document.querySelectorAll("progress")].every((p) => getComputedStyle(p).appearance === "none")`) {
				t.Error("a bar has the browser's colours")
			}
			op.shot("operator-disk-"+name, true)
			op.clean("settings")
		})
	}
}

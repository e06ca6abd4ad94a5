package e2e

import (
	"fmt"
	"io"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/control"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/pgtest"
	"agentsite/internal/testing/storetest"
)

// TestMoved moves a portal with people, a room, a file, an agent and another portal to PostgreSQL and back. After
// each move a verification finds nothing, and a person reads the messages from before and goes on.
func TestMoved(t *testing.T) {
	storetest.SkipOnPostgres(t)
	root := needBrowser(t)
	t.Parallel()
	url, dir := pgtest.NewDatabase(t), t.TempDir()
	address := "127.0.0.1:0"
	other := apptest.Start(t)
	var cfg app.Config
	start := func(database string) *apptest.Portal {
		t.Helper()
		p := apptest.Start(t, func(c *app.Config) {
			c.Data, c.Listen, c.Database, c.Join = dir, address, database, other.Base
			cfg = *c
		})
		address = p.Addr().String() // the same after each move
		r, err := p.Control().Verify(t.Context())
		if err != nil || len(r.Faults) > 0 {
			t.Errorf("on %q: %v %v", database, r.Faults, err)
		}
		return p
	}
	move := func(to string) {
		t.Helper()
		r, err := control.MoveDatabase(t.Context(), cfg, to, io.Discard, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		if r.Heads < 1 || r.Files != 1 {
			t.Errorf("moved %+v", r)
		}
	}

	p := start("")
	ada, bob := p.Operator(t, "ada"), p.User(t, "bob")
	ada.Meets(bob)
	id := ada.Conversation("bob", "calc")
	ada.Agent("public", newModel(t).base())
	b := visit(t, root, p, desk).as(ada)
	b.enterRoom(id)
	b.upload("#file", "minutes.txt", []byte("What was said on Monday.\n"))
	b.until("the file up", `document.querySelector("[data-attached] .attached-done, [data-attached] > .attached-done")`)
	b.send("Here they are")
	b.until("the file", `document.querySelector("[data-messages] [data-file]")`)
	b.send("@calc 6*7")
	b.answered("42")
	b.clean("before")

	for i, database := range []string{url, ""} {
		p.Stop()
		if database == "" {
			move("sqlite:" + dir)
		} else {
			move(database)
		}
		p = start(database)
		b := visit(t, root, p, desk).as(p.LogIn(t, "ada"))
		b.enterRoom(id)
		b.until("what was said before", `["Here they are", "minutes.txt", "42"].every((x) => document.querySelector("[data-messages]").innerText.includes(x))`)
		eval[bool](b, `(window.__text = "", fetch(document.querySelector("[data-file]").href).then((r) => r.text()).then((x) => { window.__text = x; }), true)`)
		b.until("what the file holds", `window.__text === "What was said on Monday.\n"`)
		b.send(fmt.Sprintf("@calc %d*100", i+3))
		b.answered(fmt.Sprint((i + 3) * 100))
		b.open("/network")
		b.until("the other portal", again(`document.body?.innerText.includes(`+js(other.Host)+`)`))
		b.clean("after a move")
	}
}

package e2e

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/federationtest"
)

// joined is a portal in a process of its own, started as its manual says.
type joined struct {
	at, host string
	cmd      *exec.Cmd
	log      *apptest.Log
}

// joins starts a portal that knows these others by their addresses.
func joins(t testing.TB, others ...string) *joined {
	t.Helper()
	p := &joined{at: nowhere(t), log: new(apptest.Log)}
	p.host = strings.TrimPrefix(p.at, "http://")
	p.cmd = exec.Command(os.Args[0], "serve", "--listen", p.host, "--data", t.TempDir())
	if len(others) > 0 {
		p.cmd.Args = append(p.cmd.Args, "--join", strings.Join(others, ","))
	}
	p.cmd.Env = append(os.Environ(), actsAsPortal+"=1")
	p.cmd.Stderr = p.log
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the log of %s:\n%.20000s", p.host, p.log)
		}
	})
	ready := make(chan bool, 1)
	go func() {
		r := bufio.NewReader(out)
		line, _ := r.ReadString('\n')
		ready <- strings.HasPrefix(line, "ready ")
		io.Copy(io.Discard, r)
	}()
	select {
	case ok := <-ready:
		if !ok {
			t.Fatalf("%s did not get ready", p.host)
		}
	case <-time.After(time.Minute):
		t.Fatalf("%s is not ready", p.host)
	}
	return p
}

// setup is the secret of its one-time link, which it says before it is ready.
func (p *joined) setup(t testing.TB) string {
	t.Helper()
	look := time.NewTicker(15 * time.Millisecond)
	defer look.Stop()
	for range 400 {
		_, rest, _ := strings.Cut(p.log.String(), "/signup?setup=")
		if secret, _, ok := strings.Cut(rest, "\n"); ok {
			return secret
		}
		<-look.C
	}
	t.Fatalf("%s has no link for its operator", p.host)
	return ""
}

// kill ends it as a power cut does.
func (p *joined) kill() {
	if p.cmd.ProcessState == nil {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	}
}

// again is a condition that holds once this one does; until then the page is
// loaded anew, a few times a second.
func again(condition string) string {
	return `(` + condition + `) || (document.readyState === "complete" && performance.now() > 250 && (location.reload(), false))`
}

// liar is a portal that can lie, on a port of its own.
func liar(t testing.TB, name string) *federationtest.Liar {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	evil, err := federationtest.NewLiar("agentsite-main", "http://"+l.Addr().String(), name, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(evil)
	s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return evil
}

// TestNetwork is one network of three portals, started by three commands: an
// agent registered on the first is found on the third, with its source and
// proof, and talked to from there; the portal both joined dies in between. A
// fourth portal that lies is refused, and the operator sees why.
func TestNetwork(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range walked("phone") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			second := joins(t)
			first, third := joins(t, second.at), joins(t, second.at)
			far := newModel(t)
			ann := visitAt(t, root, first.at, s)
			ann.registersTeller(far)

			bob := visitAt(t, root, third.at, s)
			ref := "/agents/storyteller@" + first.host
			bob.findsElsewhere(ref, first.host)
			second.kill()
			bob.open("/agents?q=bedtime+dragon")
			bob.press(`.results a[href="` + ref + `"]`)
			bob.provedElsewhere(ref, first.host)
			bob.talksElsewhere(far)
			bob.clean("after the second is dead")

			// Nothing else changed: they hear of each other's agents as before.
			ann.open("/agents/storyteller/edit")
			ann.fill("#title", "Teller of long tales")
			ann.press(`button[name="save"]`)
			bob.open(ref)
			bob.until("the new title", again(`document.querySelector("h1").innerText === "Teller of long tales"`))
			ann.clean("changed")
			bob.clean("changed there")

			op := visitAt(t, root, first.at, s)
			op.open("/signup?setup=" + first.setup(t))
			op.fill("#name", "op")
			op.fill("#password", apptest.Password)
			op.press("main form button")
			op.refusesForger(liar(t, "evil"), first)
			op.refusesLiar(liar(t, "twofaced"), first)
			op.clean("the operator")

			// Whoever looks at an agent of a portal that is gone is told so.
			first.kill()
			bob.open("/network")
			bob.until("that the first is silent", again(`[...document.querySelectorAll("table.portals tbody tr")].some((r) => r.innerText.includes(`+js(first.host)+`) && r.innerText.includes("silent"))`))
			bob.open(ref)
			bob.says("the portal it lives on, does not answer now.")
			bob.until("that it cannot be reached", `document.querySelector(".badge").innerText.includes("unreachable")`)
			bob.open("/agents?q=bedtime+dragon")
			bob.until("the same where it is found", again(`document.querySelector(`+js(`.agent-card:has(a[href="`+ref+`"]) .badge`)+`).innerText.includes("unreachable")`))
			bob.shot("network-gone", true)
		})
	}
}

// registersTeller signs up and registers a model through the form.
func (b *tab) registersTeller(far *model) {
	b.t.Helper()
	b.open("/")
	b.press(`a[href="/signup"]`)
	b.fill("#name", "ann")
	b.fill("#password", apptest.Password)
	b.press("main form button")
	b.press(`.main-nav a[href="/agents/new"]`)
	b.press(`.by-hand a[href="/agents/new?kind=openai"]`)
	b.fill("#name", "storyteller")
	b.more()
	b.fill("#title", "Teller of tales")
	b.fill("#description", "Tells bedtime stories about dragons. Ask for one.")
	b.fill("#endpoint", far.base())
	b.fill("#model", "story-1")
	b.fill(`[id="skill_name.0"]`, "Tell")
	b.fill(`[id="skill_examples.0"]`, "A story about a dragon")
	b.press(`button[name="save"]`)
	b.alive("/agents/storyteller")
	b.clean("registering")
}

// findsElsewhere finds an agent of another portal by words, and sees where it
// is from.
func (b *tab) findsElsewhere(ref, host string) {
	b.t.Helper()
	b.open("/agents?q=bedtime+dragon")
	card := `.agent-card:has(a[href="` + ref + `"])`
	b.until("the agent of the first portal", again(`document.querySelector(`+js(card)+`)`))
	b.until("its portal", `document.querySelector(`+js(card+" .badge-portal")+`).innerText.includes(`+js(host)+`)`)
	b.until("that it is verified", `document.querySelector(`+js(card+" .badge-verified")+`)`)
	b.until("of how many portals", `document.querySelector(".coverage").innerText.includes("of 3 portals")`)
	b.clean("found elsewhere")
}

// provedElsewhere reads on the profile who signed it.
func (b *tab) provedElsewhere(ref, host string) {
	b.t.Helper()
	if got := b.path(); got != ref {
		b.fail("the result leads to %s", got)
	}
	b.until("the proof", `document.querySelector(".from .proof-proved").innerText.includes(`+js(host+" signed this")+`)`)
	b.click(".from-signed summary")
	b.until("what is signed", `document.querySelector(".from-signed").innerText.includes("p1") && document.querySelector('.from-signed a[href^="/api/v1/agents/storyteller@"]')`)
	b.shot("network-profile", true)
}

// talksElsewhere gives the agent a task from its profile, and sees the answer
// while it is made.
func (b *tab) talksElsewhere(far *model) {
	b.t.Helper()
	b.press(".talk .ask")
	b.press(".say button")
	select {
	case got := <-far.asked:
		if got != "A story about a dragon" {
			b.t.Errorf("the model was asked %q", got)
		}
	case <-time.After(patience):
		b.fail("the model was not asked")
	}
	for _, say := range [][2]string{{"Once upon", "Once upon"}, {" a time there", "Once upon a time there"}} {
		b.gives(far, say[0])
		b.streaming(say[1])
	}
	b.gives(far, " was a **dragon**.")
	b.gives(far, "")
	b.answered("Once upon a time there was a dragon.")
	b.until("each message once", `document.querySelectorAll(".message").length === 2`)
}

// gives has the model say something, if anybody still listens.
func (b *tab) gives(far *model, piece string) {
	b.t.Helper()
	select {
	case far.pieces <- piece:
	case <-time.After(patience):
		b.fail("nobody listens to the model")
	}
}

// must ends the test if a portal that lies could not do its part.
func (b *tab) must(what string, err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

// foundAgent is the link to an agent of another portal in the results of a search.
func foundAgent(id string) string {
	return `document.querySelector('.results a[href^="/agents/agent-` + id + `@"]')`
}

// rowOf is the text of a cell in the row of a portal.
func rowOf(name, cell string) string {
	return `[...document.querySelectorAll("table.portals tbody tr")].find((r) => r.innerText.includes(` + js(name) + `))?.querySelector(` + js(cell) + `)?.innerText`
}

// meets makes a portal known to another, with an agent that the other shows.
func (b *tab) meets(evil *federationtest.Liar, p *joined, id string) {
	b.t.Helper()
	b.must("sign", evil.Publish(id))
	b.must("hello", evil.Hello(b.t.Context(), p.at))
	b.must("hint", evil.Hint(b.t.Context(), p.at))
	b.open("/agents?q=agent+" + id)
	b.until("what it said when it was honest", again(foundAgent(id)))
}

// refusesForger sees a portal that is honest at first and then serves records that it did not sign.
func (b *tab) refusesForger(evil *federationtest.Liar, p *joined) {
	b.t.Helper()
	b.meets(evil, p, "bait")
	evil.Bend(true)
	b.must("sign", evil.Publish("switch"))
	b.must("hint", evil.Hint(b.t.Context(), p.at))
	b.open("/admin/peers")
	refused := rowOf("evil", `[data-label="refused"]`)
	b.until("what was refused", again(`(`+refused+` ?? "nothing").trim() !== "nothing"`))
	b.t.Log(eval[string](b, refused))
	b.shot("network-faults", true)
	b.open("/agents?q=agent+switch")
	b.until("nothing that it did not sign", `document.readyState === "complete" && !`+foundAgent("switch"))
}

// refusesLiar sees a portal that says two things under one number. It is another one than the forger, which is
// refused for an hour if it is asked three times before it says them.
func (b *tab) refusesLiar(evil *federationtest.Liar, p *joined) {
	b.t.Helper()
	b.meets(evil, p, "double")
	b.open("/admin/peers")
	b.must("two heads", evil.Fork(b.t.Context(), p.at))
	b.until("that it is kept out", again(rowOf("twofaced", ".state-why")+`?.includes("It signed two different statements under one number.")`))
	b.shot("network-quarantined", true)
	b.press(`table.portals a[href="/admin/peers/` + string(evil.Portal()) + `"]`)
	b.says("two different statements")
	b.shot("network-proof", true)
	b.open("/agents?q=agent+double")
	b.until("nothing of it", again(`document.readyState === "complete" && !`+foundAgent("double")))
}

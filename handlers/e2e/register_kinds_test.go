package e2e

import (
	"context"
	"io"
	"net/http"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"agentsite/internal/app"
	"agentsite/internal/cli"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// newcomer is somebody with an account who counts what they do.
type newcomer struct {
	*tab
	steps int
}

func (n *newcomer) press(selector string)      { n.t.Helper(); n.steps++; n.tab.press(selector) }
func (n *newcomer) fill(selector, text string) { n.t.Helper(); n.steps++; n.tab.fill(selector, text) }

// ownModel gives a portal a model of its own.
func ownModel(m *model) func(*app.Config) {
	return func(c *app.Config) { c.Name, c.LLMURL, c.LLMModel = "Agora", m.base(), "story-1" }
}

// parrotModel answers with what it is asked, in bold.
func parrotModel(t testing.TB) *model {
	return newModel(t).answers(func(message string) []string { return []string{"You said ", "**" + message + "**."} })
}

// start picks one of the quick ways in.
func (n *newcomer) start(kind string) {
	n.t.Helper()
	n.press(`[data-start="` + kind + `"]`)
	n.until("the focus on the name", `document.activeElement.id === "name"`)
}

// TestRegister_EveryKindWithinAMinute registers an agent of each kind from the
// start page: by pasting an address, or by a name and what it shall do. Nobody
// takes a minute for so few steps.
func TestRegister_EveryKindWithinAMinute(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range walked("desk without scripts") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mine, far := parrotModel(t), parrotModel(t)
			tools := agenttest.NewMCPServer(t, true)
			p := apptest.Start(t, ownModel(mine))
			b := visit(t, root, p, s).as(p.User(t, "ann"))
			pasted := func(address, kind string) func(*newcomer) {
				return func(n *newcomer) {
					n.fill("#url", address)
					n.press(".fetch button")
					n.says("Found “")
					n.until("the kind", `document.querySelector("#kind-`+kind+`").checked`)
					n.press(`button[name="save"]`)
				}
			}
			for _, way := range []struct {
				kind  string
				steps int
				do    func(*newcomer)
			}{
				{"a2a", 4, pasted(echo(t), "a2a")},
				{"mcp", 4, pasted(tools.Endpoint(agenttest.Echo), "mcp")},
				{"openai", 4, pasted(far.base(), "openai")},
				{"prompt", 5, func(n *newcomer) {
					n.start("prompt")
					n.fill("#name", "poet")
					n.fill("#instructions", "You write short poems. Always rhyme.")
					n.press(`button[name="save"]`)
				}},
				{"link", 5, func(n *newcomer) {
					n.press(`[data-start="program"]`)
					n.fill("#name", "laptop")
					n.fill("#description", "Runs on my laptop.")
					n.press(`button[name="save"]`)
					n.says("agentsite agent run --portal " + p.URL() + " --name laptop -- cat")
				}},
			} {
				b.open("/")
				n := &newcomer{tab: b}
				n.press(`.ways a[href="/agents/new"]`)
				way.do(n)
				if way.kind != "link" {
					n.says("It is registered. Next steps")
				}
				if n.steps > way.steps {
					t.Errorf("%s took %d steps", way.kind, n.steps)
				}
				b.shot("registered-"+way.kind+"-"+strings.ReplaceAll(name, " ", "-"), true)
				b.clean("registering " + way.kind)
			}
			// It works: the instructions introduce it and reach the model.
			b.open("/agents/poet")
			b.says("You write short poems.")
			b.fill("#text", "A rose")
			b.press(".talk .say button")
			b.answered("You said A rose.")
			b.clean("talking to what was registered")
		})
	}
}

// TestRegister_ShownCommandConnects runs the command that the page shows, as
// it stands, and talks to the program behind it.
func TestRegister_ShownCommandConnects(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	b := visit(t, root, p, desk).as(p.User(t, "ann"))
	b.form("link")
	b.fill("#name", "laptop")
	b.fill("#description", "Runs on my laptop.")
	b.press(`button[name="save"]`)
	b.says("It is registered")
	b.shot("connect-desk", true)
	b.resize(screen{width: 390, height: 844, phone: true, scripts: true})
	b.shot("connect-phone", true)
	if eval[bool](b, `document.documentElement.scrollWidth > innerWidth`) {
		t.Error("the page scrolls sideways")
	}
	b.resize(desk)
	shown := eval[string](b, `[...document.querySelectorAll("[data-copy-source]")].at(-1).textContent`)
	// Before it runs, a question says at once why no answer comes.
	b.press(`.connect a[href="/agents/laptop"]`)
	b.says("Start your program")
	b.fill("#text", "Is anybody there?")
	b.press(".talk .say button")
	b.until("the reason of the wait", `document.querySelector("[data-task-status]")?.checkVisibility() &&
		document.querySelector("[data-task-status]").textContent.includes("laptop is not connected. The portal waits up to ")`)
	b.until("no claim that it answers", `!document.querySelector("[data-task-state]").checkVisibility()`)
	b.shot("absent-desk", true)
	end := runShown(t, shown)
	b.answered("Is anybody there?")
	b.open("/agents/laptop")
	b.alive("/agents/laptop")
	b.says("Its program is connected: it answers now.")
	if eval[bool](b, `document.querySelector(".next").innerText.includes("Start your program")`) {
		t.Error("a connected program shall be started")
	}
	b.fill("#text", "Are you there?")
	b.press(".talk .say button")
	b.answered("Are you there?")
	b.clean("a linked program")
	end()
}

// runShown runs a command as the page shows it, in this process. The function that it returns ends the command.
func runShown(t *testing.T, shown string) (end func()) {
	t.Helper()
	args := strings.Fields(shown)
	if len(args) < 3 || path.Base(args[1]) != "agentsite" {
		t.Fatalf("the command is %q", args)
	}
	name, value, _ := strings.Cut(args[0], "=")
	variables := map[string]string{name: value}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, args[2:], func(k string) string { return variables[k] }, strings.NewReader(""), io.Discard, io.Discard)
	}()
	return func() {
		stop()
		if code := <-ended; code != 0 {
			t.Errorf("the command ended with %d", code)
		}
	}
}

// awaitAlive waits until the API says that an agent answers.
func awaitAlive(t *testing.T, c *apptest.Client, agent string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var a struct{ Liveness struct{ State string } }
		if c.Get(http.MethodGet, "/api/v1/agents/"+agent, nil, http.StatusOK, &a); a.Liveness.State == "alive" {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s is %s", agent, a.Liveness.State)
		}
	}
}

// TestRegister_ProgramInFourClicks goes from the home page of an account to the answer of a program on its laptop: at
// most four clicks, and one command that is copied whole, which also fetches the portal's executable.
func TestRegister_ProgramInFourClicks(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	for name, s := range map[string]screen{"desk": desk, "phone": screens["phone"]} {
		t.Run(name, func(t *testing.T) {
			ann := p.User(t, "ann-"+name)
			b := visit(t, root, p, s).as(ann)
			clicks := 0
			press := func(selector string) { clicks++; b.press(selector) }
			b.open("/")
			press(`.ways a[href="/agents/new/program"]`)
			b.shot("program-"+name, true)
			b.fill("#name", "laptop-"+name)
			b.fill("#description", "Repeats each message.")
			press(`button[name="save"]`)
			b.says("It is registered")
			b.scheme("dark")
			b.shot("program-command-dark-"+name, true)
			b.scheme("light")
			b.shot("program-command-"+name, true)
			if eval[bool](b, `document.documentElement.scrollWidth > innerWidth`) {
				t.Error("the page scrolls sideways")
			}
			b.says("Waiting for your program…")
			shown := eval[string](b, `document.querySelector("[data-copy-source]").textContent`)
			b.open("/agents/laptop-" + name + "/connect") // a reload shows the same command
			if again := eval[string](b, `document.querySelector("[data-copy-source]").textContent`); again != shown {
				t.Errorf("loaded again, the page shows %q, at first %q", again, shown)
			}
			clicks++
			b.click(`[data-copy]`)
			fetch, command, ok := strings.Cut(eval[string](b, `document.querySelector("[data-copy-source]").textContent`),
				" && chmod +x agentsite && ")
			if !ok || fetch != "curl -fsSo agentsite "+p.URL()+"/program" {
				t.Fatalf("the command begins with %q", fetch)
			}
			executable, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(executable)
			if err != nil {
				t.Fatal(err)
			}
			got := p.Guest(t).Must(http.MethodGet, "/program", nil, http.StatusOK)
			if got.Body != string(want) || got.Header.Get("Content-Disposition") != `attachment; filename="agentsite"` {
				t.Errorf("the file has %d bytes, the executable %d; headers %v", len(got.Body), len(want), got.Header)
			}
			end := runShown(t, command)
			awaitAlive(t, ann, "laptop-"+name)
			b.says("Connected: your program answers now.")
			b.fill("#text", "Are you there?")
			clicks++
			b.press(".connect .say button")
			b.answered("Are you there?")
			if clicks > 4 {
				t.Errorf("it took %d clicks", clicks)
			}
			b.clean("a program from a laptop")
			end()
		})
	}
}

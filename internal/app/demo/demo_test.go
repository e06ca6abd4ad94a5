package demo

import (
	"bytes"
	"context"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentsite/internal/testing/racetest"
)

// parallel is the number of tests that run at once. They wait for portals to find
// each other most of the time, so it exceeds the processors.
const parallel = "8"

// waitTime bounds a wait. It is long, because a busy machine must not fail a test.
const waitTime = 3 * time.Minute

// A look at a member that is under way when gossip ends goes on for some seconds.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", parallel); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode"),
		goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).handleIndirectPing.func2"))
}

// started is a federation that runs until the test ends.
func started(t testing.TB, n int) (f *federation, stdout, stderr *bytes.Buffer) {
	t.Helper()
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	f, err := openFolder(Config{Portals: n}, stderr)
	if err != nil {
		t.Fatal(err)
	}
	f.every = 0 // each line of progress
	t.Cleanup(func() {
		if err := f.close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(f.dir); !os.IsNotExist(err) {
			t.Errorf("the folder is still there: %v", err)
		}
	})
	if err := f.startPortals(t.Context(), n, stdout); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	return f, stdout, stderr
}

// answer asks an agent and waits for what it says.
func (c client) answer(t *testing.T, agent, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTime)
	defer cancel()
	m := &person{client: c}
	k := talk{agent: agent, title: "A test", asks: []string{text}}
	if err := m.askNext(ctx, &k); err != nil {
		t.Fatalf("ask %s: %v", agent, err)
	}
	for {
		var page struct {
			Messages []struct {
				Sender struct{ Kind, Handle string }
				Parts  []struct{ Text string }
			}
		}
		if err := c.callAPI(ctx, http.MethodGet, "/conversations/"+k.room+"/messages?after=0&limit=50", nil, &page); err != nil {
			t.Fatal(err)
		}
		for _, m := range page.Messages {
			if m.Sender.Kind == "agent" && len(m.Parts) > 0 {
				if name, _, _ := strings.Cut(agent, "@"); m.Sender.Handle != agent && m.Sender.Handle != name {
					t.Errorf("%s answered, not %s", m.Sender.Handle, agent)
				}
				return m.Parts[0].Text
			}
		}
		if pauseFor(ctx, foundPoll) != nil {
			t.Fatalf("%s does not answer: %+v", agent, page)
		}
	}
}

// checkProgress fails unless lines of progress read as work that goes on, and
// the last line says that it is done.
func checkProgress(t *testing.T, stderr string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	last := len(lines) - 1
	for _, line := range lines[:last] {
		if !strings.HasPrefix(line, "please wait: ") {
			t.Errorf("a line of progress reads %q", line)
		}
	}
	if lines[last] != "done: each portal finds all 16 agents" {
		t.Errorf("progress ends with %q", lines[last])
	}
}

func TestDemo_AgentsOfTheThirdPortalAnswerAtTheFirst(t *testing.T) {
	t.Parallel()
	f, stdout, stderr := started(t, 3)
	if len(f.portals) != 3 {
		t.Fatalf("%d portals started: %s", len(f.portals), stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	// 13 of their own, two of the portal that goes down and one of the liar.
	if len(lines) != 7 || !strings.HasPrefix(lines[6], "ready: 3 portals, 16 agents") {
		t.Errorf("it prints:\n%s", stdout)
	}
	checkProgress(t, stderr.String())
	// A demo whose portals do not find all agents in time is not called ready.
	var late strings.Builder
	f.printWelcome(&late, 16, false)
	if s := late.String(); strings.Contains(s, "ready") || !strings.Contains(s, "\nstarted: 3 portals, ") {
		t.Errorf("before all is found it prints:\n%s", s)
	}
	first, third := f.portals[0], f.portals[2]
	for _, p := range f.portals {
		if !strings.Contains(stdout.String(), p.name) || !strings.Contains(stdout.String(), p.url()+"/reset?link=") {
			t.Errorf("it prints nothing of %s at %s:\n%s", p.name, p.url(), stdout)
		}
	}
	// An agent that speaks A2A, and a server of tools.
	want := map[string][2]string{"moon-watch": {"2000-01-21", "**full moon**"}, "writing-bench": {"count one two three", "| words | 3 |"}}
	for name, ask := range want {
		agent := third.handle(name)
		c := first.clients[1]
		if got := c.answer(t, agent, ask[0]); !strings.Contains(got, ask[1]) {
			t.Errorf("%s answers %q, want %q in it", agent, got, ask[1])
		}
		var page struct {
			Results []struct{ Agent struct{ Handle string } }
		}
		err := c.callAPI(t.Context(), http.MethodGet, "/search?q="+name, nil, &page)
		if err != nil || !slices.ContainsFunc(page.Results, func(r struct{ Agent struct{ Handle string } }) bool { return r.Agent.Handle == agent }) {
			t.Errorf("a search for %s finds %+v, %v", name, page, err)
		}
	}
	// The operator sees the liar, and nobody finds its agent any more.
	f.makeHistory(t.Context())
	ctx, cancel := context.WithTimeout(t.Context(), waitTime)
	defer cancel()
	for {
		var list struct {
			Peers []struct{ Name, State, Reason string }
		}
		if err := first.clients[0].callAPI(ctx, http.MethodGet, "/peers", nil, &list); err != nil {
			t.Fatal(err)
		}
		n, err := third.countFound(ctx, "federation")
		if err != nil {
			t.Fatal(err)
		}
		caught := slices.ContainsFunc(list.Peers, func(p struct{ Name, State, Reason string }) bool {
			return p.Name == f.wrongs.liar.name && p.State == "quarantined" && strings.Contains(p.Reason, "two different statements")
		})
		if caught && n == 15 {
			break
		}
		if pauseFor(ctx, foundPoll) != nil {
			t.Fatalf("the liar is not caught everywhere: %+v, and the third portal finds %d agents", list.Peers, n)
		}
	}
	// The link lets the operator in.
	resp, err := f.http.Get(first.link)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", first.link, resp.Status)
	}
}

func TestDemo_OnePortalThatFailsLeavesTheOthers(t *testing.T) {
	t.Parallel()
	f, err := openFolder(Config{Portals: 3}, new(bytes.Buffer))
	if err != nil {
		t.Fatal(err)
	}
	errs := new(bytes.Buffer)
	f.stderr = errs
	defer f.close()
	// The first one cannot make its folder, so that the second one is joined.
	if err := os.WriteFile(filepath.Join(f.dir, castRoles(1)[0].folder), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.startPortals(t.Context(), 3, new(bytes.Buffer)); err != nil {
		t.Fatal(err)
	}
	if len(f.portals) != 2 || !strings.Contains(errs.String(), castRoles(1)[0].name+" does not start") {
		t.Fatalf("%d portals started: %s", len(f.portals), errs)
	}
	// Another one stops while they run.
	f.portals[0].cancel()
	<-f.portals[0].done
	second := f.portals[1]
	if got := second.clients[1].answer(t, second.handle("moon-watch"), "2000-01-21"); !strings.Contains(got, "full moon") {
		t.Errorf("the last one says %q", got)
	}
}

func TestRun_EndsWithItsContextAndLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	out := &said{what: []byte("ready: "), heard: make(chan struct{})}
	errs := new(bytes.Buffer)
	done := make(chan error, 1)
	go func() { done <- Run(ctx, Config{Portals: 1}, out, errs) }()
	select {
	case <-out.heard:
	case err := <-done:
		t.Fatalf("it ended: %v %s", err, errs)
	}
	cancel()
	select {
	case err := <-done:
		if err != nil || strings.Contains(errs.String(), "agentsite: ") {
			t.Errorf("it ends with %v, and says %q", err, errs)
		}
	case <-time.After(waitTime):
		t.Fatal("it does not end")
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// Portals die, others come: what is left is found everywhere.
func TestDrill(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &said{what: []byte("all is found: at each of 4 portals"), heard: make(chan struct{})}
	errs := new(bytes.Buffer)
	done := make(chan error, 1)
	go func() { done <- Run(ctx, Config{Portals: 6, Kill: 3, Keep: t.TempDir(), soon: true}, out, errs) }()
	select {
	case <-out.heard:
	case err := <-done:
		t.Fatalf("it ended: %v %s", err, errs)
	case <-time.After(waitTime):
		cancel()
		<-done
		t.Fatalf("not all is found: %s", errs)
	}
	cancel()
	if err := <-done; err != nil || strings.Contains(errs.String(), "agentsite: ") {
		t.Errorf("it ends with %v, and says %q", err, errs)
	}
}

func TestConfig_Validate(t *testing.T) {
	t.Parallel()
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []Config{{Portals: 0}, {Portals: 3, Kill: 3}, {Portals: 3, Kill: -1}, {Portals: MaxPortals + 1}, {Portals: 3, Keep: full}, {Portals: 3, Keep: filepath.Join(full, "x")}} {
		if c.Validate() == nil {
			t.Errorf("%+v is let through", c)
		}
	}
	for _, c := range []Config{{Portals: 1}, {Portals: 3, Kill: 2}, {Portals: MaxPortals, Keep: t.TempDir()}, {Portals: 3, Keep: filepath.Join(full, "new")}} {
		if err := c.Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestRoles_AreEnoughAndDiffer(t *testing.T) {
	t.Parallel()
	names := make(map[string]bool)
	var before role
	for i, r := range castRoles(MaxPortals) {
		if names[r.name] || r.name == "" {
			t.Errorf("portal %d: a second %q", i, r.name)
		}
		names[r.name] = true
		at := make(map[string]bool)
		for _, a := range before.agents {
			at[a.Name] = true
		}
		for _, a := range r.agents {
			if at[a.Name] {
				t.Errorf("%s has a second %s, or the one of its neighbour", r.name, a.Name)
			}
			at[a.Name] = true
		}
		if n := len(r.agents) + len(r.benches); n < 3 || n > 5 {
			t.Errorf("%s has %d agents", r.name, n)
		}
		if people := countWords(r.people); len(people) != peopleEach {
			t.Errorf("%s: %v", r.name, r.people)
		}
		before = r
	}
}

func TestSaid_HearsOnce(t *testing.T) {
	t.Parallel()
	s := &said{what: []byte("ready"), heard: make(chan struct{})}
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() { s.Write([]byte("ready http://x\n")) })
	}
	group.Wait()
	<-s.heard
}

package demo

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/internal/team/flow"
	"agentsite/internal/testing/racetest"
)

// given is a goal as the API shows it.
type given struct {
	ID, State, Reason, Conclusion string
	Turns                         int
	Tasks                         []struct{ Owner, State, Text string }
}

// awaitGoal reads a goal until a condition is met.
func awaitGoal(ctx context.Context, t *testing.T, c client, id string, met func(given) bool) (g given) {
	t.Helper()
	for {
		if err := c.callAPI(ctx, http.MethodGet, "/goals/"+id, nil, &g); err != nil {
			t.Fatal(err)
		}
		if met(g) {
			return g
		}
		if pauseFor(ctx, foundPoll) != nil {
			t.Fatalf("%+v", g)
		}
	}
}

func hasEnded(g given) bool {
	return g.State == "concluded" || g.State == "failed" || g.State == "canceled"
}

// portalsOf returns the hosts of the owners of the tasks.
func portalsOf(g given) map[string]bool {
	hosts := make(map[string]bool)
	for _, k := range g.Tasks {
		_, host, _ := strings.Cut(k.Owner, "@")
		hosts[host] = true
	}
	return hosts
}

// The goals that the pages offer are solved by agents of at least two portals, without a model.
func TestDemo_TeamsSolveTheGoals(t *testing.T) {
	t.Parallel()
	f, _, _ := started(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), waitTime)
	defer cancel()
	c := f.portals[0].clients[1]
	want := [][]string{{"67 is **prime**", "**full moon**"}, {"| words | 3 |", "MCMXCIV", "**12**"},
		{"shop.example", "Service Unavailable", "10.1.3.255"}}
	for i, text := range goals {
		var g given
		if err := c.callAPI(ctx, http.MethodPost, "/goals", object{"goal": text}, &g); err != nil {
			t.Fatal(err)
		}
		g = awaitGoal(ctx, t, c, g.ID, hasEnded)
		if n := len(portalsOf(g)); g.State != "concluded" || strings.Contains(g.Conclusion, "Missing") || n < 2 {
			t.Errorf("%s %s, by agents of %d portals %+v:\n%s", g.State, g.Reason, n, g.Tasks, g.Conclusion)
		}
		for _, s := range want[i] {
			if !strings.Contains(g.Conclusion, s) {
				var log struct{ Events []map[string]any }
				_ = c.callAPI(ctx, http.MethodGet, "/goals/"+g.ID+"/events", nil, &log)
				t.Errorf("no %q in\n%s\n%v", s, g.Conclusion, log.Events[1])
			}
		}
	}
}

// Teams by rules solve most goals of the set, which was stored before the rules were tuned for it: 41 of 42.
func TestDemo_TeamsSolveTheSet(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	f, _, _ := started(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), waitTime)
	defer cancel()
	file, err := os.ReadFile("testdata/goals.tsv")
	if err != nil {
		t.Fatal(err)
	}
	c := f.portals[0].clients[1]
	solved, total, tasks, turns := make(map[string]int), make(map[string]int), 0, 0
	repeated, messages := 0, 0
	for line := range strings.Lines(string(file)) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") || len(cells) != 3 {
			continue
		}
		var g given
		body := object{"goal": strings.ReplaceAll(cells[1], `\n`, "\n")}
		if err := c.callAPI(ctx, http.MethodPost, "/goals", body, &g); err != nil {
			t.Fatal(err)
		}
		g = awaitGoal(ctx, t, c, g.ID, hasEnded)
		tasks, turns = tasks+len(g.Tasks), turns+g.Turns
		again, said := countRepeated(ctx, t, c, g.ID)
		repeated, messages = repeated+again, messages+said
		total[cells[0]]++
		missing := ""
		for want := range strings.SplitSeq(cells[2], ";") {
			if !strings.Contains(g.Conclusion, want) {
				missing = want
			}
		}
		if g.State == "concluded" && missing == "" {
			solved[cells[0]]++
		} else {
			t.Logf("%s: %s, no %q: %.300q", cells[1], g.State, missing, g.Conclusion)
		}
	}
	n, all := 0, 0
	for kind := range total {
		n, all = n+solved[kind], all+total[kind]
	}
	t.Logf("solved %d of %d, by kind %v of %v, with %d tasks in %d turns", n, all, solved, total, tasks, turns)
	t.Logf("%d of %d messages say the same as an earlier one", repeated, messages)
	if messages < 2*all || repeated*100 > messages*5 {
		t.Errorf("%d of %d messages are repeated", repeated, messages)
	}
	if all < 40 || n*100 < all*80 {
		t.Errorf("%d of %d goals are solved", n, all)
	}
}

// countRepeated returns the repeated messages of a goal, and all of them.
func countRepeated(ctx context.Context, t *testing.T, c client, id string) (repeated, messages int) {
	t.Helper()
	var out struct {
		Events []struct {
			Kind  flow.Kind
			State flow.Status
			Text  string
			Move  *struct {
				Kind  flow.MoveKind
				Text  string
				Tasks []struct{ Text string }
			}
		}
	}
	if err := c.callAPI(ctx, http.MethodGet, "/goals/"+id+"/events", nil, &out); err != nil {
		t.Fatal(err)
	}
	var log []flow.Event
	for _, e := range out.Events {
		to := flow.Event{Kind: e.Kind, Status: e.State, Text: e.Text}
		if e.Move != nil {
			to.Move = &flow.Move{Kind: e.Move.Kind, Text: e.Move.Text}
			for _, k := range e.Move.Tasks {
				to.Move.Tasks = append(to.Move.Tasks, flow.Assignment{Text: k.Text})
			}
		}
		log = append(log, to)
	}
	return flow.CountRepeated(log)
}

// Members are agents of three operators. One of the portals dies while its agent works: the goal ends with the results
// of the others and names the part that is missing, at its deadline at the latest. A portal gets nothing of the goal but its agent's task.
func TestDemo_AGoalOutlivesAPortal(t *testing.T) {
	if os.Getenv("AGENTSITE_TEST_FULL") == "" {
		t.Skip("it waits for the deadline of a goal; AGENTSITE_TEST_FULL runs it")
	}
	t.Parallel()
	f, _, _ := started(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), waitTime)
	defer cancel()
	var mu sync.Mutex // guards heard
	var heard []string
	begun, ended := make(chan struct{}, 9), make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			return // a look whether it is there
		}
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		heard = append(heard, string(b))
		mu.Unlock()
		begun <- struct{}{}
		<-ended
	}))
	defer hangs.Close()
	defer close(ended)
	first, third := f.portals[0], f.portals[2]
	if err := third.clients[0].callAPI(ctx, http.MethodPost, "/agents", object{"name": "juggler", "description": "Juggles balls and clubs.",
		"kind": "openai", "endpoint": hangs.URL + "/v1", "visibility": "public", "config": object{"model": "balls"}}, nil); err != nil {
		t.Fatal(err)
	}
	c := first.clients[1]
	m := person{client: c}
	if err := m.findAgent(ctx, third.handle("juggler")); err != nil {
		t.Fatal(err)
	}
	var g given
	if err := c.callAPI(ctx, http.MethodPost, "/goals", object{"deadline": time.Now().Add(2 * time.Minute),
		"goal": "Juggle three balls. What is 15% of 80? Take the number 360 apart into prime factors."}, &g); err != nil {
		t.Fatal(err)
	}
	select {
	case <-begun:
	case <-ctx.Done():
		t.Fatalf("the juggler is not asked: %+v", awaitGoal(context.WithoutCancel(ctx), t, c, g.ID, func(given) bool { return true }))
	}
	g = awaitGoal(ctx, t, c, g.ID, func(g given) bool {
		return len(g.Tasks) == 3 && g.Tasks[1].State == "completed" && g.Tasks[2].State == "completed"
	})
	if n := len(portalsOf(g)); n != 3 {
		t.Errorf("agents of %d portals: %+v", n, g.Tasks)
	}
	third.cancel()
	<-third.done
	g = awaitGoal(ctx, t, c, g.ID, hasEnded)
	if !strings.Contains(g.Conclusion, "**12**") || !strings.Contains(g.Conclusion, "2^3 × 3^2 × 5") ||
		!strings.Contains(g.Conclusion, "Missing:\n- Juggle three balls.") {
		t.Errorf("%s %s:\n%s", g.State, g.Reason, g.Conclusion)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, s := range heard {
		if !strings.Contains(s, "Juggle three balls") || strings.Contains(s, "15%") || strings.Contains(s, "360") {
			t.Errorf("the portal of the juggler got %s", s)
		}
	}
}

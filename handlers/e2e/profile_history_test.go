package e2e

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"agentsite/internal/testing/apptest"
)

// moody is a model that can be told to refuse everybody.
type moody struct {
	*httptest.Server
	broken atomic.Bool
}

func newMoody(t testing.TB) *moody {
	m := &moody{}
	well := newModel(t).answers(func(string) []string { return []string{"Yes."} })
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.broken.Load() {
			if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
				c.Close()
			}
			return
		}
		well.ServeHTTP(w, r)
	}))
	t.Cleanup(m.Close)
	return m
}

func check(c *apptest.Client, name string, times int) {
	for range times {
		c.Must(http.MethodPost, "/api/v1/agents/"+name+"/check", nil, http.StatusOK)
	}
}

// TestProfile_Alive shows whether an agent is alive, since when, why not, and
// how it was, as a picture that can also be read.
func TestProfile_Alive(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p, far := apptest.Start(t), newMoody(t)
	ada := p.User(t, "ada")
	register(ada, registration{Name: "moody", Title: "Moody", Description: "Answers when it likes.", Endpoint: far.URL + "/v1"})
	check(ada, "moody", 3)
	a := visit(t, root, p, desk).as(ada)
	a.open("/agents/moody")
	a.says("Alive since")
	before := eval[int](a, `document.querySelectorAll("svg.bars .bar-alive").length`)
	if before < 4 || eval[int](a, `document.querySelectorAll("svg.bars .bar-unreachable").length`) != 0 {
		t.Errorf("%d bars after 4 checks that were answered", before)
	}
	far.broken.Store(true)
	a.press(`form[action="/agents/moody/check"] button`)
	a.until("a bar that is no answer", `document.querySelectorAll("svg.bars .bar:not(.bar-alive)").length === 1`)
	a.says("Checked just now")
	if why := eval[string](a, `document.querySelector("#alive .health-line + p").innerText`); len(why) < 10 {
		t.Errorf("the reason is %q", why)
	}
	if read := eval[string](a, `document.querySelector("svg.bars desc").textContent`); !strings.Contains(read, " alive, 1 ") {
		t.Errorf("the picture is read as %q", read)
	}
	far.broken.Store(false)
	check(ada, "moody", 2)
	a.open("/agents/moody")
	a.says("Alive since")
	a.look("profile-moody")

	g := visit(t, root, p, screen{width: 390, height: 844, phone: true})
	g.open("/agents/moody")
	g.has("svg.bars[role=img]")
	if eval[bool](g, `!!document.querySelector('form[action$="/check"], a[href$="/owner"]')`) {
		t.Error("a visitor is offered what is the owner's")
	}
	// What it can do comes before whether it is alive, and that before its use.
	order := eval[[]float64](g, `["#talk-title", "#alive-title", "#runs-title", "#text-title", "#uses-title"].map((s) => document.querySelector(s).getBoundingClientRect().top)`)
	for i := 1; i < len(order); i++ {
		if order[i] <= order[i-1] {
			t.Errorf("on a phone the sections stand at %v", order)
		}
	}
	g.clean("profile of a visitor")
}

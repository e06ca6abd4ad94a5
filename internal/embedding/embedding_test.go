package embedding

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/hub"
	"agentsite/internal/index"
	"agentsite/internal/meaning"
	"agentsite/internal/testing/embedtest"
)

// direct sends requests to a handler without a network, because connections are no part of a synctest bubble.
type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

// slang are words that only the server's model knows.
var slang = map[string]string{"zorbing": "sick puppy", "grumfle": "leaking pipes"}

type world struct {
	*Service
	server *embedtest.Server
	dir    string
	stop   func()
}

func agentOf(name, title, description string) hub.Agent {
	return hub.Agent{ID: name, Name: name, Kind: hub.A2A, Visibility: hub.Public, Title: title, Description: description,
		Status: hub.Status{State: hub.Active}, Liveness: hub.Liveness{State: hub.Alive}}
}

func startWorld(t *testing.T, server *embedtest.Server, dir string, edit ...func(*Config)) *world {
	t.Helper()
	m, err := meaning.Open()
	if err != nil {
		t.Fatal(err)
	}
	x := index.NewWithMeaning(m, meaning.Dims)
	x.Put(agentOf("vetta", "Vetta", "Canine illness, feline illness. Animal hospital."))
	x.Put(agentOf("pipes", "Pipes", "Repairs leaking pipes and taps."))
	x.Put(agentOf("ledger", "Ledger", "Prepares income tax returns."))
	cfg := Config{Server: Server{URL: "http://127.0.0.1:1/v1", Model: "m"}, Transport: direct{server}, Index: x,
		Builtin: m, Path: filepath.Join(dir, CacheFile), Log: slog.New(slog.DiscardHandler)}
	for _, e := range edit {
		e(&cfg)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w := &world{Service: New(cfg), server: server, dir: dir}
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	w.stop = func() { cancel(); <-done }
	t.Cleanup(w.stop)
	synctest.Wait()
	return w
}

func (w *world) find(t *testing.T, q hub.Query) string {
	t.Helper()
	page, err := w.Search(q)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range page.Results {
		names = append(names, r.Agent.Name)
	}
	return strings.Join(names, " ")
}

func text(s string) hub.Query { return hub.Query{Text: s} }

func TestSearch_IsByTheServersModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWorld(t, embedtest.New(t, slang), t.TempDir())
		if st := w.Status(); !st.Up || st.Missing != 0 || st.Agents != 3 || st.Reason != "" {
			t.Fatalf("%+v", st)
		}
		for q, want := range map[string]string{"zorbing": "vetta", "grumfle": "pipes", "my puppy has a fever": "vetta",
			"quantum chromodynamics on a lattice": ""} {
			if got := w.find(t, text(q)); got != want {
				t.Errorf("%q finds %q, want %q", q, got, want)
			}
		}
		if got := w.find(t, hub.Query{Text: "zorbing", Mode: hub.ModeWords}); got != "" {
			t.Errorf("by words %q", got)
		}
		// An agent is found as soon as its vectors are there, a changed one by its new text only.
		w.Put(agentOf("vetta", "Vetta", "Sells flowers and bouquets."))
		w.Put(agentOf("doc", "Doc", "Canine illness, animal hospital."))
		synctest.Wait()
		if got := w.find(t, text("zorbing")); got != "doc" {
			t.Errorf("after a change %q", got)
		}
	})
}

func TestSearch_KeepsAQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWorld(t, embedtest.New(t, slang), t.TempDir())
		w.find(t, text("zorbing"))
		_, before := w.server.Asked()
		w.find(t, text("zorbing -cat"))
		if _, after := w.server.Asked(); after != before {
			t.Errorf("%d requests for a query that was asked before", after-before)
		}
	})
}

func TestRun_AsksForATextOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, server := t.TempDir(), embedtest.New(t, slang)
		w := startWorld(t, server, dir)
		w.stop()
		before, _ := server.Asked()
		w = startWorld(t, server, dir)
		after, _ := server.Asked()
		if got := after[len(before):]; len(got) != len(probeTexts()) {
			t.Errorf("after a restart %q were asked again", got[len(probeTexts()):])
		}
		if got := w.find(t, text("zorbing")); got != "vetta" {
			t.Errorf("from the cache %q", got)
		}
		// A damaged end of the file costs only its own vectors.
		w.stop()
		path := filepath.Join(dir, CacheFile)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)-10] ^= 1
		if err := os.WriteFile(path, b[:len(b)-1], 0o600); err != nil {
			t.Fatal(err)
		}
		before, _ = server.Asked()
		w = startWorld(t, server, dir)
		after, _ = server.Asked()
		if got := after[len(before)+len(probeTexts()):]; len(got) != 1 || w.find(t, text("zorbing")) != "vetta" {
			t.Errorf("after damage %q were asked", got)
		}
	})
}

func TestRun_ForgetsRemovedAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWorld(t, embedtest.New(t, slang), t.TempDir())
		if n := w.cache.countVectors(); n != 3 {
			t.Fatalf("%d vectors", n)
		}
		w.Remove("ledger")
		time.Sleep(tidyEvery + time.Minute)
		synctest.Wait()
		if n := w.cache.countVectors(); n != 2 {
			t.Errorf("%d vectors a day later", n)
		}
		if got := w.find(t, text("zorbing")); got != "vetta" {
			t.Errorf("then %q", got)
		}
	})
}

func TestRun_WaitsForTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := embedtest.New(t, slang)
		server.SetDown(true)
		w := startWorld(t, server, t.TempDir())
		if st := w.Status(); st.Up || st.Missing != 3 || !strings.Contains(st.Reason, "no room") {
			t.Errorf("%+v", st)
		}
		check := func(when, zorbing string) {
			t.Helper()
			if got := w.find(t, text("my puppy has a fever")); got != "vetta" {
				t.Errorf("%s: the model in the binary finds %q", when, got)
			}
			if got := w.find(t, text("zorbing")); got != zorbing {
				t.Errorf("%s: %q", when, got)
			}
		}
		check("before", "")
		server.SetDown(false)
		time.Sleep(lastPause)
		synctest.Wait()
		check("when it answers", "vetta")
		server.SetDown(true)
		if got := w.find(t, text("grumfle")); got != "" {
			t.Errorf("a query without a vector finds %q", got)
		}
		if st := w.Status(); st.Up || st.Reason == "" {
			t.Errorf("%+v", st)
		}
		_, before := server.Asked()
		w.find(t, text("another query"))
		if _, after := server.Asked(); after != before {
			t.Error("a server that does not answer is asked by searches")
		}
		server.SetDown(false)
		time.Sleep(lastPause)
		synctest.Wait()
		if got := w.find(t, text("grumfle")); got != "pipes" {
			t.Errorf("when it is back: %q", got)
		}
	})
}

func TestRun_NeverMixesModels(t *testing.T) {
	for name, change := range map[string]func(*embedtest.Server, *Config){
		"another name":       func(_ *embedtest.Server, c *Config) { c.Server.Model = "m2" },
		"another model":      func(s *embedtest.Server, _ *Config) { s.SetTurned(true) },
		"another dimensions": func(s *embedtest.Server, _ *Config) { s.SetDims(400) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir, server := t.TempDir(), embedtest.New(t, slang)
				startWorld(t, server, dir).stop()
				before, _ := server.Asked()
				w := startWorld(t, server, dir, func(c *Config) { change(server, c) })
				after, _ := server.Asked()
				if got := after[len(before)+len(probeTexts()):]; len(got) != 3 {
					t.Errorf("asked again: %q", got)
				}
				if got := w.find(t, text("zorbing")); got != "vetta" {
					t.Errorf("finds %q", got)
				}
			})
		})
	}
}

// The model changes while the portal runs: the change is noticed after the next failure.
func TestRun_EncodesAllAfterAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := embedtest.New(t, slang)
		w := startWorld(t, server, t.TempDir())
		server.SetDims(400)
		if got := w.find(t, text("zorbing")); got != "" {
			t.Errorf("a vector of other dimensions finds %q", got)
		}
		if st := w.Status(); st.Up || !strings.Contains(st.Reason, "dimensions") {
			t.Errorf("%+v", st)
		}
		time.Sleep(lastPause)
		synctest.Wait()
		if got := w.find(t, text("zorbing")); got != "vetta" {
			t.Errorf("later %q", got)
		}
	})
}

func TestSearch_KeepsPrivateTexts(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := startWorld(t, embedtest.New(t, slang), t.TempDir(), func(c *Config) { c.Private = allowed })
			hidden := agentOf("hidden", "Hidden", "A secret of its owner.")
			hidden.Visibility = hub.Private
			w.Put(hidden)
			w.find(t, hub.Query{Text: "zorbing in a conversation", Private: true})
			synctest.Wait()
			asked, _ := w.server.Asked()
			if got := slices.Contains(asked, "zorbing in a conversation"); got != allowed {
				t.Errorf("allowed %v: sent %v", allowed, got)
			}
			if slices.ContainsFunc(asked, func(s string) bool { return strings.Contains(s, "secret") }) {
				t.Error("the text of an agent that is not public was sent")
			}
		})
	}
}

func TestSearch_FollowsACursorByItsModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, server := t.TempDir(), embedtest.New(t, slang)
		w := startWorld(t, server, dir)
		w.Put(agentOf("doc", "Doc", "Canine illness and fever."))
		synctest.Wait()
		page, err := w.Search(hub.Query{Text: "zorbing", Limit: 1})
		if err != nil || page.NextCursor == "" {
			t.Fatal(err, page)
		}
		next, err := w.Search(hub.Query{Text: "zorbing", Limit: 1, Cursor: page.NextCursor})
		if err != nil || len(next.Results) != 1 || next.Results[0].Agent.ID == page.Results[0].Agent.ID {
			t.Errorf("%v %v", next.Results, err)
		}
		w.stop()
		server.SetDown(true)
		w = startWorld(t, server, dir)
		if _, err := w.Search(hub.Query{Text: "zorbing", Limit: 1, Cursor: page.NextCursor}); err == nil ||
			!strings.Contains(err.Error(), "cursor") {
			t.Errorf("without the model the page goes on: %v", err)
		}
	})
}

func TestBeside_ComparesOneModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWorld(t, embedtest.New(t, slang), t.TempDir())
		w.find(t, text("zorbing"))
		few := []hub.Agent{agentOf("far", "Far", "Canine illness, animal hospital.")}
		page, err := w.Beside(few, text("zorbing"))
		if err != nil || len(page.Results) != 1 {
			t.Errorf("%v %v", page.Results, err)
		}
		w.server.SetDown(true)
		few[0].Description = "Animal hospital, canine illness."
		if page, err = w.Beside(few, text("zorbing")); err != nil || len(page.Results) != 0 {
			t.Errorf("without its vectors %v %v", page.Results, err)
		}
	})
}

func TestRun_CutsTextsThatAreTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := embedtest.New(t, slang)
		server.SetLongest(120)
		w := startWorld(t, server, t.TempDir())
		w.Put(agentOf("long", "Long", "Canine illness, feline illness. "+strings.Repeat("很", 400)))
		synctest.Wait()
		if st := w.Status(); !st.Up || st.Missing != 0 {
			t.Errorf("%+v", st)
		}
		if got := w.find(t, text("zorbing")); got != "vetta" && got != "vetta long" && got != "long vetta" {
			t.Errorf("finds %q", got)
		}
	})
}

// flat is a server whose vectors are all alike.
type flat struct{}

func (flat) RoundTrip(*http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	w.WriteString(`{"data":[`)
	for i := range probeTexts() {
		if i > 0 {
			w.WriteString(",")
		}
		fmt.Fprintf(w, `{"index":%d,"embedding":[1,2]}`, i)
	}
	w.WriteString(`]}`)
	return w.Result(), nil
}

func TestRun_RefusesAUselessModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWorld(t, embedtest.New(t, slang), t.TempDir(), func(c *Config) { c.Transport = flat{} })
		if st := w.Status(); st.Up || st.Reason != errUseless.Error() || w.find(t, text("my puppy has a fever")) != "vetta" {
			t.Errorf("%+v", st)
		}
	})
}

func TestReadVectors_RefusesWrongAnswers(t *testing.T) {
	for _, body := range []string{
		``, `[]`, `{}`, `{"data":[]}`, `{"data":[{"index":0,"embedding":[1]}]}`,
		`{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`,
		`{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}`,
		`{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`,
		`{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[0]}]}`,
		`{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[]}]}`,
		`{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":"AAAA"}]}`,
	} {
		if got, err := readVectors([]byte(body), 2); err == nil {
			t.Errorf("%s is read as %v", body, got)
		}
	}
	got, err := readVectors([]byte(`{"data":[{"index":1,"embedding":[0,2]},{"index":0,"embedding":[3,4]}]}`), 2)
	if err != nil || got[0][0] != 0.6 || got[1][1] != 1 {
		t.Errorf("%v %v", got, err)
	}
}

func TestClient_SaysWhatIsWrong(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		w.Write([]byte(`{"error":{"message":"bad key ` + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") + `"}}`))
	}))
	defer server.Close()
	c := newClient(Server{URL: server.URL + "/v1", Key: "sk-secret", Model: "m"}, http.DefaultTransport)
	_, err := c.askServer(t.Context(), []string{"a"})
	if err == nil || errors.Is(err, errRefused) || !strings.Contains(err.Error(), "401: bad key [key]") {
		t.Error(err)
	}
}

package client_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/internal/record"
	"agentsite/internal/testing/federationtest"
	"agentsite/peering/client"
)

func TestClient_StrangersMeet(t *testing.T) {
	t.Parallel()
	var n wires
	a, b := newSite(t, &n, "a.example"), newSite(t, &n, "b.example")
	status, body, err := a.do(t, b, http.MethodPost, "/peering/v1/echo?x=1", `{"hello":true}`)
	if err != nil || status != http.StatusOK || !strings.Contains(body, string(a.self.ID())) || !strings.Contains(body, "/peering/v1/echo?x=1") || !strings.Contains(body, `{\"hello\":true}`) {
		t.Fatal(status, body, err)
	}
	if n.asked("POST https://b.example/peering/v1/hello") != 1 || n.asked("GET https://a.example/.well-known/agentsite") != 1 {
		t.Errorf("%q", n.log)
	}
	for _, s := range []*site{a, b} {
		list := s.registry.Portals(t.Context())
		if len(list) != 1 || list[0].Proved.IsZero() || list[0].State != federation.Active {
			t.Errorf("%+v", list)
		}
	}
	// From now on no word more than needed.
	before := n.requests()
	if status, _, err := a.do(t, b, http.MethodGet, "/peering/v1/echo/y", ""); err != nil || status != http.StatusOK || n.requests() != before+1 {
		t.Error(status, err, n.log[before:])
	}
	if status, _, err := b.do(t, a, http.MethodGet, "/peering/v1/echo/y", ""); err != nil || status != http.StatusOK || n.asked("POST https://a.example/peering/v1/hello") != 0 {
		t.Error(status, err)
	}
}

func TestClient_NewKeyIsToldWhenItIsAskedFor(t *testing.T) {
	t.Parallel()
	var n wires
	a, b := newSite(t, &n, "a.example"), newSite(t, &n, "b.example")
	ctx := t.Context()
	if _, err := a.client.Handshake(ctx, b.origin, ""); err != nil {
		t.Fatal(err)
	}
	old := a.op.List()[0]
	if err := a.op.Revoke(clock.Now(), old.Public()); err != nil {
		t.Fatal(err)
	}
	if err := a.self.Renew(ctx); err != nil {
		t.Fatal(err)
	}
	if status, body, err := a.do(t, b, http.MethodGet, "/peering/v1/echo/x", ""); err != nil || status != http.StatusOK {
		t.Fatal(status, body, err)
	}
	if n.asked("POST https://b.example/peering/v1/hello") != 2 {
		t.Errorf("%q", n.log)
	}
}

func TestClient_AsksOnlyWhomItMeans(t *testing.T) {
	t.Parallel()
	var n wires
	a, b, c := newSite(t, &n, "a.example"), newSite(t, &n, "b.example"), newSite(t, &n, "c.example")
	ctx := t.Context()
	if _, err := a.client.Do(ctx, b.origin, c.self.ID(), http.MethodGet, "/peering/v1/echo/x", nil, 100); !errors.Is(err, guard.ErrImpostor) {
		t.Error(err)
	}
	if n.asked("GET https://b.example/peering/v1/echo/x") != 0 {
		t.Error("another portal was asked")
	}
	if err := a.client.Prove(ctx, b.origin, b.self.ID()); err != nil {
		t.Error(err)
	}
	if err := a.client.Prove(ctx, b.origin, c.self.ID()); !errors.Is(err, guard.ErrImpostor) {
		t.Error(err)
	}
	for _, origin := range []string{a.origin, "http://b.example", "b.example", ""} {
		if _, err := a.client.Do(ctx, origin, "", http.MethodGet, "/x", nil, 100); err == nil {
			t.Errorf("%q was asked", origin)
		}
	}
	// Who says that it is elsewhere is not here.
	n.set("d.example", n.hosts["b.example"])
	if err := a.client.Prove(ctx, "https://d.example", b.self.ID()); err == nil || !strings.Contains(err.Error(), "https://b.example") {
		t.Error(err)
	}
	a.registry.Say(b.self.ID(), federation.Decision{State: federation.Denied, Reason: "No."})
	before := n.requests()
	if _, _, err := a.do(t, b, http.MethodGet, "/peering/v1/echo/x", ""); federation.RefusalOf(err).Reason != federation.ReasonDenied || n.requests() != before {
		t.Error("a denied portal was asked", err)
	}
}

func TestClient_AnotherNetworkIsNotMet(t *testing.T) {
	t.Parallel()
	var n wires
	a, b := newSite(t, &n, "a.example"), newSite(t, &n, "b.example", func(c *federation.SelfConfig) { c.Network = "elsewhere" })
	if _, err := a.client.Handshake(t.Context(), b.origin, ""); federation.RefusalOf(err).Reason != federation.ReasonNetwork {
		t.Error(err)
	}
}

func TestClient_BoundsAnswers(t *testing.T) {
	t.Parallel()
	var n wires
	a, b := newSite(t, &n, "a.example"), newSite(t, &n, "b.example")
	ctx := t.Context()
	if err := a.client.Prove(ctx, b.origin, b.self.ID()); err != nil {
		t.Fatal(err)
	}
	ask := func(h http.HandlerFunc, limit int64) (*federation.Answer, error) {
		n.set("b.example", h)
		return a.client.Do(ctx, b.origin, b.self.ID(), http.MethodGet, "/x", nil, limit)
	}
	zipped := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.CopyN(z, zeros{}, 64<<20)
		z.Close()
	}
	if _, err := ask(zipped, 1<<20); !errors.Is(err, client.ErrTooLong) {
		t.Error("a bomb was unpacked", err)
	}
	exact := func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 100)) }
	if got, err := ask(exact, 100); err != nil || len(got.Body) != 100 {
		t.Error(err)
	}
	if _, err := ask(exact, 99); !errors.Is(err, client.ErrTooLong) {
		t.Error(err)
	}
	if _, err := ask(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		io.WriteString(w, "x")
	}, 100); err == nil {
		t.Error("an encoding that was not asked for was read")
	}
	if _, err := ask(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		io.WriteString(w, "not gzip")
	}, 100); err == nil {
		t.Error("what is no gzip was read")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestClient_LinesAreCompressed(t *testing.T) {
	t.Parallel()
	var n wires
	a, b := newSite(t, &n, "a.example"), newSite(t, &n, "b.example")
	got, err := a.client.Do(t.Context(), b.origin, b.self.ID(), http.MethodGet, "/peering/v1/lines", nil, 1<<20)
	if err != nil || string(got.Body) != strings.Repeat("x", 8000)+"\ny\n" || got.Header.Get("Content-Encoding") != "gzip" || got.Header.Get("Agentsite-More") != "true" || got.Header.Get("Content-Type") != "application/x-ndjson" {
		t.Error(got, err)
	}
}

func TestClient_TellsWhoDoesNotAnswer(t *testing.T) {
	t.Parallel()
	var n wires
	a, b := newSite(t, &n, "a.example"), newSite(t, &n, "b.example")
	if err := a.client.Prove(t.Context(), b.origin, b.self.ID()); err != nil {
		t.Fatal(err)
	}
	n.set("b.example", nil)
	if _, _, err := a.do(t, b, http.MethodGet, "/x", ""); !errors.Is(err, errDown) {
		t.Error(err)
	}
	if list := a.registry.Portals(t.Context()); len(list) != 1 || list[0].State != federation.Silent {
		t.Errorf("%+v", list)
	}
	// Who gave up says nothing of the portal.
	a.registry.Seen(b.self.ID(), time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a.client.Do(ctx, b.origin, b.self.ID(), http.MethodGet, "/x", nil, 1)
	if list := a.registry.Portals(t.Context()); list[0].State != federation.Active {
		t.Errorf("%+v", list)
	}
}

// TestClient_TellsWhoRefusesIt has a portal shut out by another one, for some
// time.
func TestClient_TellsWhoRefusesIt(t *testing.T) {
	t.Parallel()
	var n wires
	a, b := newSite(t, &n, "a.example"), newSite(t, &n, "b.example")
	bars := func() (federation.Reason, string) {
		list := a.registry.Portals(t.Context())
		return list[0].Bars, list[0].BarsWhy
	}
	ask := func() {
		t.Helper()
		if _, _, err := a.do(t, b, http.MethodGet, "/peering/v1/echo/x", ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []federation.State{federation.Denied, federation.Pending, federation.Quarantined} {
		if ask(); len(a.registry.Portals(t.Context())) != 1 {
			t.Fatal("it is not known")
		}
		if why, words := bars(); why != "" || words != "" {
			t.Errorf("it is let in, and told %q, %q", why, words)
		}
		b.registry.Say(a.self.ID(), federation.Decision{State: s, Reason: "Go away."})
		ask()
		if why, words := bars(); why != federation.Reason(s) || words != "Go away." {
			t.Errorf("%s: %q, %q", s, why, words)
		}
		b.registry.Say(a.self.ID(), federationtest.In)
		if s != federation.Pending {
			continue
		}
		if _, err := a.client.Greet(t.Context(), b.origin); err != nil {
			t.Fatal(err)
		}
		if why, _ := bars(); why != "" {
			t.Errorf("after hello: %q", why)
		}
		b.registry.Say(a.self.ID(), federation.Decision{State: federation.Denied, Reason: "No."})
		if _, err := a.client.Greet(t.Context(), b.origin); err == nil {
			t.Error("it is greeted")
		}
		if why, words := bars(); why != federation.ReasonDenied || words != "No." {
			t.Errorf("hello: %q, %q", why, words)
		}
		b.registry.Say(a.self.ID(), federationtest.In)
	}
}

func TestClient_AsksAgainEachDayWhoIsThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n wires
		a, b := newSite(t, &n, "a.example"), newSite(t, &n, "b.example")
		for range 3 {
			if _, _, err := a.do(t, b, http.MethodGet, "/peering/v1/echo/x", ""); err != nil {
				t.Fatal(err)
			}
		}
		if got := n.asked("GET https://b.example/.well-known/agentsite"); got != 1 {
			t.Errorf("asked %d times", got)
		}
		time.Sleep(25 * time.Hour)
		if _, _, err := a.do(t, b, http.MethodGet, "/peering/v1/echo/x", ""); err != nil {
			t.Fatal(err)
		}
		if got := n.asked("GET https://b.example/.well-known/agentsite"); got != 2 {
			t.Errorf("asked %d times", got)
		}
		// Somebody else took the domain over.
		n.set("b.example", n.hosts["a.example"])
		time.Sleep(25 * time.Hour)
		if _, _, err := a.do(t, b, http.MethodGet, "/peering/v1/echo/x", ""); !errors.Is(err, guard.ErrImpostor) {
			t.Error(err)
		}
	})
}

// TestClient_HelloWaitsForWhoIsBusy has two portals meet of which one has too
// much to do for some seconds.
func TestClient_HelloWaitsForWhoIsBusy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		busy   int // how often
		wait   time.Duration
		answer bool
		asked  int
	}{
		{"two seconds", 2, time.Second, true, 3},
		{"too often", 9, time.Second, false, 4},
		{"too long", 1, time.Minute, false, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			var n wires
			a, b := newSite(t, &n, "a.example"), newSite(t, &n, "b.example")
			open, hellos := n.hosts["b.example"], 0
			n.set("b.example", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == client.Base+"/hello" {
					if hellos++; hellos <= c.busy {
						b.door.Fail(w, r, federation.RefuseFor(federation.ReasonLimit, c.wait, "Wait."))
						return
					}
				}
				open.ServeHTTP(w, r)
			}))
			began := clock.Now()
			id, err := a.client.Greet(t.Context(), b.origin)
			if (err == nil) != c.answer || c.answer && id != b.self.ID() || hellos != c.asked {
				t.Errorf("%s: %q, %v after %d", c.name, id, err, hellos)
			}
			if waited := clock.Now().Sub(began); waited != time.Duration(hellos-1)*c.wait {
				t.Errorf("%s: it waited %s", c.name, waited)
			}
		})
	}
}

func TestTransport_SignsWhatPasses(t *testing.T) {
	t.Parallel()
	var n wires
	a, b := newSite(t, &n, "a.example"), newSite(t, &n, "b.example")
	rt := a.client.Transport(b.self.ID(), b.origin)
	send := func(url, body string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(guard.ForField, `kind=person, id="x"`)
		r.Header.Set(guard.HopsField, "a/b")
		r.Header.Set(guard.BudgetField, "calls=3")
		resp, err := rt.RoundTrip(r)
		if r.Header.Get("Signature") != "" {
			t.Error("the request that was given has changed")
		}
		return resp, err
	}
	resp, err := send(b.origin+"/peering/v1/echo?q", "body")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	if got := readAll(t, resp.Body); !strings.Contains(got, `"for":"kind=person, id=\"x\""`) || !strings.Contains(got, `"hops":"a/b"`) || !strings.Contains(got, `"budget":"calls=3"`) || !strings.Contains(got, `"body":"body"`) {
		t.Error(got)
	}
	if _, err := send("https://elsewhere.example/peering/v1/echo", "body"); err == nil {
		t.Error("a request to another origin was signed")
	}
	b.registry.Say(a.self.ID(), federation.Decision{State: federation.Pending, Reason: "Wait."})
	if resp, err := send(b.origin+"/peering/v1/echo", "body"); err != nil || resp.StatusCode != http.StatusForbidden || !strings.Contains(readAll(t, resp.Body), `"pending"`) {
		t.Error(resp, err)
	}
}

func TestGreeter_TellsOfTheNewAddress(t *testing.T) {
	t.Parallel()
	var n wires
	a, b := newSite(t, &n, "a.example"), newSite(t, &n, "b.example")
	if _, err := a.client.Handshake(t.Context(), b.origin, ""); err != nil {
		t.Fatal(err)
	}
	// The same portal elsewhere.
	started := clock.Now()
	moved := &site{origin: "https://new.example", keys: a.keys, op: a.op, replica: a.replica, registry: a.registry, nonces: a.nonces, gate: a.gate}
	var err error
	moved.self, err = federation.NewSelf(t.Context(), federation.SelfConfig{Network: a.self.Network(), Origin: moved.origin, Name: "a", Root: a.keys.Portal, Public: a.keys.Public(), Keys: a.op, Cards: &a.cards, Gate: a.gate, Replica: a.replica, Log: discard})
	if err != nil {
		t.Fatal(err)
	}
	moved.client = client.New(client.Config{Self: moved.self, Gate: a.gate, Replica: a.replica, Registry: a.registry, RoundTripper: &n, Stream: &n, Log: discard})
	n.set("a.example", nil)
	moved.serve(t, &n)
	g := client.NewHandshaker(moved.client, moved.self, a.registry, started)
	g.Round(t.Context())
	list := b.registry.Portals(t.Context())
	if len(list) != 1 || list[0].ID != a.self.ID() || list[0].URL != "https://new.example" || list[0].Proved.IsZero() {
		t.Errorf("%+v", list)
	}
	held, _ := b.replica.Card(t.Context(), a.self.ID())
	r, err := record.Open(a.self.Network(), held)
	if err != nil || r.Body.(*record.Card).PrevOrigins[0] != "https://a.example" {
		t.Error(err)
	}
	before := n.requests()
	if g.Round(t.Context()); n.requests() != before {
		t.Errorf("it says hello again: %q", n.log[before:])
	}
}

func TestGreeter_LeavesTheSilentAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n wires
		a, b := newSite(t, &n, "a.example"), newSite(t, &n, "b.example")
		g := client.NewHandshaker(a.client, a.self, a.registry, clock.Now())
		if err := a.client.Prove(t.Context(), b.origin, b.self.ID()); err != nil {
			t.Fatal(err)
		}
		n.set("b.example", nil)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		time.Sleep(time.Second)
		before := n.requests()
		go func() { done <- g.Run(ctx) }()
		time.Sleep(24 * time.Hour)
		if tried := n.requests() - before; tried < 5 || tried > 40 {
			t.Errorf("asked %d times in a day", tried)
		}
		b.serve(t, &n)
		time.Sleep(3 * time.Hour)
		if n.asked("POST https://b.example/peering/v1/hello") == 0 {
			t.Error("it was forgotten")
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestClient_ClockOffNeedsThree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n wires
		a := newSite(t, &n, "a.example")
		for i, host := range []string{"b.example", "c.example", "d.example"} {
			if _, wrong := a.client.ClockOff(); wrong {
				t.Errorf("%d portals put the clock in doubt", i)
			}
			s := newSite(t, &n, host)
			h := n.hosts[host]
			n.set(host, ahead{h, 5 * time.Minute})
			if err := a.client.Prove(t.Context(), s.origin, s.self.ID()); err != nil {
				t.Fatal(err)
			}
		}
		if off, wrong := a.client.ClockOff(); !wrong || off < 4*time.Minute || off > 6*time.Minute {
			t.Error(off, wrong)
		}
	})
}

// ahead is a portal whose clock is.
type ahead struct {
	http.Handler
	by time.Duration
}

func TestGreeter_DoesNotGreetWhoSaidHello(t *testing.T) {
	t.Parallel()
	var n wires
	started := clock.Now().Add(-time.Second)
	a, b := newSite(t, &n, "a.example"), newSite(t, &n, "b.example")
	var heads []string
	b.greeted = func(_ context.Context, asker guard.Asker, head []byte) {
		heads = append(heads, string(head))
		b.client.MarkCardKnown(asker.Card.Origin, b.self.Content().Version())
	}
	b.serve(t, &n)
	if _, err := a.client.Handshake(t.Context(), b.origin, ""); err != nil {
		t.Fatal(err)
	}
	if len(heads) != 1 || heads[0] != "" {
		t.Errorf("it brought the heads %q", heads)
	}
	client.NewHandshaker(b.client, b.self, b.registry, started).Round(t.Context())
	if got := n.asked("POST https://a.example/peering/v1/hello"); got != 0 {
		t.Errorf("%d hellos to who has the card as an answer", got)
	}
	// Who does not remember is greeted.
	b.client.MarkCardKnown(a.origin, record.Version{})
	client.NewHandshaker(b.client, b.self, b.registry, started).Round(t.Context())
	if got := n.asked("POST https://a.example/peering/v1/hello"); got != 1 {
		t.Errorf("%d hellos to who was not told", got)
	}
}

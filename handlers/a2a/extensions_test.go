package a2a_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"agentsite/internal/a2a"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// with asks for an extension.
func with(uri string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("A2A-Extensions", "https://example.org/other, "+uri) }
}

// numbered is one event of a stream as a client under ExtEvents reads it.
type numbered struct {
	place, data string
	mark        struct {
		Seq          int64
		Log          string
		Gap, Resumed bool
	}
	text string // of an artifact
	end  string // the state of a status
}

// reader reads a stream event by event.
type reader struct {
	t    *testing.T
	resp *http.Response
	in   *bufio.Scanner
}

func open(t *testing.T, c *apptest.Client, method, path string, body any, place string) *reader {
	t.Helper()
	r := c.Request(t.Context(), method, path, body)
	with(a2a.ExtEvents)(r)
	if place != "" {
		r.Header.Set("Last-Event-ID", place)
	}
	resp, err := c.HTTP.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if got := resp.Header.Get("A2A-Extensions"); got != a2a.ExtEvents {
		t.Errorf("follows %q", got)
	}
	return &reader{t, resp, bufio.NewScanner(resp.Body)}
}

// next returns the next event, false at the end.
func (r *reader) next() (e numbered, ok bool) {
	for r.in.Scan() {
		if place, ok := strings.CutPrefix(r.in.Text(), "id: "); ok {
			e.place = place
		}
		data, is := strings.CutPrefix(r.in.Text(), "data: ")
		if !is {
			continue
		}
		e.data = data
		type part struct {
			Metadata map[string]json.RawMessage
			Status   struct{ State string }
			Artifact struct{ Parts []struct{ Text string } }
		}
		var u map[string]part
		if err := json.Unmarshal([]byte(data), &u); err != nil {
			r.t.Fatalf("%v in %s", err, data)
		}
		for kind, p := range u {
			if err := json.Unmarshal(p.Metadata[a2a.ExtEvents], &e.mark); err != nil {
				r.t.Fatalf("no number: %v in %s", err, data)
			}
			if kind == "statusUpdate" {
				e.end = p.Status.State
			}
			for _, x := range p.Artifact.Parts {
				e.text += x.Text
			}
		}
		return e, true
	}
	return e, false
}

// all reads to the end.
func (r *reader) all() (out []numbered) {
	for e, ok := r.next(); ok; e, ok = r.next() {
		out = append(out, e)
	}
	return out
}

// TestEvents_AreNumberedAndReplayed: whoever comes back gets exactly what they
// missed, also after the task has ended.
func TestEvents_AreNumberedAndReplayed(t *testing.T) {
	t.Parallel()
	p, model, _ := far(t)
	ada := p.User(t, "ada")
	c := ada.NewToken()
	base := "/agents/" + ada.Agent("public", model.Base(agenttest.Stall)) + "/a2a"
	one := open(t, c, http.MethodPost, base+"/message:stream", say("m", "hello", ""), "")
	first, _ := one.next()
	if !strings.HasPrefix(first.data, `{"task":`) || first.mark.Seq != 0 || first.mark.Gap || first.place != first.mark.Log+"-0" {
		t.Fatalf("%+v", first)
	}
	var seen []numbered
	for len(seen) == 0 || seen[len(seen)-1].text == "" { // the answer has begun
		e, ok := one.next()
		if !ok {
			t.Fatal("the stream ended")
		}
		seen = append(seen, e)
	}
	var k struct{ Task wireTask }
	if err := json.Unmarshal([]byte(first.data), &k); err != nil {
		t.Fatal(err)
	}
	task := base + "/tasks/" + k.Task.ID
	two := open(t, c, http.MethodGet, task+":subscribe", nil, first.place)
	if e, _ := two.next(); !e.mark.Resumed || e.mark.Gap || e.mark.Seq != 0 {
		t.Errorf("resumed: %+v", e)
	}
	late := open(t, c, http.MethodPost, task+":subscribe", nil, "01ARZ3NDEKTSV4RRFFQ69G5FAV-7")
	if e, _ := late.next(); !e.mark.Gap || e.mark.Resumed || e.mark.Seq != seen[len(seen)-1].mark.Seq || !strings.Contains(e.data, seen[len(seen)-1].text) {
		t.Errorf("after a gap: %+v", e)
	}
	at := len(seen)
	c.Must(http.MethodPost, task+":cancel", nil, http.StatusOK)
	seen = append(seen, one.all()...)
	for i, e := range seen {
		if e.mark.Seq != int64(i+1) || e.mark.Log != first.mark.Log {
			t.Errorf("event %d: %+v", i+1, e)
		}
	}
	if last := seen[len(seen)-1]; last.end != "TASK_STATE_CANCELED" {
		t.Errorf("ends with %+v", last)
	}
	same := func(name string, got, want []numbered) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%s: %d events, want %d", name, len(got), len(want))
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%s: %+v\nwant %+v", name, got[i], want[i])
			}
		}
	}
	same("who came back", two.all(), seen)
	same("who came late", late.all(), seen[at:])
	end := open(t, c, http.MethodGet, task+":subscribe", nil, seen[0].place)
	if e, _ := end.next(); !e.mark.Resumed || e.mark.Seq != 1 {
		t.Errorf("after the end: %+v", e)
	}
	same("after the end", end.all(), seen[1:])
	for _, place := range []string{"", "x-1", first.mark.Log + "-99", first.mark.Log + "--1"} {
		got := c.Do(http.MethodGet, task+":subscribe", nil, with(a2a.ExtEvents), func(r *http.Request) { r.Header.Set("Last-Event-ID", place) })
		if got.Status != http.StatusBadRequest || !strings.Contains(got.Body, "UNSUPPORTED_OPERATION") {
			t.Errorf("from %q: %d %s", place, got.Status, got.Body)
		}
	}
}

// TestOnce_SendingAgainIsHarmless: the same message opens one context, however
// often and however fast it comes, for who has an account and asks for it.
func TestOnce_SendingAgainIsHarmless(t *testing.T) {
	t.Parallel()
	p, model, _ := far(t)
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	name := ada.Agent("public", model.Base(agenttest.Echo))
	send := func(c *apptest.Client, agent, id string, edit ...func(*http.Request)) wireTask {
		var k struct{ Task wireTask }
		got := c.Must(http.MethodPost, "/agents/"+agent+"/a2a/message:send", say(id, "2+2", ""), http.StatusOK, edit...)
		if err := json.Unmarshal([]byte(got.Body), &k); err != nil {
			t.Error(err)
		}
		return k.Task
	}
	c := ada.NewToken()
	ids := make([]string, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() { ids[i] = send(c, name, "m", with(a2a.ExtOnce)).ID })
	}
	wg.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Fatalf("tasks %q", ids)
		}
	}
	if id := send(c, name, "m").ID; id == ids[0] {
		t.Error("without the extension it is another task")
	}
	if id := send(c, "calc", "m", with(a2a.ExtOnce)).ID; id == ids[0] {
		t.Error("another agent has the same task")
	}
	if id := send(bob.NewToken(), name, "m", with(a2a.ExtOnce)).ID; id == ids[0] {
		t.Error("another account has the same task")
	}
	again := send(c, name, "m", with(a2a.ExtOnce))
	if again.ID != ids[0] {
		t.Error("sent again later it is another task")
	}
	ada.Must(http.MethodDelete, "/api/v1/conversations/"+again.ContextID, nil, http.StatusNoContent)
	if id := send(c, name, "m", with(a2a.ExtOnce)).ID; id == ids[0] {
		t.Error("a task that was deleted is there")
	}
	guest := p.Guest(t)
	got := guest.Must(http.MethodPost, "/agents/"+name+"/a2a/message:send", say("m", "2+2", ""), http.StatusOK, with(a2a.ExtOnce))
	if h := got.Header.Get("A2A-Extensions"); h != "" {
		t.Errorf("a visitor is promised %q", h)
	}
}

func TestSpeaker_IsNamedWhereItIsAskedFor(t *testing.T) {
	t.Parallel()
	p, model, _ := far(t)
	ada := p.User(t, "ada")
	name := ada.Agent("public", model.Base(agenttest.Echo))
	c := ada.NewToken()
	path := "/agents/" + name + "/a2a/message:send"
	body := c.Must(http.MethodPost, path, say("m", "hello", ""), http.StatusOK, with(a2a.ExtSpeaker)).Body
	var k struct {
		Task struct {
			History []struct {
				Role       string
				Extensions []string
				Metadata   map[string]a2a.Speaker
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &k); err != nil || len(k.Task.History) != 2 {
		t.Fatalf("%s %v", body, err)
	}
	host := strings.TrimPrefix(p.URL(), "http://")
	for i, want := range []a2a.Speaker{{Kind: "person", Handle: "ada", Portal: host, Verified: true}, {Kind: "agent", Handle: name, Portal: host, Verified: true}} {
		m := k.Task.History[i]
		if m.Metadata[a2a.ExtSpeaker] != want || len(m.Extensions) != 1 || m.Extensions[0] != a2a.ExtSpeaker {
			t.Errorf("%+v, want %+v", m, want)
		}
	}
	if plain := c.Must(http.MethodPost, path, say("n", "hello", ""), http.StatusOK); strings.Contains(plain.Body, a2a.ExtSpeaker) {
		t.Error("named without being asked for")
	}
}

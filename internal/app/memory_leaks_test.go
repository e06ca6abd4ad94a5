package app_test

import (
	"archive/zip"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/ident"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// A memory of a person and an agent reaches neither another person, another agent, a room nor the owner of the agent.
func TestMemory_LeaksNowhere(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada, bob, eve := p.User(t, "ada"), p.User(t, "bob"), p.User(t, "eve")
	ada.Meets(bob)
	const secret = "zebrasecret"
	fact := "The person keeps a " + secret + " in the cellar."
	model, own := agenttest.NewOpenAIServer(t), newMind()
	model.Script(own.turn)
	agent := rememberer(eve, model)
	turnOn(ada, agent)
	first := talkTo(t, ada, agent)
	first.say("remember: " + fact)
	if got := talkTo(t, ada, agent).say("What is in my cellar?"); !strings.Contains(got, secret) {
		t.Fatalf("the test proves nothing, because the person's own question does not recall it: %q", got)
	}
	if got := talkTo(t, eve, agent).say("What is in my cellar?"); strings.Contains(got, secret) {
		t.Errorf("its owner asks it and gets: %q", got)
	}
	turnOn(bob, agent)
	if got := talkTo(t, bob, agent).say("What is in my cellar?"); strings.Contains(got, secret) {
		t.Errorf("another person gets: %q", got)
	}
	if got := talkTo(t, ada, agent, "bob").say("@" + agent + " What is in my cellar?"); strings.Contains(got, secret) {
		t.Errorf("in a room: %q", got)
	}
	if got := talkTo(t, ada, agent, "calc").say("@" + agent + " What is in my cellar?"); strings.Contains(got, secret) {
		t.Errorf("in a conversation with another agent: %q", got)
	}
	// Another agent, with and without a memory of its own, and one that asks this agent in the person's name.
	second, other := agenttest.NewOpenAIServer(t), newMind()
	second.Script(other.turn)
	neighbour := rememberer(eve, second)
	turnOn(ada, neighbour)
	talkTo(t, ada, neighbour).say("What is in my cellar?")
	third := agenttest.NewOpenAIServer(t)
	third.Script(asker(agent))
	asking := helper(eve, third)
	ada.Must(http.MethodPut, "/api/v1/grants/"+ident.NewID(), map[string]any{"agent": asking, "tool": "ask", "scope": "public", "decision": "allow"}, http.StatusOK)
	if got := talkTo(t, ada, asking).say("What is in my cellar?"); strings.Contains(got, secret) {
		t.Errorf("another agent that asked it gets: %q", got)
	}
	if other.saw(secret) {
		t.Error("the model of another agent saw it")
	}
	// The text stands in ada's own conversation, so the owner's pages are the place to look.
	for _, path := range []string{"/agents/" + agent, "/agents/" + agent + "/work", "/agents/" + agent + "/versions",
		"/account/memories", "/account/memories?agent=" + agent, "/account/usage", "/account/grants", "/account/running",
		"/api/v1/memories", "/api/v1/memories?q=" + secret, "/api/v1/agents/" + agent, "/api/v1/usage", "/api/v1/grants",
		"/api/v1/tasks", "/api/v1/conversations", "/api/v1/agents/" + agent + "/calls"} {
		for _, c := range []*apptest.Client{eve, bob} {
			if a := c.Do(http.MethodGet, path, nil); strings.Contains(a.Body, secret) {
				t.Errorf("%s of %s has it", path, c.Name)
			}
		}
	}
	for _, c := range []*apptest.Client{eve, bob} {
		if strings.Contains(exported(t, c), secret) {
			t.Errorf("the export of %s has it", c.Name)
		}
	}
	if !strings.Contains(exported(t, ada), secret) {
		t.Error("the person's own export lacks it")
	}
	// Others cannot change it by its id.
	id := memoriesOf(ada, "").Memories[0].ID
	eve.Must(http.MethodDelete, "/api/v1/memories/"+id, nil, http.StatusNotFound)
	eve.Must(http.MethodPatch, "/api/v1/memories/"+id, map[string]any{"text": "x"}, http.StatusNotFound)
}

// exported returns the texts of all files in a person's export.
func exported(t *testing.T, c *apptest.Client) string {
	t.Helper()
	body := []byte(c.Must(http.MethodPost, "/api/v1/me/export", nil, http.StatusOK).Body)
	z, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	out := ""
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out += string(b)
	}
	return out
}

// A memory of a room is used in that room, by all its people, and nowhere else.
func TestMemory_OfARoomStaysThere(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	ada.Meets(bob)
	model := agenttest.NewOpenAIServer(t)
	model.Script(newMind().turn)
	agent := rememberer(p.User(t, "eve"), model)
	turnOn(ada, agent)
	room := talkTo(t, ada, agent, "bob")
	room.say("@" + agent + " remember: The release is on Friday.")
	if got := talkTo(t, ada, agent).say("When is the release?"); strings.Contains(got, "Friday") {
		t.Errorf("alone with the person: %q", got)
	}
	there := actor{bob, t, room.talk, bob.Socket(room.talk)}
	const remembered = "in this conversation: The release is on Friday"
	if got := there.say("@" + agent + " When is the release?"); !strings.Contains(got, remembered) {
		t.Errorf("in the room, by another member: %q", got)
	}
	if got := there.say("@" + agent + " forget everything"); !strings.Contains(got, "only that person can") {
		t.Errorf("another member has it forgotten: %q", got)
	}
	if got := room.say("@" + agent + " forget 1"); !strings.Contains(got, "Forgotten: 1 thing") {
		t.Errorf("the author has it forgotten: %q", got)
	}
	if got := there.say("@" + agent + " When is the release?"); strings.Contains(got, remembered) {
		t.Errorf("after it was forgotten: %q", got)
	}
}

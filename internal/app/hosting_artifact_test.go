package app_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/wasmtest"
)

// A hosted program returns a file as an artifact of its task, which the person loads and keeps in the library. Names,
// media types and sizes beyond the bounds are refused, and the program sees why.
func TestHosting_ProgramsReturnFiles(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	rob, ada := p.Operator(t, "rob"), p.User(t, "ada")
	host := func(argument string) string {
		m := wasmtest.New()
		alloc := m.Env("alloc", 1, 1)
		store := m.Import("extism:host/env", "store_u8", []byte{wasmtest.I64, wasmtest.I32}, nil)
		artifact, reply := m.User("artifact"), m.User("reply")
		m.Functions[0].Body = bytes.Join([][]byte{wasmtest.Block(alloc, store, argument), wasmtest.Get(0),
			wasmtest.Call(artifact), wasmtest.Call(reply), wasmtest.Drop()}, nil)
		name := program(t, rob.NewToken(), m.Bytes(), nil)
		rob.NewToken().Must(http.MethodPatch, "/api/v1/agents/"+name, map[string]any{"visibility": "public"}, http.StatusOK)
		return name
	}
	agent := host(`{"name":"report.csv","media_type":"text/csv","text":"tea,3\n"}`)
	talk := ada.Conversation(agent)
	stream := ada.Socket(talk)
	id := ada.Say(talk, "go").Tasks[0].ID
	stream.Answered(id)
	if name, mediaType, text := returnedFile(t, ada, id); name != "report.csv" || mediaType != "text/csv" || text != "tea,3\n" {
		t.Errorf("the file %q of the type %q has %q", name, mediaType, text)
	}
	if page := ada.Must(http.MethodGet, "/chat/"+talk, nil, http.StatusOK).Body; !strings.Contains(page, "report.csv") {
		t.Error("the page of the conversation does not show the file")
	}
	for _, c := range [][2]string{
		{`{"name":"../x.csv","text":"a"}`, "without folders"},
		{`{"name":"","text":"a"}`, "without folders"},
		{`{"name":"a.csv"}`, "text or base64"},
		{`{"name":"a.csv","text":"a","base64":"YQ=="}`, "text or base64"},
		{`{"name":"a.csv","media_type":"csv","text":"a"}`, "is no media type"},
		{`{"name":"` + strings.Repeat("a", 121) + `","text":"a"}`, "longer than 120 bytes"},
	} {
		if got := answerOf(ada, host(c[0]), "go"); !strings.Contains(got, c[1]) {
			t.Errorf("%.60s: %q", c[0], got)
		}
	}
}

// returnedFile loads the only file of a task.
func returnedFile(t *testing.T, c *apptest.Client, id string) (name, mediaType, text string) {
	t.Helper()
	var out struct {
		Artifacts []struct {
			Name  string
			Parts []struct{ URL, Filename, MediaType string }
		}
	}
	if err := json.Unmarshal([]byte(c.Must(http.MethodGet, "/api/v1/tasks/"+id, nil, http.StatusOK).Body), &out); err != nil {
		t.Fatal(err)
	}
	if len(out.Artifacts) != 1 || len(out.Artifacts[0].Parts) != 1 || out.Artifacts[0].Name != out.Artifacts[0].Parts[0].Filename {
		t.Fatalf("artifacts: %+v", out)
	}
	part := out.Artifacts[0].Parts[0]
	path := part.URL[strings.Index(part.URL, "/files/"):]
	return part.Filename, part.MediaType, c.Must(http.MethodGet, path, nil, http.StatusOK).Body
}

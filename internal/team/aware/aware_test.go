package aware_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"agentsite/internal/team/aware"
)

func TestReadMove(t *testing.T) {
	t.Parallel()
	legal := []string{aware.Result, aware.Decline}
	for data, want := range map[string]struct {
		move  aware.Move
		found bool
		why   string
	}{
		`{"move":{"kind":"result","text":" 12 "}}`:                       {aware.Move{Kind: "result", Text: "12"}, true, ""},
		`{"move":{"kind":"decline","text":"no","by":"portal","turn":9}}`: {aware.Move{Kind: "decline", Text: "no"}, true, ""},
		`{"board":"e4"}`: {},
		`["move"]`:       {},
		`{`:              {},
		`{"move":"e4"}`:  {aware.Move{}, true, "an object"},
		`{"move":{"kind":"conclude","text":"Done."}}`: {aware.Move{}, true, "not legal"},
		`{"move":{"kind":"result","text":3}}`:         {aware.Move{}, true, "an object"},
		`{"move":{"kind":"result","text":" "}}`:       {aware.Move{}, true, "needs a text"},
	} {
		m, found, err := aware.ReadMove(json.RawMessage(data), legal)
		if m != want.move || found != want.found || (err != nil) != (want.why != "") || err != nil && !strings.Contains(err.Error(), want.why) {
			t.Errorf("%s: %+v %t %v", data, m, found, err)
		}
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	b, err := aware.EncodeDocument(aware.Document{Kind: aware.Task, You: "ann", Number: 2, Text: "Add.", Until: time.Unix(0, 0).UTC(), Legal: []string{"result"}})
	if want := `{"team":{"kind":"task","you":"ann","number":2,"text":"Add.","until":"1970-01-01T00:00:00Z","legal":["result"]}}`; err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
	if aware.TakesDocuments([]string{"text/plain"}) || !aware.TakesDocuments([]string{"text/plain", aware.MediaType}) {
		t.Error("Takes")
	}
}

package main

import (
	"encoding/json"
	"testing"
)

func TestDocument_Decides(t *testing.T) {
	const members = `"goal":"What is 2 * 3? Then write it in Roman numerals","turns_left":29,"members":[` +
		`{"handle":"calc","state":"joined","why":"fits “calculate”"},{"handle":"roman","state":"joined","why":"fits “roman”"}],` +
		`"candidates":[{"handle":"figures","for":"x","why":"fits “numerals”, “write”"}]`
	for state, want := range map[string]string{
		`{` + members + `}`: `{"kind":"assign","tasks":[{"owner":"calc","text":"What is 2 * 3?"},` +
			`{"needs":[-1],"owner":"figures","text":"write it in Roman numerals"}]}`,
		`{` + members + `,"tasks":[{"task":1,"owner":"roman","text":"Write it.","state":"failed"}]}`: `{"kind":"assign","tasks":[{"owner":"figures","task":1,"text":"Write it."}]}`,
		`{` + members + `,"tasks":[{"task":1,"owner":"calc","text":"2 * 3","state":"completed","result":"6"},` +
			`{"task":2,"owner":"figures","text":"Write it.","state":"failed"}]}`: `{"kind":"conclude","text":"2 * 3\ncalc: 6\n\nMissing: Write it."}`,
		`{"goal":"Sing."}`: `{"kind":"give_up","text":"No agent fits the goal."}`,
	} {
		var d document
		if err := json.Unmarshal([]byte(state), &d); err != nil {
			t.Fatal(err)
		}
		if b, err := json.Marshal(d.decideMove()); err != nil || string(b) != want {
			t.Errorf("%s:\n%s\nwant %s", state, b, want)
		}
	}
}

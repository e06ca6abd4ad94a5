package a2a_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestList_EndsAPageThatGetsLarge(t *testing.T) {
	t.Parallel()
	p, _, other := far(t)
	ada := p.User(t, "ada")
	c := ada.NewToken()
	base := "/agents/" + foreign(ada, other) + "/a2a"
	const tasks = 26
	for i := range tasks {
		rpc(c, base, "SendMessage", say(fmt.Sprint(i), strings.Repeat("x", 60_000), "")).task(t)
	}
	seen, pages := make(map[string]bool), 0
	for token := ""; pages == 0 || token != ""; pages++ {
		a := rpc(c, base, "ListTasks", `{"pageSize":100,"historyLength":10,"includeArtifacts":true,"pageToken":"`+token+`"}`)
		var list struct {
			Tasks         []struct{ ID string }
			NextPageToken string
			TotalSize     int
		}
		if err := json.Unmarshal(a.Result, &list); err != nil || list.TotalSize != tasks || len(list.Tasks) == 0 {
			t.Fatalf("%+v %v", list, err)
		}
		for _, k := range list.Tasks {
			if seen[k.ID] {
				t.Errorf("%s is there twice", k.ID)
			}
			seen[k.ID] = true
		}
		if len(a.Result) > 5<<20 {
			t.Errorf("a page of %d bytes", len(a.Result))
		}
		token = list.NextPageToken
	}
	if len(seen) != tasks || pages < 2 {
		t.Errorf("%d tasks on %d pages", len(seen), pages)
	}
}

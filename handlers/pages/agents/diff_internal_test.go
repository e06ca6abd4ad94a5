package agents

import (
	"fmt"
	"strings"
	"testing"

	"agentsite/internal/hub"
)

func TestDiffView_PutsJSONOnLines(t *testing.T) {
	t.Parallel()
	v := diffView([]hub.Change{{Field: "Setting tools", Before: `["a","b"]`, After: `["a","c"]`}, {Field: "Icon", After: "00"}})
	if got := fmt.Sprint(v[0].Lines); !strings.Contains(got, `{removed   "b"} {added   "c"}`) || !strings.Contains(got, `{same   "a",}`) {
		t.Errorf("got %s", got)
	}
	if got := fmt.Sprint(v[1].Lines); got != "[{removed none} {added a picture}]" {
		t.Errorf("a new picture reads %s", got)
	}
}

package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// goalPortal answers the routes of one goal, which ends in a state.
func goalPortal(t *testing.T, state string) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/goals", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, `{"id":"g1"}`)
	})
	mux.HandleFunc("GET /api/v1/goals/g1/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i, e := range []string{`"kind":"joined","agent":"calc"`,
			`"kind":"moved","agent":"portal","move":{"kind":"assign","tasks":[{"owner":"calc","text":"Add\u001b[2J 1 and 2."}]}`,
			`"kind":"ended","task":"1","state":"failed","text":"No."`} {
			fmt.Fprintf(w, "id: %d\nevent: x\ndata: {\"seq\":%d,%s}\n\n", i+1, i+1, e)
		}
	})
	mux.HandleFunc("GET /api/v1/goals/g1", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"id":"g1","state":%q,"conclusion":"It is 3.\nReally."}`, state)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func TestGoal_ShowsTheTeamUntilItEnds(t *testing.T) {
	t.Parallel()
	code, out, errs := run(t, nil, "", "goal", "Add", "1 and 2.", "--portal", goalPortal(t, "concluded").URL)
	want := "calc joined\ncalc gets: Add[2J 1 and 2.\ntask 1 failed: No.\n\nconcluded\nIt is 3.\nReally.\n"
	if strings.ReplaceAll(out, "�", "") != want || code != 0 || errs != "" {
		t.Errorf("%d %q %q, want %q", code, out, errs, want)
	}
	if code, _, _ := run(t, nil, "", "goal", "Add.", "--portal", goalPortal(t, "failed").URL); code != 1 {
		t.Error("status", code, "for a goal that failed")
	}
	if code, _, _ := run(t, nil, "", "goal"); code != 2 {
		t.Error("status", code, "without a goal")
	}
}

package replication

import "testing"

// transitions has a row for each event and a column for each state, in their order: the next state and
// what is to be done. "-" is the same state and nothing to do.
var transitions = [][stateCount + 1]string{
	{"event", "absent", "summary", "pulling", "partial", "complete", "overQuota"},
	{"newHead", "pulling startPull+report", "summary report+advertise+fetchSummary", "pulling wakePull+report",
		"pulling startPull+report", "pulling startPull+report", "overQuota report+fetchSummary"},
	{"newSource", "pulling startPull", "-", "pulling wakePull", "pulling startPull", "-", "-"},
	{"logWhole", "-", "-", "complete report+advertise", "-", "-", "-"},
	{"logPartial", "-", "-", "partial report", "-", "-", "-"},
	{"pullAgain", "-", "-", "pulling report", "-", "-", "-"},
	{"pullFailed", "-", "-", "pulling report", "-", "-", "-"},
	{"pullStopped", "-", "-", "partial ", "-", "-", "-"},
	{"shutOut", "-", "-", "pulling cancelPull", "-", "-", "-"},
	{"quotaExceeded", "-", "-", "overQuota report+fetchSummary", "-", "-", "-"},
	{"quotaChanged", "pulling startPull", "-", "-", "pulling startPull", "pulling startPull", "pulling startPull"},
	{"recordsLost", "-", "-", "-", "absent ", "absent ", "-"},
	{"summaryChosen", "summary report+advertise+fetchSummary", "-", "summary report+advertise+fetchSummary",
		"summary report+advertise+fetchSummary", "summary report+advertise+fetchSummary",
		"summary report+advertise+fetchSummary"},
	{"logChosen", "-", "pulling startPull", "-", "-", "-", "-"},
	{"retryDue", "pulling startPull", "-", "-", "pulling startPull", "-", "pulling startPull"},
}

// TestNext checks every pair of a state and an event. A new state or event fails it until it has a column
// or a row.
func TestNext(t *testing.T) {
	t.Parallel()
	for s := range stateCount {
		if got := transitions[0][s+1]; got != s.String() {
			t.Errorf("column %d is %q, the state is %v", s, got, s)
		}
	}
	if len(transitions) != int(eventCount)+1 {
		t.Fatalf("%d rows for %d events", len(transitions)-1, eventCount)
	}
	for e := range eventCount {
		row := transitions[e+1]
		if row[0] != e.String() {
			t.Errorf("row %d is %q, the event is %v", e, row[0], e)
			continue
		}
		for s := range stateCount {
			to, do := next(s, e)
			want := row[s+1]
			if want == "-" {
				want = s.String() + " "
			}
			if got := to.String() + " " + do.String(); got != want {
				t.Errorf("%v in %v leads to %q, want %q", e, s, got, want)
			}
		}
	}
}

// TestNext_Reachable checks that each state is left by some event and entered from absent.
func TestNext_Reachable(t *testing.T) {
	t.Parallel()
	reached := map[state]bool{absent: true}
	for changed := true; changed; {
		changed = false
		for s := range reached {
			for e := range eventCount {
				if to, _ := next(s, e); !reached[to] {
					reached[to], changed = true, true
				}
			}
		}
	}
	for s := range stateCount {
		left := false
		for e := range eventCount {
			to, _ := next(s, e)
			left = left || to != s
		}
		if !reached[s] || !left {
			t.Errorf("%v is reached: %t, left: %t", s, reached[s], left)
		}
	}
}

package a2a

import (
	"errors"
	"strings"
	"testing"

	"agentsite/internal/a2a"
	"agentsite/internal/task"
)

// waiting enters and leaves a log that holds some bytes.
func (s *eventLogs) waiting(id string, size int) *eventLog {
	l := &eventLog{task: id, state: a2a.Task{Artifacts: []task.Artifact{{ID: answerID, Parts: []task.Part{task.TextPart(strings.Repeat("x", size))}}}}}
	s.mu.Lock()
	if s.logs == nil {
		s.logs = make(map[string]*heldLog)
	}
	s.logs[id] = &heldLog{eventLog: l}
	s.addReader(s.logs[id])
	s.mu.Unlock()
	s.removeReader(l)
	return l
}

// clear lets go of all.
func (s *eventLogs) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.logs {
		s.removeLog(h)
	}
}

func TestEventLogs_ThatWaitAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	var s eventLogs
	defer s.clear()
	const third = maxLogsBytes/3 + 1
	s.waiting("a", third)
	s.waiting("b", third)
	if l := s.findLog("a"); l == nil {
		t.Error("a is gone")
	} else {
		s.waiting("c", third) // what is read does not wait
		if s.findLog("b") == nil || s.bytes != third {
			t.Errorf("%d bytes wait", s.bytes)
		}
		s.removeReader(s.logs["b"].eventLog)
		s.removeReader(l)
	}
	if len(s.logs) != 2 || s.logs["c"] != nil || s.bytes != 2*third {
		t.Errorf("%d logs of %d bytes wait", len(s.logs), s.bytes)
	}
	s.clear()
	if s.bytes != 0 {
		t.Errorf("%d bytes are left of nothing", s.bytes)
	}
}

// Whoever comes back after the database had trouble gets another log.
func TestEventLogs_OneThatBrokeIsNone(t *testing.T) {
	t.Parallel()
	var s eventLogs
	defer s.clear()
	l := s.waiting("a", 10)
	if s.findLog("a") != l {
		t.Fatal("a is gone")
	}
	l.err = errors.New("disk on fire")
	if s.findLog("a") != nil || len(s.logs) != 0 {
		t.Error("it is handed on")
	}
	s.removeReader(l)
	if s.bytes != 0 || len(s.logs) != 0 {
		t.Errorf("%d bytes wait", s.bytes)
	}
}

func TestEventLog_KnowsTheTaskAsItsEventsMakeIt(t *testing.T) {
	t.Parallel()
	l := &eventLog{first: 1}
	add := func(id string, more bool, parts ...task.Part) {
		l.addEvent(a2a.Event{Artifact: &a2a.ArtifactUpdate{Artifact: task.Artifact{ID: id, Parts: parts}, Append: more}})
	}
	is := func(want string) {
		t.Helper()
		var b strings.Builder
		k, _ := l.currentTask()
		for _, a := range k.Artifacts {
			b.WriteString(a.ID + ":")
			for _, p := range a.Parts {
				b.WriteString(p.Text + p.URL + "|")
			}
		}
		if b.String() != want {
			t.Errorf("%q, want %q", b.String(), want)
		}
	}
	text := task.TextPart
	add("a", false, text("one"))
	add("a", true, text(" two"))
	add("a", true, text(" three"))
	is("a:one two three|")
	add("a", true, text(" four"))
	add("a", true, text(" five"))
	add("b", false, text("x"))
	add("b", true, text("y"))
	add("a", true, text(" six"))
	is("a:one two three four five six|b:xy|")
	add("a", true, text("!"), task.Part{URL: "u"}, text("after"), text(" it"))
	add("a", true, text("."))
	add("a", true, task.Part{})
	is("a:one two three four five six!|u|after it.|b:xy|")
	add("a", false, text("anew"))
	add("a", true, text("."))
	is("a:anew.|b:xy|")
	if e, _, ok := l.eventAt(1); !ok || e.Artifact.Artifact.Parts[0].Text != "one" {
		t.Errorf("the first event became %+v", e)
	}
}

func TestUnnamed_TellsNobodyWhoDidNotAsk(t *testing.T) {
	t.Parallel()
	said := a2a.Status{State: task.InputRequired, Message: &a2a.Message{Speaker: &a2a.Speaker{Handle: "ada"}}}
	for name, e := range map[string]a2a.Event{"task": {Task: &a2a.Task{Status: said}}, "status": {Status: &a2a.StatusUpdate{Status: said}}} {
		asks := &methodCall{extensions: []string{a2a.ExtEvents, a2a.ExtSpeaker}}
		for _, q := range []*methodCall{{extensions: []string{a2a.ExtEvents}}, asks} { // the log's own stays as it is
			u := q.hideSpeaker(e)
			s := said
			if u.Task != nil {
				s = u.Task.Status
			} else if u.Status != nil {
				s = u.Status.Status
			}
			if got := s.Message.Speaker != nil; got != (q == asks) {
				t.Errorf("%s: named is %v", name, got)
			}
		}
	}
}

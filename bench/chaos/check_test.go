package main

import (
	"slices"
	"testing"
	"time"
)

// story is a conversation in which everything is right: two notes, a question
// and its answer, one message that may or may not be there, one refused, and
// a reader who came back once.
type story struct {
	ops        []*op
	transcript []message
	streams    []stream
}

func goodStory() *story {
	return &story{
		ops: []*op{
			{sender: "ann", clientID: "c1", text: "first", outcome: acked, id: "A", seq: 1},
			{sender: "bob", clientID: "c2", text: "second", outcome: acked, id: "B", seq: 2},
			{sender: "ann", clientID: "c3", text: "100000016 + 3", answer: 100000019, outcome: acked, id: "C", seq: 3, task: "T1"},
			{sender: "ann", clientID: "c4", text: "perhaps"},
			{sender: "bob", clientID: "c5", text: "never", outcome: refused},
			{sender: "ann", clientID: "c6", text: "100000032 + 1", answer: 100000033},
		},
		transcript: []message{
			{seq: 1, id: "A", sender: "ann", text: "first"},
			{seq: 2, id: "B", sender: "bob", text: "second"},
			{seq: 3, id: "C", sender: "ann", text: "100000016 + 3"},
			{seq: 4, id: "D", sender: "ann", text: "perhaps"},
			{seq: 5, id: "E", fromAgent: true, sender: "calc", text: "**100,000,019**", task: "T1", state: "completed"},
			{seq: 6, id: "F", sender: "ann", text: "100000032 + 1"},
			{seq: 7, id: "G", fromAgent: true, sender: "calc", text: "**100,000,033** = 100000032 + 1", task: "T2", state: "completed"},
		},
		streams: []stream{
			{how: "sse", after: 0, seen: []seen{{seq: 1, id: "A"}, {seq: 2, id: "B"}}},
			{how: "websocket", after: 2, seen: []seen{{seq: 3, id: "C"}, {seq: 4, id: "D"}, {seq: 5, id: "E"}}},
		},
	}
}

func (s *story) check() []violation { return check("room", s.ops, s.transcript, s.streams) }

func TestCheck_AcceptsWhatIsRight(t *testing.T) {
	s := goodStory()
	if v := s.check(); len(v) > 0 {
		t.Error(v)
	}
	// What is unknown may also be absent.
	s.ops[3].text, s.transcript[3].text = "absent", "first of a new op"
	s.ops = append(s.ops, &op{sender: "ann", text: "first of a new op"})
	if v := s.check(); len(v) > 0 {
		t.Error(v)
	}
}

func TestCheck_NoticesPlantedViolations(t *testing.T) {
	for _, c := range []struct {
		name  string
		plant func(*story)
		want  string
	}{
		{"lost message", func(s *story) { s.remove(1) }, lost},
		{"lost message at the end", func(s *story) {
			s.ops = append(s.ops, &op{sender: "ann", text: "last", outcome: acked, id: "H", seq: 8})
		}, lost},
		{"everything lost", func(s *story) { s.transcript = nil }, lost},
		{"duplicate of an acknowledged message", func(s *story) { s.say(message{id: "H", sender: "ann", text: "first"}) }, duplicated},
		{"duplicate of an unknown message", func(s *story) { s.say(message{id: "H", sender: "ann", text: "perhaps"}) }, duplicated},
		{"same id twice", func(s *story) {
			s.ops = append(s.ops, &op{sender: "ann", text: "more"})
			s.say(message{id: "A", sender: "ann", text: "more"})
		}, duplicated},
		{"gap", func(s *story) { s.transcript[6].seq = 9 }, gap},
		{"does not begin at 1", func(s *story) { s.remove(0) }, gap},
		{"reordered", func(s *story) { s.transcript[1], s.transcript[2] = s.transcript[2], s.transcript[1] }, reordered},
		{"other seq than acknowledged", func(s *story) {
			s.transcript[0].text, s.transcript[3].text = s.transcript[3].text, s.transcript[0].text
		}, changed},
		{"other id than acknowledged", func(s *story) { s.transcript[0].id = "Z"; s.streams = nil }, changed},
		{"other sender", func(s *story) { s.transcript[0].sender = "bob" }, changed},
		{"refused and yet there", func(s *story) { s.say(message{id: "H", sender: "bob", text: "never"}) }, intruded},
		{"said by nobody", func(s *story) { s.say(message{id: "H", sender: "bob", text: "boo"}) }, intruded},
		{"resent with another text", func(s *story) { s.transcript[0].text = "first, changed" }, lost},
		{"no answer", func(s *story) { s.remove(6) }, unanswered},
		{"failed answer", func(s *story) { s.transcript[4].state = "failed" }, unanswered},
		{"wrong answer", func(s *story) { s.transcript[4].text = "100,000,018" }, unanswered},
		{"double answer of one task", func(s *story) {
			s.say(message{id: "H", fromAgent: true, text: "100000019", task: "T1", state: "completed"})
		}, duplicated},
		{"double answer by another task", func(s *story) {
			s.say(message{id: "H", fromAgent: true, text: "100000019", task: "T9", state: "completed"})
		}, duplicated},
		{"answer to nothing", func(s *story) {
			s.say(message{id: "H", fromAgent: true, text: "100000099", task: "T9", state: "completed"})
		}, intruded},
		{"answer of another task", func(s *story) { s.transcript[4].task = "T9" }, changed},
		{"answer before its question", func(s *story) {
			s.transcript[2].text, s.transcript[4].text = s.transcript[4].text, s.transcript[2].text
			s.transcript[2].fromAgent, s.transcript[4].fromAgent = true, false
			s.transcript[2].task, s.transcript[4].task = "T1", ""
			s.transcript[4].sender, s.transcript[2].state = "ann", "completed"
		}, reordered},
		{"reader with a gap", func(s *story) { s.streams[1].seen = slices.Delete(s.streams[1].seen, 1, 2) }, misread},
		{"reader that starts late", func(s *story) { s.streams[1].seen = s.streams[1].seen[1:] }, misread},
		{"reader with a duplicate", func(s *story) { s.streams[1].after = 3 }, misread},
		{"reader told twice", func(s *story) {
			s.streams[0].seen = append(s.streams[0].seen, seen{seq: 2, id: "B"})
		}, misread},
		{"reader saw what is gone", func(s *story) {
			s.streams[1].seen = append(s.streams[1].seen, seen{seq: 6, id: "F"}, seen{seq: 7, id: "G"}, seen{seq: 8, id: "H"})
		}, vanished},
		{"reader saw another message", func(s *story) { s.streams[0].seen[1].id = "Q" }, changed},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := goodStory()
			c.plant(s)
			var kinds []string
			for _, v := range s.check() {
				kinds = append(kinds, v.kind)
			}
			if !slices.Contains(kinds, c.want) {
				t.Errorf("noticed %v, want %s", kinds, c.want)
			}
		})
	}
}

func (s *story) remove(i int) { s.transcript = slices.Delete(s.transcript, i, i+1) }
func (s *story) say(m message) {
	m.seq = int64(len(s.transcript)) + 1
	s.transcript = append(s.transcript, m)
}

// TestForget shows that a power cut excuses only what was learned after it.
func TestForget(t *testing.T) {
	s := goodStory()
	cut := time.Now()
	s.ops[0].ackedAt, s.ops[1].ackedAt, s.ops[2].ackedAt = cut.Add(-2), cut.Add(-1), cut
	s.streams[1].seen[0].at = cut.Add(1)
	s.streams[0].seen[0].at, s.streams[0].seen[1].at = cut.Add(-1), cut.Add(-1)
	s.streams[0].began, s.streams[1].began = cut.Add(-2), cut.Add(-1)
	late := stream{how: "sse", after: 5, began: cut.Add(2)} // it came back after the cut
	s.streams = forget(s.ops, append(s.streams, late), cut)
	if r := (&room{streams: s.streams}); r.position() != 2 {
		t.Errorf("the last reader got to %d", r.position())
	}
	s.transcript = s.transcript[:2]
	if v := s.check(); len(v) > 0 {
		t.Error("after the cut all may be gone: ", v)
	}
	s.transcript = s.transcript[:1]
	if v := s.check(); len(v) != 2 { // the message, and the reader who saw it
		t.Error("before the cut nothing may be gone: ", v)
	}
}

// TestLearn shows that a restart decides what was unknown.
func TestLearn(t *testing.T) {
	s := goodStory()
	s.ops = append(s.ops, &op{sender: "ann", text: "not there"})
	learn(s.ops, s.transcript)
	if o := s.ops[3]; o.outcome != acked || o.id != "D" || o.seq != 4 {
		t.Errorf("learned %+v", o)
	}
	if o := s.ops[6]; o.outcome != refused {
		t.Errorf("learned %+v", o)
	}
	if n := waiting(s.ops, s.transcript); n != 0 {
		t.Errorf("%d wait", n)
	}
	if n := waiting(s.ops, s.transcript[:6]); n != 1 {
		t.Errorf("%d wait, want 1", n)
	}
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string][]int64{
		"**100,000,019**":         {100000019},
		"100000016 + 3 = 1 2":     {100000016, 3, 1, 2},
		"100\u202f000\u202f019,.": {100000019},
		"none":                    nil,
	} {
		if got := numbers(text); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

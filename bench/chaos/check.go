package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// outcome is what a client knows about a request that it made.
type outcome int

const (
	// unknown: no answer came, or one that decides nothing. The request may have taken effect once, or
	// not at all.
	unknown outcome = iota
	// refused: every attempt was refused, or the effect was absent after a restart. It must never
	// appear.
	refused
	// acked: the portal confirmed the request, or the effect was present after a restart. It must stay
	// unchanged for ever.
	acked
)

// op is one message that a client tries to post. Its text is unique in the run, so that the message is
// recognised in a transcript.
type op struct {
	sender   string // handle of the account
	clientID string
	text     string
	// answer is a number that only the right answer to this question contains; 0 for a message that
	// asks no agent.
	answer int64

	outcome  outcome
	attempts int // requests that reached the portal, or may have
	vague    int // attempts that got no answer or one that decides nothing
	ackedAt  time.Time
	id       string
	seq      int64
	task     string // id of the question's task, "" until the portal names it
}

// message is an entry of a transcript in the form the API returns.
type message struct {
	seq       int64
	id        string
	fromAgent bool
	sender    string
	text      string
	task      string
	state     string
}

// stream is the messages that one live connection received.
type stream struct {
	how   string // sse or websocket
	after int64
	began time.Time
	seen  []seen
}

type seen struct {
	seq int64
	id  string
	at  time.Time
}

// violation is a promise of the portal that was broken. kind is one of the constants below.
type violation struct{ kind, text string }

func (v violation) String() string { return v.kind + ": " + v.text }

const (
	lost       = "lost"
	duplicated = "duplicated"
	gap        = "gap"
	reordered  = "reordered"
	changed    = "changed"
	intruded   = "intruded" // present although it was refused or never posted
	unanswered = "unanswered"
	vanished   = "vanished" // a live reader received it, and it is gone
	misread    = "misread"  // a live reader received messages that differ from the transcript
	misbehaved = "misbehaved"
)

// check compares the results of clients and readers of one conversation with its transcript and returns
// the broken promises. The transcript must be settled: no agent is still answering.
func check(room string, ops []*op, transcript []message, streams []stream) []violation {
	var out []violation
	add := func(kind, format string, args ...any) {
		out = append(out, violation{kind, room + ": " + fmt.Sprintf(format, args...)})
	}

	ids := make(map[string]int64)
	last := int64(0)
	for _, m := range transcript {
		switch {
		case m.seq == last+1:
		case m.seq > last+1:
			add(gap, "seq %d follows %d", m.seq, last)
		default:
			add(reordered, "seq %d comes after %d", m.seq, last)
		}
		last = max(last, m.seq)
		if at, ok := ids[m.id]; ok {
			add(duplicated, "id %s is seq %d and %d", m.id, at, m.seq)
		}
		ids[m.id] = m.seq
	}

	byText := make(map[string]*op, len(ops))
	for _, o := range ops {
		byText[o.text] = o
	}
	said := make(map[*op][]message)
	var answers []message
	for _, m := range transcript {
		if m.fromAgent {
			answers = append(answers, m)
			continue
		}
		o := byText[m.text]
		switch {
		case o == nil:
			add(intruded, "seq %d %q by %s was said by nobody", m.seq, clip(m.text), m.sender)
		case o.sender != m.sender:
			add(changed, "seq %d %q is %s's, not %s's", m.seq, clip(m.text), o.sender, m.sender)
		default:
			said[o] = append(said[o], m)
		}
	}
	for _, o := range ops {
		list := said[o]
		if len(list) > 1 {
			add(duplicated, "%q (client_id %s) is there %d times, at %s", clip(o.text), o.clientID, len(list), seqs(list))
		}
		switch {
		case o.outcome == refused && len(list) > 0:
			add(intruded, "seq %d %q (client_id %s) is there, though it was refused or absent before", list[0].seq, clip(o.text), o.clientID)
		case o.outcome != acked:
		case len(list) == 0:
			add(lost, "%q (client_id %s), acknowledged as seq %d id %s, is gone", clip(o.text), o.clientID, o.seq, o.id)
		case list[0].seq != o.seq || list[0].id != o.id:
			add(changed, "%q was acknowledged as seq %d id %s and is now seq %d id %s", clip(o.text), o.seq, o.id, list[0].seq, list[0].id)
		}
	}
	checkAnswers(ops, said, answers, add)
	checkStreams(transcript, streams, add)
	return out
}

// checkAnswers requires exactly one answer, completed and right, to each question in the transcript,
// and no other answers.
func checkAnswers(ops []*op, said map[*op][]message, answers []message, add func(kind, format string, args ...any)) {
	byTask := make(map[string]int)
	byNumber := make(map[int64][]message)
	stray := make(map[string]message)
	for _, a := range answers {
		if byTask[a.task]++; byTask[a.task] == 2 {
			add(duplicated, "task %s ended twice, again at seq %d", a.task, a.seq)
		}
		stray[a.id] = a
		for _, n := range numbers(a.text) {
			byNumber[n] = append(byNumber[n], a)
		}
	}
	for _, o := range ops {
		if o.answer == 0 || len(said[o]) == 0 {
			continue
		}
		list := byNumber[o.answer]
		for _, a := range list {
			delete(stray, a.id)
		}
		switch {
		case len(list) == 0:
			add(unanswered, "%q, seq %d, task %s, has no answer", o.text, said[o][0].seq, o.task)
			continue
		case len(list) > 1:
			add(duplicated, "%q, seq %d, is answered %d times, at %s", o.text, said[o][0].seq, len(list), seqs(list))
		}
		a := list[0]
		if a.seq < said[o][0].seq {
			add(reordered, "the answer at seq %d comes before its question at %d", a.seq, said[o][0].seq)
		}
		if o.task != "" && a.task != o.task {
			add(changed, "%q got the task %s and was answered by %s", o.text, o.task, a.task)
		}
		if a.state != "completed" {
			add(unanswered, "the answer to %q is %s", o.text, a.state)
		}
	}
	for _, a := range stray {
		add(intruded, "seq %d %q (task %s, %s) answers no question", a.seq, clip(a.text), a.task, a.state)
	}
}

// checkStreams requires that each stream is a part of the transcript without gaps, duplicates or
// changes, beginning after the seq that the reader asked for.
func checkStreams(transcript []message, streams []stream, add func(kind, format string, args ...any)) {
	bySeq := make(map[int64]string, len(transcript))
	for _, m := range transcript {
		bySeq[m.seq] = m.id
	}
	for _, s := range streams {
		want := s.after + 1
		for _, e := range s.seen {
			id, ok := bySeq[e.seq]
			switch {
			case e.seq > want:
				add(misread, "a %s reader after %d was told %d when %d was next (a gap)", s.how, s.after, e.seq, want)
			case e.seq < want:
				add(misread, "a %s reader after %d was told %d when %d was next (a duplicate)", s.how, s.after, e.seq, want)
			}
			if !ok {
				add(vanished, "seq %d id %s, and what else a %s reader was shown after it, is gone", e.seq, e.id, s.how)
				break
			} else if id != e.id {
				add(changed, "seq %d was shown to a %s reader as %s and is now %s", e.seq, s.how, e.id, id)
			}
			want = e.seq + 1
		}
	}
}

// waiting returns the number of questions in the transcript that have no answer yet.
func waiting(ops []*op, transcript []message) int {
	byText := make(map[string]bool, len(ops))
	for _, o := range ops {
		if o.answer != 0 {
			byText[o.text] = true
		}
	}
	n := 0
	for _, m := range transcript {
		if m.fromAgent {
			n--
		} else if byText[m.text] {
			n++
		}
	}
	return n
}

// learn decides the unknown outcomes by a settled transcript that was read after a restart: a message
// that is present counts as acked, any other as refused.
func learn(ops []*op, transcript []message) {
	byText := make(map[string]message, len(transcript))
	for _, m := range transcript {
		if !m.fromAgent {
			byText[m.text] = m
		}
	}
	for _, o := range ops {
		if o.outcome != unknown {
			continue
		}
		if m, ok := byText[o.text]; ok {
			o.outcome, o.id, o.seq = acked, m.id, m.seq
		} else {
			o.outcome = refused
		}
	}
}

// forget resets the outcomes that were learned at or after a power cut, because the cut may have
// removed their effects. It returns the streams that began before the cut: a later one may have resumed
// from a seq that was learned after it.
func forget(ops []*op, streams []stream, cut time.Time) []stream {
	for _, o := range ops {
		if o.outcome == acked && !o.ackedAt.Before(cut) {
			o.outcome, o.id, o.seq, o.task = unknown, "", 0, ""
		}
	}
	streams = slices.DeleteFunc(streams, func(s stream) bool { return !s.began.Before(cut) })
	for i := range streams {
		s := &streams[i]
		for n, e := range s.seen {
			if !e.at.Before(cut) {
				s.seen = s.seen[:n]
				break
			}
		}
	}
	return streams
}

var number = regexp.MustCompile(`[0-9](?:[0-9,_'\x{00a0}\x{2009}\x{202f}]*[0-9])?`)

// numbers returns the distinct whole numbers in a text. Digits may be grouped by commas, underscores,
// apostrophes or spaces.
func numbers(text string) []int64 {
	var out []int64
	known := make(map[int64]bool)
	for _, s := range number.FindAllString(text, -1) {
		var n int64
		for _, r := range s {
			if r >= '0' && r <= '9' && n < 1<<56 {
				n = n*10 + int64(r-'0')
			}
		}
		if !known[n] {
			known[n] = true
			out = append(out, n)
		}
	}
	return out
}

func seqs(list []message) string {
	var b []string
	for _, m := range list {
		b = append(b, fmt.Sprint(m.seq))
	}
	return strings.Join(b, ", ")
}

func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}

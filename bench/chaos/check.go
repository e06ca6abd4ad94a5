package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// outcome is what a client knows of something it asked for.
type outcome int

const (
	// unknown: no answer came, or none that decides. It may have happened
	// once, or not at all.
	unknown outcome = iota
	// refused: every attempt was refused, or it was seen not to be there after
	// a restart. It must not be there.
	refused
	// acked: it was confirmed, or seen on disk after a restart. It must be
	// there, the same, for ever.
	acked
)

// op is one message somebody wants to say. Its text is said by nobody else.
type op struct {
	sender   string // handle
	clientID string
	text     string
	// answer is the number that only the answer to this question holds; 0 for
	// what asks nobody.
	answer int64

	outcome  outcome
	attempts int // that reached, or may have reached, the portal
	vague    int // of these, without a deciding answer
	ackedAt  time.Time
	id       string
	seq      int64
	task     string // the question's task, when the portal named it
}

// message is an entry of a transcript as the API shows it.
type message struct {
	seq       int64
	id        string
	fromAgent bool
	sender    string
	text      string
	task      string
	state     string
}

// stream is what one connection of a live reader was told.
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

// violation is a broken promise. Kind is one of the words below, which the
// tests of the checker and the final count go by.
type violation struct{ kind, text string }

func (v violation) String() string { return v.kind + ": " + v.text }

const (
	lost       = "lost"
	duplicated = "duplicated"
	gap        = "gap"
	reordered  = "reordered"
	changed    = "changed"
	intruded   = "intruded" // there, though refused or said by nobody
	unanswered = "unanswered"
	vanished   = "vanished" // was shown to a live reader, and is gone
	misread    = "misread"  // a live reader was told something else
	misbehaved = "misbehaved"
)

// check compares what clients and readers of one conversation know with its
// transcript, which must be settled: nothing is being answered any more.
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

// checkAnswers demands one completed answer to each question that is there,
// the right one, and no other answers.
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

// checkStreams demands that each reader was told the transcript itself, from
// where it asked on, each message once and in order.
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

// waiting reports how many questions still wait for an answer.
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

// learn settles what was unknown by a settled transcript read after a restart:
// what is there was said, what is not there never will be.
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

// forget takes back what clients and readers learned from the instant of a
// power cut on: it may be gone. It returns the streams that began before: where
// a later one took up may have been learned after the cut.
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

// numbers returns the different whole numbers in a text, however they are
// grouped.
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

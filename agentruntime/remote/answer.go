package remote

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"agentsite/internal/a2a"
	"agentsite/internal/task"
)

// answer puts together what an agent says in artifacts, messages and status
// updates, and shows its growing text to the sink: what was streamed equals
// task.PlainText of the final parts.
//
// Text, links and data are the answer itself. Files that come as bytes go to
// the sink as artifacts, which are stored by content.
type answer struct {
	out       task.Sink
	artifacts []*artifact
	byID      map[string]*artifact
	tail      []task.Part // of the final message
	fallback  []task.Part // used when there is nothing else
	shown     strings.Builder
}

type artifact struct {
	task.Artifact
	pieces []*piece
	dirty  bool // has files the sink has not seen
}

// piece is one part; the text of consecutive appended text parts grows in it.
type piece struct {
	text strings.Builder
	part task.Part
}

func newAnswer(out task.Sink) *answer {
	return &answer{out: out, byID: make(map[string]*artifact)}
}

// snapshot replaces the artifacts by what the agent's task holds now. An empty
// list says nothing: some agents leave it out.
func (a *answer) snapshot(list []task.Artifact) error {
	for _, art := range list {
		if err := a.set(art); err != nil {
			return err
		}
	}
	return a.show()
}

// update takes an artifact or more of one.
func (a *answer) update(u *a2a.ArtifactUpdate) error {
	old := a.byID[u.Artifact.ID]
	if !u.Append || old == nil {
		if err := a.set(u.Artifact); err != nil {
			return err
		}
		return a.show()
	}
	last := old == a.artifacts[len(a.artifacts)-1] && len(a.tail) == 0
	for _, p := range u.Artifact.Parts {
		// The common case of a stream: nothing to put together again.
		if old.add(p) && last && a.shown.Len()+len(p.Text) <= maxText {
			a.emit(p.Text)
			continue
		}
		last = false
	}
	if last {
		return nil
	}
	return a.show()
}

func (a *answer) set(in task.Artifact) error {
	if in.ID == "" {
		in.ID = fmt.Sprintf("artifact-%d", len(a.artifacts)+1)
	}
	art := a.byID[in.ID]
	if art == nil {
		if len(a.artifacts) >= a2a.MaxArtifacts {
			return &trouble{fmt.Sprintf("The agent sent more than %d artifacts and was stopped.", a2a.MaxArtifacts)}
		}
		art = &artifact{}
		a.artifacts = append(a.artifacts, art)
		a.byID[in.ID] = art
	}
	art.Artifact = in
	art.pieces = nil
	for _, p := range in.Parts {
		art.add(p)
	}
	return nil
}

// add takes a part and reports whether it only made the last text longer. The
// texts of one artifact are joined as they are: an agent's task holds what it
// streamed as one part per chunk.
func (art *artifact) add(p task.Part) bool {
	if n := len(art.pieces); n > 0 && isText(p) && isText(art.pieces[n-1].part) {
		art.pieces[n-1].text.WriteString(p.Text)
		return true
	}
	pc := &piece{part: p}
	pc.text.WriteString(p.Text)
	art.pieces = append(art.pieces, pc)
	art.dirty = art.dirty || !isText(p)
	return false
}

func isText(p task.Part) bool {
	return p.Text != "" && p.Filename == ""
}

// message is an answer without a task. Its files become one artifact.
func (a *answer) message(parts []task.Part) error {
	var files []task.Part
	for _, p := range parts {
		if len(p.Raw) > 0 {
			files = append(files, p)
		}
	}
	if len(files) > 0 {
		if err := a.set(task.Artifact{ID: "message-files", Parts: files}); err != nil {
			return err
		}
	}
	return a.final(parts)
}

// final takes the message that came with the last status. Agents that repeat
// their answer there are not heard twice.
func (a *answer) final(parts []task.Part) error {
	have := strings.TrimSpace(task.PlainText(a.gather()))
	if said := strings.TrimSpace(task.PlainText(parts)); said == have {
		return nil
	}
	a.tail = parts
	return a.show()
}

// note shows what the agent says while it works.
func (a *answer) note(parts []task.Part) {
	text := a2a.Line(task.PlainText(parts), 200)
	if text == "" {
		return
	}
	a.out.Status(text)
	a.fallback = parts
}

// history keeps the agent's last words for agents that say their answer only
// there.
func (a *answer) history(list []a2a.Message) {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].FromAgent && len(list[i].Parts) > 0 {
			a.fallback = list[i].Parts
			return
		}
	}
}

// complete falls back to the last words when a completed task brought nothing.
func (a *answer) complete() error {
	if len(a.gather()) > 0 || len(a.files()) > 0 {
		return nil
	}
	a.tail = a.fallback
	return a.show()
}

// gather lists the parts of the answer as they are now, without files.
func (a *answer) gather() []task.Part {
	var out []task.Part
	for _, art := range a.artifacts {
		for _, pc := range art.pieces {
			p := pc.part
			if p.Text != "" {
				p.Text = pc.text.String()
			}
			if len(p.Raw) == 0 {
				out = append(out, p)
			}
		}
	}
	for _, p := range a.tail {
		if len(p.Raw) == 0 {
			out = append(out, p)
		}
	}
	return out
}

func (a *answer) files() []string {
	var names []string
	for _, art := range a.artifacts {
		for _, pc := range art.pieces {
			if len(pc.part.Raw) > 0 {
				names = append(names, "[file "+pc.part.Filename+"]")
			}
		}
	}
	return names
}

// parts is gather cut to maxText; an answer of files alone names them.
func (a *answer) parts() []task.Part {
	parts, _ := a.bounded()
	return parts
}

func (a *answer) bounded() ([]task.Part, bool) {
	all := a.gather()
	if len(all) == 0 {
		if names := a.files(); len(names) > 0 {
			all = []task.Part{task.TextPart(strings.Join(names, "\n"))}
		}
	}
	room := maxText
	for i, p := range all {
		n := len(task.PlainText(all[i : i+1]))
		if i > 0 {
			room -= len("\n\n") // as PlainText joins them
		}
		if n <= room {
			room -= n
			continue
		}
		kept := all[:i:i]
		if p.Text != "" && room > 0 {
			p.Text = cutText(p.Text, room)
			kept = append(kept, p)
		}
		return kept, true
	}
	return all, false
}

// cutText cuts s to at most n bytes between runes.
func cutText(s string, n int) string {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// show brings the sink up to date with the answer.
func (a *answer) show() error {
	a.showFiles()
	parts, cut := a.bounded()
	text := task.PlainText(parts)
	if more, ok := strings.CutPrefix(text, a.shown.String()); ok {
		a.emit(more)
	} else {
		a.shown.Reset()
		a.shown.WriteString(text)
		a.out.Replace(text)
	}
	if cut {
		return &trouble{fmt.Sprintf("The answer is longer than %d KiB and was cut.", maxText>>10)}
	}
	return nil
}

func (a *answer) emit(s string) {
	if s != "" {
		a.shown.WriteString(s)
		a.out.Text(s)
	}
}

func (a *answer) showFiles() {
	for _, art := range a.artifacts {
		if !art.dirty {
			continue
		}
		art.dirty = false
		full := art.Artifact
		full.Parts = nil
		for _, pc := range art.pieces {
			p := pc.part
			if p.Text != "" {
				p.Text = pc.text.String()
			}
			full.Parts = append(full.Parts, p)
		}
		a.out.Artifact(full)
	}
}

// finish returns the final parts.
func (a *answer) finish() []task.Part {
	a.showFiles()
	return a.parts()
}

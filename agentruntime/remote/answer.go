package remote

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"agentsite/internal/a2a"
	"agentsite/internal/task"
)

// answer assembles an agent's output from artifacts, messages and status updates, and shows its growing
// text to the sink. The streamed text equals task.PlainText of the final parts.
//
// Text, links and data are the answer itself. Files that arrive as bytes go to the sink as artifacts,
// which are stored by content.
type answer struct {
	out       task.Sink
	artifacts []*artifact
	byID      map[string]*artifact
	pieces    int         // of all artifacts
	tail      []task.Part // parts of the final message, after the artifacts
	fallback  []task.Part // the agent's last message, used when there is no other content
	shown     strings.Builder
}

// maxPieces bounds the pieces of all artifacts, because each update of the agent may walk through all of
// them. Texts of one artifact are one piece, and an answer with more pieces than chat.MaxParts is cut.
const maxPieces = 1000

type artifact struct {
	task.Artifact
	pieces []*piece
	dirty  bool // set while the sink does not have the current files
}

// piece is one part of an artifact. Texts that follow each other share a piece and
// its builder.
type piece struct {
	text strings.Builder
	part task.Part
}

func newAnswer(out task.Sink) *answer {
	return &answer{out: out, byID: make(map[string]*artifact)}
}

// setSnapshot replaces the artifacts by those of the agent's task. An empty list changes nothing,
// because some agents omit it.
func (a *answer) setSnapshot(list []task.Artifact) error {
	for i, art := range list {
		if art.ID == "" { // the same one in each snapshot
			art.ID = fmt.Sprintf("artifact-%d", i+1)
		}
		if err := a.setArtifact(art); err != nil {
			return err
		}
	}
	return a.showText()
}

// applyUpdate takes an artifact or, with Append, the continuation of one. It returns a *trouble beyond a
// limit.
func (a *answer) applyUpdate(u *a2a.ArtifactUpdate) error {
	old := a.byID[u.Artifact.ID]
	if !u.Append || old == nil {
		if err := a.setArtifact(u.Artifact); err != nil {
			return err
		}
		return a.showText()
	}
	last := old == a.artifacts[len(a.artifacts)-1] && len(a.tail) == 0
	had := len(old.pieces)
	for _, p := range u.Artifact.Parts {
		// A text that extends the last artifact is the common case of a stream: it is shown without
		// building the whole answer again.
		if old.addPart(p) && last && a.shown.Len()+len(p.Text) <= maxText {
			a.emitText(p.Text)
			continue
		}
		last = false
	}
	if err := a.countPieces(len(old.pieces) - had); err != nil {
		return err
	}
	if last {
		return nil
	}
	return a.showText()
}

// countPieces adds n to the number of pieces; a *trouble beyond maxPieces.
func (a *answer) countPieces(n int) error {
	if a.pieces += n; a.pieces > maxPieces {
		return &trouble{fmt.Sprintf("The agent sent more than %d parts and was stopped.", maxPieces)}
	}
	return nil
}

func (a *answer) setArtifact(in task.Artifact) error {
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
	had := len(art.pieces)
	art.pieces = nil
	for _, p := range in.Parts {
		art.addPart(p)
	}
	return a.countPieces(len(art.pieces) - had)
}

// addPart takes a part and reports whether it only extended the last text. The texts of one artifact
// are joined, because an agent's task holds the streamed text as one part per chunk.
func (art *artifact) addPart(p task.Part) bool {
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

// addMessage takes an answer that has no task. Its files become one artifact, because only artifacts are
// stored by content.
func (a *answer) addMessage(parts []task.Part) error {
	var files []task.Part
	for _, p := range parts {
		if len(p.Raw) > 0 {
			files = append(files, p)
		}
	}
	if len(files) > 0 {
		if err := a.setArtifact(task.Artifact{ID: "message-files", Parts: files}); err != nil {
			return err
		}
	}
	return a.setFinal(parts)
}

// setFinal takes the message of the last status as the end of the answer. A message that only repeats
// the answer is dropped, also one that has the same data with other spaces.
func (a *answer) setFinal(parts []task.Part) error {
	have := strings.TrimSpace(task.PlainText(a.collectParts()))
	if said := strings.TrimSpace(task.PlainText(parts)); said == have || task.SameJSON([]byte(said), []byte(have)) {
		return nil
	}
	a.tail = parts
	return a.showText()
}

// showNote shows a message of the agent as a status while it works, and keeps it as the fallback.
func (a *answer) showNote(parts []task.Part) {
	text := a2a.Line(task.PlainText(parts), 200)
	if text == "" {
		return
	}
	a.out.Status(text)
	a.fallback = parts
}

// keepLast keeps the agent's last message as the fallback, because some agents put their answer only
// there.
func (a *answer) keepLast(list []a2a.Message) {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].FromAgent && len(list[i].Parts) > 0 {
			a.fallback = list[i].Parts
			return
		}
	}
}

// useFallback makes the last message the answer of a completed task that has neither text nor files.
func (a *answer) useFallback() error {
	if len(a.collectParts()) > 0 || len(a.fileNames()) > 0 {
		return nil
	}
	a.tail = a.fallback
	return a.showText()
}

// collectParts lists the parts of the answer as known now, without files: artifacts in the order of
// their first update, then the final message.
func (a *answer) collectParts() []task.Part {
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

func (a *answer) fileNames() []string {
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

// finalParts is collectParts cut to maxText bytes of text. An answer of files alone gets their names as
// text, because an answer must not be empty.
func (a *answer) finalParts() []task.Part {
	parts, _ := a.boundedParts()
	return parts
}

func (a *answer) boundedParts() ([]task.Part, bool) {
	all := task.DropRepeats(a.collectParts())
	if len(all) == 0 {
		if names := a.fileNames(); len(names) > 0 {
			all = []task.Part{task.TextPart(strings.Join(names, "\n"))}
		}
	}
	room := maxText
	for i, p := range all {
		n := len(task.PlainText(all[i : i+1]))
		if i > 0 {
			room -= len("\n\n") // PlainText joins the parts with this separator.
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

// cutText cuts s to at most n bytes at a character boundary; n must be less than len(s).
func cutText(s string, n int) string {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// showText brings the sink up to date: it appends if the shown text is a prefix, and replaces it
// otherwise. It returns a *trouble if the answer was cut.
func (a *answer) showText() error {
	a.showFiles()
	parts, cut := a.boundedParts()
	text := task.PlainText(parts)
	if more, ok := strings.CutPrefix(text, a.shown.String()); ok {
		a.emitText(more)
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

func (a *answer) emitText(s string) {
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

// finishParts passes outstanding files to the sink and returns the final parts.
func (a *answer) finishParts() []task.Part {
	a.showFiles()
	return a.finalParts()
}

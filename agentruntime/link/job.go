package link

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"agentsite/agentruntime/equip"
	"agentsite/internal/linkwire"
	"agentsite/internal/task"
)

// run is one call of Run. The session's reader stores the agent's messages in it, bounded, and the
// goroutine of Run takes them out, so that one slow sink does not delay other tasks.
type run struct {
	d         *Driver
	call      task.Call
	agent     *agent
	out       *equip.Kit
	trace     task.Tracer
	traces    atomic.Int32
	wake      chan struct{} // has capacity 1: signals that the session changed a field below
	continued bool
	first     int64 // the lease at the start of this run; later ones are new
	lostAt    time.Time
	shown     strings.Builder // the text passed to the sink

	// The fields below are guarded by agent.mu. Only Run's goroutine changes at.
	at        checkpoint
	held      bool     // the agent may still hold lease at.Lease
	s         *session // the session that the task runs on; nil while it waits
	asked     bool     // start or resume was sent on s
	accepted  bool
	refused   *linkwire.Error
	have      int // bytes of text received under this lease
	total     int // bytes of accepted text in all, bounded by linkwire.MaxText
	pending   []byte
	status    string
	artifacts []task.Artifact
	produced  int
	bulk      int // bytes of artifacts, bounded by linkwire.MaxArtifactBytes
	done      *linkwire.Done
	doneID    json.RawMessage
	broken    string // the reason why further messages are ignored
}

// agentName returns the agent's name as the subject of a sentence for users.
func (r *run) agentName() string {
	if r.call.Agent.Name != "" {
		return r.call.Agent.Name
	}
	return "The agent"
}

func (r *run) wakeRun() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *run) addRun() bool {
	a := r.agent
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.runs[r.call.TaskID] != nil {
		return false
	}
	a.runs[r.call.TaskID] = r
	return true
}

// leaveAgent removes the run from its agent, which may make room for others. With a reason the agent
// gets a cancel, unless its answer was accepted: now if it is connected, else when it reconnects.
func (r *run) leaveAgent(reason string) {
	a := r.agent
	a.mu.Lock()
	id, lease, s := r.call.TaskID, r.at.Lease, r.s
	stop := s != nil && r.asked && reason != ended
	r.leaveSession()
	if now := a.session; now != nil && now.offered[id] == lease && lease > 0 && reason != "" {
		delete(now.offered, id)
		s, stop = now, true
	}
	delete(a.runs, id)
	a.queue = slices.DeleteFunc(a.queue, func(q *run) bool { return q == r })
	a.notifyChange()
	a.mu.Unlock()
	if stop && reason != "" {
		b := linkwire.EncodeNotification(linkwire.MethodCancel, linkwire.Cancel{Task: id, Lease: lease, Reason: reason})
		r.traceMessage(true, linkwire.MethodCancel, b)
		s.sendMessage(b)
	}
}

// leaveSession removes the run from its session and drops answers that the session still expects for it;
// the caller holds agent.mu.
func (r *run) leaveSession() {
	if s := r.s; s != nil {
		delete(s.runs, r.call.TaskID)
		for id, x := range s.calls {
			if x == r {
				delete(s.calls, id)
			}
		}
	}
	r.s, r.asked = nil, false
}

// loseSession records that the run's session ended; the caller holds agent.mu. A request that was never
// answered does not count as an attempt.
func (r *run) loseSession() {
	if !r.accepted && r.have == 0 && r.at.Hands > 0 {
		r.at.Hands--
	}
	r.held = r.held || r.asked
	r.s, r.asked = nil, false
	r.wakeRun()
}

// releaseLease gives up a lease that the agent no longer holds, so that the task is given out anew.
func (r *run) releaseLease() {
	a := r.agent
	a.mu.Lock()
	defer a.mu.Unlock()
	r.leaveSession()
	r.held = false
	a.notifyChange()
}

// takeDelta takes a piece of text at an offset in bytes. It ignores repeated bytes, and fails the task
// for a gap or for more than linkwire.MaxText; the caller holds agent.mu.
func (r *run) takeDelta(p linkwire.Delta) {
	if r.done != nil || r.broken != "" {
		return
	}
	defer r.wakeRun()
	text := p.Text
	switch end := p.Offset + len(text); {
	case p.Offset < 0 || p.Offset > r.have:
		r.broken = fmt.Sprintf("%s left out a part of its answer.", r.agentName())
		return
	case end <= r.have:
		return // These bytes were received before the connection was lost.
	default:
		text = text[r.have-p.Offset:]
		if !utf8.RuneStart(text[0]) {
			r.broken = fmt.Sprintf("%s continued its answer in the middle of a character.", r.agentName())
			return
		}
		r.have = end
	}
	text = strings.ReplaceAll(text, "\x00", "")
	if r.total += len(text); r.total > linkwire.MaxText {
		r.broken = fmt.Sprintf("The answer is longer than %d KiB and was cut.", linkwire.MaxText>>10)
		return
	}
	r.pending = append(r.pending, text...)
}

// takeArtifact takes an artifact, or fails the task if it exceeds a limit; the caller holds agent.mu.
func (r *run) takeArtifact(in linkwire.Artifact) {
	if r.done != nil || r.broken != "" {
		return
	}
	defer r.wakeRun()
	parts, size, why := checkParts(in.Parts)
	r.produced++
	r.bulk += size
	switch {
	case why != "":
		r.broken = fmt.Sprintf("%s sent an artifact that is not as it should be: %s.", r.agentName(), why)
	case in.ID == "" || len(in.ID) > 100:
		r.broken = fmt.Sprintf("%s sent an artifact without an id of at most 100 bytes.", r.agentName())
	case r.produced > 2*linkwire.MaxArtifacts:
		r.broken = fmt.Sprintf("%s sent more than %d artifacts and was stopped.", r.agentName(),
			2*linkwire.MaxArtifacts)
	case r.bulk > linkwire.MaxArtifactBytes:
		r.broken = fmt.Sprintf("%s sent artifacts of more than %d KiB and was stopped.", r.agentName(),
			linkwire.MaxArtifactBytes>>10)
	default:
		r.artifacts = append(r.artifacts, task.Artifact{ID: linkwire.Line(in.ID, 100),
			Name: linkwire.Line(in.Name, 200), Description: linkwire.Line(in.Description, 1000), Parts: parts})
	}
}

// news holds the changes to a run since the last call of emitNews, copied so that they can be handled
// without agent.mu.
type news struct {
	some, accepted, lost bool
	refused              *linkwire.Error
	done                 *linkwire.Done
	broken               string
}

// emitNews passes the received text, status and artifacts to the sink, and returns all changes. The sink
// is called without agent.mu, because it may block.
func (r *run) emitNews() news {
	a := r.agent
	a.mu.Lock()
	text, status, artifacts := string(r.pending), r.status, r.artifacts
	r.pending, r.status, r.artifacts = r.pending[:0], "", nil
	n := news{some: text != "" || status != "" || len(artifacts) > 0, accepted: r.accepted, lost: r.s == nil,
		refused: r.refused, done: r.done, broken: r.broken}
	a.mu.Unlock()
	if status != "" {
		r.out.Status(status)
	}
	r.showText(text)
	for _, art := range artifacts {
		r.out.Artifact(art)
	}
	return n
}

func (r *run) showText(text string) {
	if text != "" {
		r.shown.WriteString(text)
		r.out.Text(text)
	}
}

// shownParts returns the text shown so far as parts; nil if there is none.
func (r *run) shownParts() []task.Part {
	if r.shown.Len() == 0 {
		return nil
	}
	return []task.Part{task.TextPart(r.shown.String())}
}

// finishTask builds the outcome of the agent's final message, stores it, and then confirms it to the
// agent.
func (r *run) finishTask(ctx context.Context, d linkwire.Done) (task.Result, error) {
	res := task.Result{State: task.State(d.State), Reason: linkwire.Sentence(d.Reason, linkwire.MaxReason)}
	var why string
	if res.Parts, why = r.answerParts(d); why == "" {
		switch d.State {
		case linkwire.Completed:
		case linkwire.InputRequired, linkwire.Rejected:
		case linkwire.Failed:
			if res.Reason == "" {
				res.Reason = fmt.Sprintf("%s failed and did not say why.", r.agentName())
			}
		default:
			why = "it ended in a state that does not exist"
		}
	}
	if why != "" {
		res = task.Result{State: task.Failed, Parts: r.shownParts(),
			Reason: fmt.Sprintf("%s sent an answer that is not as it should be: %s.", r.agentName(), why)}
	} else if text := task.PlainText(res.Parts); text != r.shown.String() {
		if more, ok := strings.CutPrefix(text, r.shown.String()); ok {
			r.showText(more)
		} else {
			r.shown.Reset()
			r.shown.WriteString(text)
			r.out.Replace(text)
		}
	}
	a := r.agent
	a.mu.Lock()
	at := r.at
	a.mu.Unlock()
	res = r.out.AskPermission(res)
	res.Parts, res.Reason = r.out.HideParts(res.Parts), r.out.HideToken(res.Reason)
	at.Done = &outcome{res.State, res.Parts, res.Reason}
	if err := r.saveCheckpoint(ctx, at); err != nil {
		return task.Result{}, err
	}
	a.mu.Lock()
	s, id := r.s, r.doneID
	a.mu.Unlock()
	if s != nil && id != nil {
		b := linkwire.EncodeResponse(id, linkwire.Accepted{Accepted: true})
		r.traceMessage(true, "answer", b)
		s.sendMessage(b)
	}
	return res, nil
}

// answerParts returns the parts of the final answer, or in why the problem with them as a clause. Files
// that arrive as bytes go to the sink as an artifact, which is stored by content.
func (r *run) answerParts(d linkwire.Done) (parts []task.Part, why string) {
	if len(d.Parts) == 0 {
		if d.Text == "" {
			return r.shownParts(), ""
		}
		d.Parts = []linkwire.Part{{Text: d.Text}}
	}
	all, size, why := checkParts(d.Parts)
	if why == "" && size > linkwire.MaxArtifactBytes {
		why = "it is too large"
	}
	if why != "" {
		return nil, why
	}
	var files []task.Part
	var names []string
	for _, p := range all {
		if len(p.Raw) > 0 {
			files, names = append(files, p), append(names, "[file "+p.Filename+"]")
		} else {
			parts = append(parts, p)
		}
	}
	if len(files) > 0 {
		r.out.Artifact(task.Artifact{ID: "message-files", Parts: files})
		if len(parts) == 0 {
			parts = []task.Part{task.TextPart(strings.Join(names, "\n"))}
		}
	}
	if len(task.PlainText(parts)) > linkwire.MaxText {
		return nil, fmt.Sprintf("it is longer than %d KiB", linkwire.MaxText>>10)
	}
	return parts, ""
}

// checkParts converts received parts and adds up their bytes. why is the first problem with them as a
// clause, "" if there is none.
func checkParts(in []linkwire.Part) (out []task.Part, size int, why string) {
	if len(in) > linkwire.MaxParts {
		return nil, 0, fmt.Sprintf("it has more than %d parts", linkwire.MaxParts)
	}
	for _, p := range in {
		set := 0
		for _, is := range []bool{p.Text != "", len(p.Raw) > 0, p.URL != "", len(p.Data) > 0} {
			if is {
				set++
			}
		}
		if set != 1 {
			return nil, 0, "a part must have exactly one of text, raw, url and data"
		}
		if p.URL != "" {
			if u, err := url.Parse(p.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
				len(p.URL) > 2000 {
				return nil, 0, "the url of a part is no web address"
			}
		}
		size += len(p.Text) + len(p.Raw) + len(p.Data) + len(p.URL)
		q := task.Part(p)
		q.Text = strings.ReplaceAll(p.Text, "\x00", "")
		q.MediaType, q.Filename, q.Metadata = linkwire.Line(p.MediaType, 100), linkwire.Line(p.Filename, 200), nil
		if q.Text != "" || p.Text == "" {
			out = append(out, q)
		}
	}
	return out, size, ""
}

func wireParts(in []task.Part) []linkwire.Part {
	out := make([]linkwire.Part, len(in))
	for i, p := range in {
		out[i] = linkwire.Part(p)
	}
	return out
}

// traceMessage reports one message if the call is traced. No message contains the bearer token, because
// it is not sent after hello.
func (r *run) traceMessage(out bool, head string, body []byte) {
	if r.trace == nil || r.traces.Add(1) > task.MaxTraces {
		return
	}
	t := task.Traced{At: time.Now(), Out: out, Head: head, Size: int64(len(body))}
	t.Body = strings.ToValidUTF8(string(body[:min(len(body), task.MaxTraced)]), "")
	r.trace.AddTrace(t)
}

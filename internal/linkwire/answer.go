package linkwire

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// job is the agent's state of one task, until the portal has accepted the end of the task. Agent.mu
// guards it.
type job struct {
	task   Task
	cancel context.CancelFunc
	// active is true when messages about the job may be sent on the present connection: the portal
	// gave the task on it or resumed it.
	active    bool
	text      []byte
	sent      int // bytes of text sent so far
	status    string
	artifacts []Artifact
	produced  int // number of artifacts sent so far
	done      *Done
	doneID    int64 // id of the done request on this connection, 0 when not sent
}

// resumeFrom makes a job active again and sends its text from the portal's offset. It returns false
// if the text is shorter than offset or offset is inside a character.
func (j *job) resumeFrom(offset int) bool {
	if offset < 0 || offset > len(j.text) || offset < len(j.text) && !utf8.RuneStart(j.text[offset]) {
		return false
	}
	j.active, j.sent, j.produced, j.doneID = true, offset, 0, 0
	return true
}

// Answer takes the output of Work and queues it for the portal. Its methods may be called
// concurrently and do not wait for the network.
type Answer struct {
	a *Agent
	j *job
}

// ErrFull is returned by Text when the answer has reached MaxText.
var ErrFull = errors.New("the answer is full")

// Text appends to the answer. Invalid UTF-8 is replaced. It returns ErrFull when the answer would
// exceed MaxText.
func (o *Answer) Text(s string) error {
	s = strings.ToValidUTF8(s, "\uFFFD")
	o.a.mu.Lock()
	defer o.a.mu.Unlock()
	if len(o.j.text)+len(s) > MaxText {
		return ErrFull
	}
	o.j.text = append(o.j.text, s...)
	o.a.wakePump()
	return nil
}

// Status shows readers a few words about the current step. Only the last status that was not sent
// yet is sent.
func (o *Answer) Status(s string) {
	o.a.mu.Lock()
	defer o.a.mu.Unlock()
	o.j.status = Line(s, MaxStatus)
	o.a.wakePump()
}

// Artifact adds an artifact or replaces the one with the same id. Artifacts beyond MaxArtifacts are
// dropped.
func (o *Answer) Artifact(art Artifact) {
	o.a.mu.Lock()
	defer o.a.mu.Unlock()
	if len(o.j.artifacts) < MaxArtifacts {
		o.j.artifacts = append(o.j.artifacts, art)
		o.a.wakePump()
	}
}

// pumpMessages sends the output of the jobs, in rounds gatherTime apart, until ctx or the
// connection ends.
func (a *Agent) pumpMessages(ctx context.Context, s *Socket) {
	a.wakePump() // output may have waited for this connection
	for {
		select {
		case <-a.wake:
		case <-ctx.Done():
			return
		}
		for _, b := range a.takeOutgoing() {
			if s.Send(ctx, b) != nil {
				return // the connection is broken; the receiving goroutine ends too
			}
		}
		select {
		case <-time.After(gatherTime):
		case <-ctx.Done():
			return
		}
	}
}

// takeOutgoing encodes the output of the active jobs that has not been sent and marks it as sent.
// Of a long text it takes one delta of at most maxPiece.
func (a *Agent) takeOutgoing() (out [][]byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, j := range a.jobs {
		if !j.active {
			continue
		}
		id, lease := j.task.Task, j.task.Lease
		if j.status != "" {
			out = append(out, EncodeNotification(MethodStatus, Status{id, lease, j.status}))
			j.status = ""
		}
		if n := j.sent + pieceLen(j.text[j.sent:]); n > j.sent {
			out = append(out, EncodeNotification(MethodDelta, Delta{id, lease, j.sent, string(j.text[j.sent:n])}))
			j.sent = n
		}
		for _, art := range slices.Clone(j.artifacts[j.produced:]) {
			out = append(out, EncodeNotification(MethodArtifact, Produced{id, lease, art}))
			j.produced++
		}
		switch {
		case j.sent < len(j.text):
			a.wakePump() // the rest follows in the next round
		case j.done != nil && j.doneID == 0:
			a.nextID++
			j.doneID = a.nextID
			out = append(out, EncodeRequest(j.doneID, MethodDone, j.done))
		}
	}
	return out
}

// pieceLen returns the number of bytes of b that fit into one delta, without cutting a UTF-8
// character.
func pieceLen(b []byte) int {
	n := min(len(b), maxPiece)
	for n > 0 && n < len(b) && !utf8.RuneStart(b[n]) {
		n--
	}
	return n
}

package linkwire

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// job is one task at the agent, until the portal has accepted its end. Agent.mu guards it.
type job struct {
	task   Task
	cancel context.CancelFunc
	// active is true when messages about it may be sent on the present connection.
	active    bool
	text      []byte
	sent      int // bytes of text
	status    string
	artifacts []Artifact
	produced  int // artifacts sent
	done      *Done
	doneID    int64 // of the request on this connection, 0 when not sent
}

// resumeFrom continues the job at an offset of its text; false if the text has no such offset.
func (j *job) resumeFrom(offset int) bool {
	if offset < 0 || offset > len(j.text) || offset < len(j.text) && !utf8.RuneStart(j.text[offset]) {
		return false
	}
	j.active, j.sent, j.produced, j.doneID = true, offset, 0, 0
	return true
}

// Answer takes the output of Work. Its methods may be called concurrently.
type Answer struct {
	a *Agent
	j *job
}

// ErrFull is returned by Text when the answer has reached MaxText.
var ErrFull = errors.New("the answer is full")

// Text appends to the answer. Invalid UTF-8 is replaced.
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

// Status shows readers a few words about the current step.
func (o *Answer) Status(s string) {
	o.a.mu.Lock()
	defer o.a.mu.Unlock()
	o.j.status = Line(s, MaxStatus)
	o.a.wakePump()
}

// Artifact adds an artifact, or replaces the one with the same id.
func (o *Answer) Artifact(art Artifact) {
	o.a.mu.Lock()
	defer o.a.mu.Unlock()
	if len(o.j.artifacts) < MaxArtifacts {
		o.j.artifacts = append(o.j.artifacts, art)
		o.a.wakePump()
	}
}

// pumpMessages sends the output of the jobs until ctx or the connection ends.
func (a *Agent) pumpMessages(ctx context.Context, s *Socket) {
	a.wakePump() // output that waited for this connection
	for {
		select {
		case <-a.wake:
		case <-ctx.Done():
			return
		}
		for _, b := range a.takeOutgoing() {
			if s.Send(ctx, b) != nil {
				return // the reader notices too
			}
		}
		select {
		case <-time.After(gatherTime):
		case <-ctx.Done():
			return
		}
	}
}

// takeOutgoing takes the next messages of all jobs.
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
			a.wakePump() // more in the next round
		case j.done != nil && j.doneID == 0:
			a.nextID++
			j.doneID = a.nextID
			out = append(out, EncodeRequest(j.doneID, MethodDone, j.done))
		}
	}
	return out
}

// pieceLen returns the number of bytes of b that fit into one delta.
func pieceLen(b []byte) int {
	n := min(len(b), maxPiece)
	for n > 0 && n < len(b) && !utf8.RuneStart(b[n]) {
		n--
	}
	return n
}

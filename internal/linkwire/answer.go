package linkwire

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// job is one task at the agent, until the portal has taken its end. Agent.mu
// guards it.
type job struct {
	task   Task
	cancel context.CancelFunc
	// active is true when the present connection may speak of it.
	active    bool
	text      []byte
	sent      int // bytes of text
	status    string
	artifacts []Artifact
	produced  int // artifacts sent
	done      *Done
	doneID    int64 // of the request on this connection, 0 when not sent
}

// from makes the job go on at an offset of its text, if there is such a place.
func (j *job) from(offset int) bool {
	if offset < 0 || offset > len(j.text) || offset < len(j.text) && !utf8.RuneStart(j.text[offset]) {
		return false
	}
	j.active, j.sent, j.produced, j.doneID = true, offset, 0, 0
	return true
}

// Answer takes what Work produces. Its methods may be called concurrently.
type Answer struct {
	a *Agent
	j *job
}

// ErrFull is what Text returns when the answer has reached MaxText.
var ErrFull = errors.New("the answer is full")

// Text appends to the answer. What is no UTF-8 is replaced.
func (o *Answer) Text(s string) error {
	s = strings.ToValidUTF8(s, "\uFFFD")
	o.a.mu.Lock()
	defer o.a.mu.Unlock()
	if len(o.j.text)+len(s) > MaxText {
		return ErrFull
	}
	o.j.text = append(o.j.text, s...)
	o.a.poke()
	return nil
}

// Status says in a few words what is being done.
func (o *Answer) Status(s string) {
	o.a.mu.Lock()
	defer o.a.mu.Unlock()
	o.j.status = Line(s, MaxStatus)
	o.a.poke()
}

// Artifact adds an artifact, or replaces the one with the same id.
func (o *Answer) Artifact(art Artifact) {
	o.a.mu.Lock()
	defer o.a.mu.Unlock()
	if len(o.j.artifacts) < MaxArtifacts {
		o.j.artifacts = append(o.j.artifacts, art)
		o.a.poke()
	}
}

// pump sends what the jobs have to say until ctx or the connection ends.
func (a *Agent) pump(ctx context.Context, s *Socket) {
	a.poke() // what waited for this connection
	for {
		select {
		case <-a.wake:
		case <-ctx.Done():
			return
		}
		for _, b := range a.outgoing() {
			if s.Send(ctx, b) != nil {
				return // the reader notices too
			}
		}
		select {
		case <-time.After(gather):
		case <-ctx.Done():
			return
		}
	}
}

// outgoing takes the next messages of all jobs.
func (a *Agent) outgoing() (out [][]byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, j := range a.jobs {
		if !j.active {
			continue
		}
		id, lease := j.task.Task, j.task.Lease
		if j.status != "" {
			out = append(out, Notification(MethodStatus, Status{id, lease, j.status}))
			j.status = ""
		}
		if n := j.sent + piece(j.text[j.sent:]); n > j.sent {
			out = append(out, Notification(MethodDelta, Delta{id, lease, j.sent, string(j.text[j.sent:n])}))
			j.sent = n
		}
		for _, art := range slices.Clone(j.artifacts[j.produced:]) {
			out = append(out, Notification(MethodArtifact, Produced{id, lease, art}))
			j.produced++
		}
		switch {
		case j.sent < len(j.text):
			a.poke() // more in the next round
		case j.done != nil && j.doneID == 0:
			a.nextID++
			j.doneID = a.nextID
			out = append(out, Request(j.doneID, MethodDone, j.done))
		}
	}
	return out
}

// piece is how much of b goes into one delta.
func piece(b []byte) int {
	n := min(len(b), maxPiece)
	for n > 0 && n < len(b) && !utf8.RuneStart(b[n]) {
		n--
	}
	return n
}

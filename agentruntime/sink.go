package agentruntime

import (
	"context"
	"encoding/json"
	"sync"

	"agentsite/internal/chat"
	"agentsite/internal/task"
)

// sink implements task.Sink for one attempt. After closeSink it ignores further output.
type sink struct {
	w   *Worker
	t   task.Task
	ctx context.Context
	run *run
	// elsewhere is set before the driver runs if the call contacts another machine.
	elsewhere bool
	// peer is set before the driver runs if the agent belongs to another portal.
	peer *contact

	mu         sync.Mutex // guards the fields below
	closed     bool
	text       []byte
	artifacts  []task.Artifact
	checkpoint json.RawMessage // the last stored state; nil before the first one of this attempt
}

// maxArtifacts bounds the artifacts of one task, because they are held in memory until it ends.
const maxArtifacts = 100

// Text implements task.Sink. It ignores text after closeSink or beyond chat.MaxAnswerBytes.
func (s *sink) Text(delta string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.text)+len(delta) > chat.MaxAnswerBytes {
		return
	}
	s.text = append(s.text, delta...)
	s.w.chat.Stream(s.t.ConversationID, s.t.ID, delta)
}

// Replace implements task.Sink. It ignores a text longer than chat.MaxAnswerBytes.
func (s *sink) Replace(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(text) > chat.MaxAnswerBytes {
		return
	}
	s.text = append(s.text[:0], text...)
	s.w.chat.Restream(s.t.ConversationID, s.t.ID, text)
}

// Status implements task.Sink. It ignores texts longer than 500 bytes, because statuses are a few words.
func (s *sink) Status(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && len(text) <= 500 {
		s.w.chat.Status(s.t.ConversationID, s.t.ID, text)
	}
}

// Artifact implements task.Sink. It replaces an artifact of the same id and ignores new ones beyond
// maxArtifacts.
func (s *sink) Artifact(a task.Artifact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	for i := range s.artifacts {
		if s.artifacts[i].ID == a.ID {
			s.artifacts[i] = a
			return
		}
	}
	if len(s.artifacts) < maxArtifacts {
		s.artifacts = append(s.artifacts, a)
	}
}

// Checkpoint implements task.Sink. It returns a Conflict fault if the task has ended.
func (s *sink) Checkpoint(ctx context.Context, state json.RawMessage) error {
	if err := s.w.store.SaveCheckpoint(ctx, s.t.ID, state); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checkpoint = state
	return nil
}

// lastCheckpoint returns the newest stored state of the task, that of an earlier attempt if this one
// stored none; nil without any. It identifies the task to the remote side.
func (s *sink) lastCheckpoint() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.checkpoint != nil {
		return s.checkpoint
	}
	return s.t.Checkpoint
}

// closeSink makes the sink ignore further output, and returns the streamed text as parts (nil if it is
// empty) and the artifacts.
func (s *sink) closeSink() ([]task.Part, []task.Artifact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if len(s.text) == 0 {
		return nil, s.artifacts
	}
	return []task.Part{task.TextPart(string(s.text))}, s.artifacts
}

var _ task.Pauser = (*sink)(nil)

// Pause implements task.Pauser.
func (s *sink) Pause() { s.run.queue.pauseJob(s.run.jobID) }

// Resume implements task.Pauser.
func (s *sink) Resume() { s.run.queue.resumeJob(s.run.jobID) }

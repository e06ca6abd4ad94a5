package chat

import (
	"strconv"
	"sync"

	"agentsite/internal/task"
)

// Delta is streamed text of a running task. Text belongs at byte Offset of the answer so far; Offset 0
// starts the answer anew.
type Delta struct {
	TaskID, Text string
	Offset       int
	Before       []byte // the answer in front of Text; shared, must not be changed
}

// TaskState is the state of a task as live readers see it.
type TaskState struct {
	ID     string
	Agent  string
	State  task.State
	Status string
	Reason string
	// Wait is set while the task waits and the runtime can estimate its start.
	Wait task.Wait
}

// Running is the part of an answer that has been streamed so far.
type Running struct {
	TaskState
	Text string
}

type stream struct {
	state TaskState
	text  []byte
}

// maxStream is how many bytes of a running answer are kept.
const maxStream = MaxAnswerBytes

// Working shows live readers that an agent works on the task.
func (s *Service) Working(t task.Task) {
	s.live.withRoom(t.ConversationID, true, func(r *room) {
		st := &stream{state: TaskState{ID: t.ID, Agent: t.AgentHandle, State: t.State}}
		r.streams[t.ID] = st
		state := st.state
		r.addUpdate(Update{Task: &state})
	})
}

// showWaiting shows live readers a submitted task, unless the runtime has started or ended it meanwhile.
func (s *Service) showWaiting(t task.Task) {
	s.live.withRoom(t.ConversationID, true, func(r *room) {
		if r.streams[t.ID] != nil || s.live.over.hasTask(t) {
			return
		}
		st := &stream{state: TaskState{ID: t.ID, Agent: t.AgentHandle, State: t.State}}
		r.streams[t.ID] = st
		state := st.state
		r.addUpdate(Update{Task: &state})
	})
}

// ShowQueued shows live readers a task that waited already when the portal started.
func (s *Service) ShowQueued(q task.Queued) {
	s.showWaiting(task.Task{ID: q.ID, ConversationID: q.ConversationID, AgentHandle: q.AgentHandle,
		MessageSeq: q.MessageSeq, State: task.Submitted})
}

// UpdateWaits shows live readers when their waiting tasks are about to start, as far as that has changed.
// The runtime calls it every few seconds.
func (s *Service) UpdateWaits() {
	for id, tasks := range s.live.listWaiting() {
		for _, t := range tasks {
			wait, ok := s.runner.WaitOf(t.ID)
			if !ok || wait.String() == t.Wait.String() {
				continue
			}
			s.live.withRoom(id, false, func(r *room) {
				if st := r.streams[t.ID]; st != nil && st.state.State == task.Submitted {
					st.state.Wait = wait
					state := st.state
					r.addUpdate(Update{Task: &state})
				}
			})
		}
	}
}

// listWaiting returns the waiting tasks of the conversations that have live readers.
func (l *live) listWaiting() map[string][]TaskState {
	out := make(map[string][]TaskState)
	for i := range l.shards {
		sh := &l.shards[i]
		sh.mu.Lock()
		for id, r := range sh.rooms {
			r.mu.Lock()
			if len(r.subs) > 0 {
				for _, st := range r.streams {
					if st.state.State == task.Submitted {
						out[id] = append(out[id], st.state)
					}
				}
			}
			r.mu.Unlock()
		}
		sh.mu.Unlock()
	}
	return out
}

// lately remembers the maxLately tasks that ended last, each with its last message, so that a late
// showWaiting does not show an ended task as waiting. The zero value is ready to use.
type lately struct {
	mu   sync.Mutex // guards the fields below
	keys map[string]struct{}
	ring []string
	at   int
}

// maxLately must exceed the number of tasks that can end between the commit of a message and the call of
// showWaiting for it.
const maxLately = 4096

func workKey(t task.Task) string { return t.ID + "/" + strconv.FormatInt(t.MessageSeq, 10) }

func (l *lately) addTask(t task.Task) {
	key := workKey(t)
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.keys[key]; ok {
		return
	}
	if l.keys == nil {
		l.keys = make(map[string]struct{})
	}
	if len(l.ring) < maxLately {
		l.ring = append(l.ring, key)
	} else {
		delete(l.keys, l.ring[l.at])
		l.ring[l.at] = key
		l.at = (l.at + 1) % maxLately
	}
	l.keys[key] = struct{}{}
}

func (l *lately) hasTask(t task.Task) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.keys[workKey(t)]
	return ok
}

// Stream appends text to the running answer that live readers see. Text beyond maxStream is not shown.
func (s *Service) Stream(conversationID, taskID, text string) {
	s.live.withRoom(conversationID, false, func(r *room) {
		st := r.streams[taskID]
		if st == nil || text == "" || len(st.text)+len(text) > maxStream {
			return
		}
		offset := len(st.text)
		st.text = append(st.text, text...)
		r.addUpdate(Update{Delta: &Delta{TaskID: taskID, Offset: offset, Text: text, Before: st.text[:offset]}})
	})
}

// Restream replaces the running answer that live readers see.
func (s *Service) Restream(conversationID, taskID, text string) {
	s.live.withRoom(conversationID, false, func(r *room) {
		st := r.streams[taskID]
		if st == nil || len(text) > maxStream {
			return
		}
		st.text = append(st.text[:0:0], text...)
		r.addUpdate(Update{Delta: &Delta{TaskID: taskID, Text: text}})
	})
}

// Status shows live readers a short status text of a running task.
func (s *Service) Status(conversationID, taskID, status string) {
	s.live.withRoom(conversationID, false, func(r *room) {
		if st := r.streams[taskID]; st != nil {
			st.state.Status = status
			state := st.state
			r.addUpdate(Update{Task: &state})
		}
	})
}

// removeSettled shows live readers the state of a task that ended or waits for input, and removes it
// from the running ones.
func (s *Service) removeSettled(t task.Task) {
	s.live.over.addTask(t)
	s.live.withRoom(t.ConversationID, false, func(r *room) {
		delete(r.streams, t.ID)
		r.addUpdate(Update{Task: &TaskState{ID: t.ID, Agent: t.AgentHandle, State: t.State, Reason: t.Reason}})
	})
}

// removeShown removes the running state of a task without an update to readers.
func (s *Service) removeShown(t task.Task) {
	s.live.over.addTask(t)
	s.live.withRoom(t.ConversationID, false, func(r *room) { delete(r.streams, t.ID) })
}

// Running returns the running answers of a conversation, for a page that is rendered on the server.
func (s *Service) Running(conversationID string) []Running {
	var out []Running
	s.live.withRoom(conversationID, false, func(r *room) {
		for _, st := range r.streams {
			out = append(out, Running{TaskState: st.state, Text: string(st.text)})
		}
	})
	for i := range out {
		if out[i].State == task.Submitted {
			out[i].Wait, _ = s.runner.WaitOf(out[i].ID)
		}
	}
	return out
}

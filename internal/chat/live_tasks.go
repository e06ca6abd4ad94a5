package chat

import (
	"strconv"
	"sync"

	"agentsite/internal/task"
)

// Delta is streamed text of a running task: Text belongs at byte Offset of the answer so far;
// Offset 0 restarts the answer.
type Delta struct {
	TaskID string
	Offset int
	Text   string
}

// TaskState is where a task in the conversation is.
type TaskState struct {
	ID     string
	Agent  string
	State  task.State
	Status string
	Reason string
}

// Running is an answer while it grows.
type Running struct {
	TaskState
	Text string
}

// stream is the present state of one running task.
type stream struct {
	state TaskState
	text  []byte
}

// maxStream bounds the text kept of a running answer.
const maxStream = MaxAnswerBytes

// Working shows readers that a task is being worked on.
func (s *Service) Working(t task.Task) {
	s.live.withRoom(t.ConversationID, true, func(r *room) {
		st := &stream{state: TaskState{ID: t.ID, Agent: t.AgentHandle, State: t.State}}
		r.streams[t.ID] = st
		state := st.state
		r.addUpdate(Update{Task: &state})
	})
}

// showWaiting shows readers a submitted task. The runtime may be faster: a task that is already working
// or has ended stays as it is.
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

// lately is which tasks ended last, each with the message it was asked with
// last. The zero value is ready.
type lately struct {
	mu   sync.Mutex // guards the rest
	keys map[string]struct{}
	ring []string
	at   int
}

// maxLately is far more than the number of tasks that end between the commit of a message and the
// next step of its sender.
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

// Stream appends text to a running task's answer as readers see it.
func (s *Service) Stream(conversationID, taskID, text string) {
	s.live.withRoom(conversationID, false, func(r *room) {
		st := r.streams[taskID]
		if st == nil || text == "" || len(st.text)+len(text) > maxStream {
			return
		}
		offset := len(st.text)
		st.text = append(st.text, text...)
		r.addUpdate(Update{Delta: &Delta{TaskID: taskID, Offset: offset, Text: text}})
	})
}

// Restream replaces a running task's answer as readers see it.
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

// Status shows readers a short status text of a running task.
func (s *Service) Status(conversationID, taskID, status string) {
	s.live.withRoom(conversationID, false, func(r *room) {
		if st := r.streams[taskID]; st != nil {
			st.state.Status = status
			state := st.state
			r.addUpdate(Update{Task: &state})
		}
	})
}

// removeSettled removes a task that ended or waits, and shows that to readers.
func (s *Service) removeSettled(t task.Task) {
	s.live.over.addTask(t)
	s.live.withRoom(t.ConversationID, false, func(r *room) {
		delete(r.streams, t.ID)
		r.addUpdate(Update{Task: &TaskState{ID: t.ID, Agent: t.AgentHandle, State: t.State, Reason: t.Reason}})
	})
}

// removeShown removes the shown state of a task.
func (s *Service) removeShown(t task.Task) {
	s.live.over.addTask(t)
	s.live.withRoom(t.ConversationID, false, func(r *room) { delete(r.streams, t.ID) })
}

// Running returns the answers being streamed in a conversation now, for a
// page that is rendered without a socket.
func (s *Service) Running(conversationID string) []Running {
	var out []Running
	s.live.withRoom(conversationID, false, func(r *room) {
		for _, st := range r.streams {
			out = append(out, Running{TaskState: st.state, Text: string(st.text)})
		}
	})
	return out
}

package a2a

import (
	"context"
	"sync"
	"time"

	"agentsite/internal/ident"
	"agentsite/internal/task"
)

const (
	// keepLog is how long the events of a task wait for a reader to come back.
	keepLog = 2 * time.Minute
	// maxLogs bounds the logs that wait so, and maxLogsBytes what they hold;
	// with more, the one that waits longest goes.
	maxLogs      = 500
	maxLogsBytes = 64 << 20
)

// eventLogs are the logs of tasks that are read under ExtEvents, or were a
// moment ago.
type eventLogs struct {
	mu    sync.Mutex // guards the rest
	logs  map[string]*heldLog
	bytes int // of those that wait
}

type heldLog struct {
	*eventLog
	readers int
	bytes   int       // while it waits
	since   time.Time // without readers
	timer   *time.Timer
}

// find is the log of a task, nil for none; the caller calls leave.
func (s *eventLogs) find(taskID string) *eventLog {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held(taskID)
}

// held is the log of a task, entered, nil for none. One that broke is none, or
// whoever comes back would be told of it for ever. The caller holds s.mu.
func (s *eventLogs) held(taskID string) *eventLog {
	h := s.logs[taskID]
	if h == nil {
		return nil
	}
	if h.broke() {
		s.forget(h)
		return nil
	}
	return s.enter(h)
}

// forget lets go of a log; the caller holds s.mu.
func (s *eventLogs) forget(h *heldLog) {
	delete(s.logs, h.task)
	if h.timer != nil {
		h.timer.Stop()
	}
	if h.readers == 0 {
		s.bytes -= h.bytes
		h.f.close()
	}
}

// open is the log of a task, a new one where there is none; the caller calls
// leave.
func (s *eventLogs) open(ctx context.Context, d *Door, actor ident.Actor, t task.Task) (*eventLog, error) {
	if l := s.find(t.ID); l != nil {
		return l, nil
	}
	l, err := openLog(ctx, d, actor, t)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.held(t.ID); h != nil { // two opened it at once
		l.f.close()
		return h, nil
	}
	if s.logs == nil {
		s.logs = make(map[string]*heldLog)
	}
	h := &heldLog{eventLog: l}
	s.logs[t.ID] = h
	return s.enter(h), nil
}

// enter counts a reader; the caller holds s.mu.
func (s *eventLogs) enter(h *heldLog) *eventLog {
	h.readers++
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
		s.bytes -= h.bytes
	}
	return h.eventLog
}

// leave ends the reading of a log, which waits for a while.
func (s *eventLogs) leave(l *eventLog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.logs[l.task]
	if h == nil || h.eventLog != l {
		return
	}
	if h.readers--; h.readers > 0 {
		return
	}
	h.since, h.bytes = time.Now(), l.weight()
	s.bytes += h.bytes
	h.timer = time.AfterFunc(keepLog, func() { s.drop(h) })
	s.crop()
}

// crop lets go of the longest waiting logs where there are too many; the caller
// holds s.mu.
func (s *eventLogs) crop() {
	for len(s.logs) > maxLogs || s.bytes > maxLogsBytes {
		var oldest *heldLog
		for _, h := range s.logs {
			if h.readers == 0 && (oldest == nil || h.since.Before(oldest.since)) {
				oldest = h
			}
		}
		if oldest == nil {
			return
		}
		s.forget(oldest)
	}
}

// drop lets go of a log that nobody came back to.
func (s *eventLogs) drop(h *heldLog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.logs[h.task] == h && h.readers == 0 && time.Since(h.since) >= keepLog {
		s.forget(h)
	}
}

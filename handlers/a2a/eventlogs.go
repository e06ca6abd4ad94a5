package a2a

import (
	"context"
	"sync"
	"time"

	"agentsite/internal/ident"
	"agentsite/internal/task"
)

const (
	// keepLog is the time for which the events of a task wait for a reader to come back.
	keepLog = 2 * time.Minute
	// maxLogs bounds the logs without readers, and maxLogsBytes their size; above it the one that
	// waits longest is dropped.
	maxLogs      = 500
	maxLogsBytes = 64 << 20
)

// eventLogs are the logs of tasks with readers under ExtEvents, or with readers a moment ago.
type eventLogs struct {
	mu    sync.Mutex // guards the rest
	logs  map[string]*heldLog
	bytes int // of logs without readers
}

type heldLog struct {
	*eventLog
	readers int
	bytes   int       // while it has no readers
	since   time.Time // start of the time without readers
	timer   *time.Timer
}

// findLog returns the log of a task, nil for none. The caller calls removeReader.
func (s *eventLogs) findLog(taskID string) *eventLog {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.enterHeld(taskID)
}

// enterHeld returns the log of a task and counts a reader, nil for none. A log that failed is
// dropped, because it would repeat its error to each reader. The caller holds s.mu.
func (s *eventLogs) enterHeld(taskID string) *eventLog {
	h := s.logs[taskID]
	if h == nil {
		return nil
	}
	if h.hasFailed() {
		s.removeLog(h)
		return nil
	}
	return s.addReader(h)
}

// removeLog drops a log. The caller holds s.mu.
func (s *eventLogs) removeLog(h *heldLog) {
	delete(s.logs, h.task)
	if h.timer != nil {
		h.timer.Stop()
	}
	if h.readers == 0 {
		s.bytes -= h.bytes
		h.f.closeStream()
	}
}

// openShared returns the log of a task, and opens one if there is none. The caller calls
// removeReader.
func (s *eventLogs) openShared(ctx context.Context, d *Handler, actor ident.Actor, t task.Task) (*eventLog, error) {
	if l := s.findLog(t.ID); l != nil {
		return l, nil
	}
	l, err := openLog(ctx, d, actor, t)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.enterHeld(t.ID); h != nil { // two readers opened it at once
		l.f.closeStream()
		return h, nil
	}
	if s.logs == nil {
		s.logs = make(map[string]*heldLog)
	}
	h := &heldLog{eventLog: l}
	s.logs[t.ID] = h
	return s.addReader(h), nil
}

// addReader counts a reader. The caller holds s.mu.
func (s *eventLogs) addReader(h *heldLog) *eventLog {
	h.readers++
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
		s.bytes -= h.bytes
	}
	return h.eventLog
}

// removeReader ends the reading of a log, which then waits for a while.
func (s *eventLogs) removeReader(l *eventLog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.logs[l.task]
	if h == nil || h.eventLog != l {
		return
	}
	if h.readers--; h.readers > 0 {
		return
	}
	h.since, h.bytes = time.Now(), l.logSize()
	s.bytes += h.bytes
	h.timer = time.AfterFunc(keepLog, func() { s.dropExpired(h) })
	s.dropOldest()
}

// dropOldest drops the logs that wait longest, as long as there are too many. The caller holds
// s.mu.
func (s *eventLogs) dropOldest() {
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
		s.removeLog(oldest)
	}
}

// dropExpired drops a log to which no reader came back.
func (s *eventLogs) dropExpired(h *heldLog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.logs[h.task] == h && h.readers == 0 && time.Since(h.since) >= keepLog {
		s.removeLog(h)
	}
}

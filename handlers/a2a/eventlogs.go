package a2a

import (
	"context"
	"sync"
	"time"

	"agentsite/internal/ident"
	"agentsite/internal/task"
)

const (
	// keepLog is how long the log of a task without readers is kept for one that reconnects.
	keepLog = 2 * time.Minute
	// maxLogs bounds the number of logs without readers, and maxLogsBytes their total size. Above either,
	// the log that has been without readers for longest is dropped.
	maxLogs      = 500
	maxLogsBytes = 64 << 20
)

// eventLogs holds the event logs of tasks that have a reader under ExtEvents or had one within keepLog.
type eventLogs struct {
	mu    sync.Mutex // guards the fields below
	logs  map[string]*heldLog
	bytes int // total size of the logs without readers
}

type heldLog struct {
	*eventLog
	readers int
	bytes   int       // size of the log, measured when its last reader left
	since   time.Time // the time at which its last reader left
	timer   *time.Timer
}

// findLog returns the log of a task and counts the caller as its reader, or nil without a log. The caller
// calls removeReader afterwards.
func (s *eventLogs) findLog(taskID string) *eventLog {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.enterHeld(taskID)
}

// enterHeld returns the log of a task and counts a reader, or nil without a log. A log that failed is
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

// removeLog drops a log and stops its timer. The caller holds s.mu.
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

// openShared returns the log of a task and counts the caller as its reader; it opens a log if there is
// none. The caller calls removeReader afterwards.
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
	if h := s.enterHeld(t.ID); h != nil { // another reader opened the log at the same time
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

// addReader counts one more reader of a log and stops its timer. The caller holds s.mu.
func (s *eventLogs) addReader(h *heldLog) *eventLog {
	h.readers++
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
		s.bytes -= h.bytes
	}
	return h.eventLog
}

// removeReader counts one reader less. A log without readers is kept for keepLog.
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

// dropOldest drops the logs that have been without readers for longest, until both bounds hold. The
// caller holds s.mu.
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

// dropExpired drops a log that has had no reader for keepLog. It is called by the log's timer.
func (s *eventLogs) dropExpired(h *heldLog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.logs[h.task] == h && h.readers == 0 && time.Since(h.since) >= keepLog {
		s.removeLog(h)
	}
}

package account

import (
	"context"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/ident"
)

// watchers cancels long-lived streams when the account or credential that opened them becomes invalid.
type watchers struct {
	mu   sync.Mutex // guards keys
	keys map[string]map[*watcher]struct{}
}

type watcher struct {
	cancel context.CancelFunc
	expiry *time.Timer // nil for a credential that does not expire while it is used
}

func newWatchers() *watchers {
	return &watchers{keys: make(map[string]map[*watcher]struct{})}
}

// endStreams cancels all streams opened with one of the account or credential ids.
func (w *watchers) endStreams(ids ...string) {
	var cancels []context.CancelFunc
	w.mu.Lock()
	for _, id := range ids {
		for x := range w.keys[id] {
			cancels = append(cancels, x.cancel)
		}
	}
	w.mu.Unlock()
	for _, c := range cancels {
		c()
	}
}

// EndStreams ends at once all streams that were opened with a credential without an account, for example
// that of another portal (ident.PortalCredential).
func (s *Service) EndStreams(credential string) { s.watch.endStreams(credential) }

// Guard returns a context that ends at once when the actor's account is disabled, or the actor's
// credential is revoked or expires. The caller must call stop when the stream ends.
func (s *Service) Guard(ctx context.Context, actor ident.Actor) (guarded context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	x := &watcher{cancel: cancel}
	if !actor.Until.IsZero() {
		x.expiry = time.AfterFunc(actor.Until.Sub(clock.Now()), cancel)
	}
	var ids []string
	for _, id := range []string{actor.ID, actor.Credential} {
		if id != "" && (len(ids) == 0 || ids[0] != id) {
			ids = append(ids, id)
		}
	}
	w := s.watch
	w.mu.Lock()
	for _, id := range ids {
		if w.keys[id] == nil {
			w.keys[id] = make(map[*watcher]struct{})
		}
		w.keys[id][x] = struct{}{}
	}
	w.mu.Unlock()
	return ctx, func() {
		cancel()
		if x.expiry != nil {
			x.expiry.Stop()
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, id := range ids {
			delete(w.keys[id], x)
			if len(w.keys[id]) == 0 {
				delete(w.keys, id)
			}
		}
	}
}

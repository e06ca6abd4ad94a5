package accounts

import (
	"context"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/store/engine"
)

// touchDelay is how long uses of credentials wait for another write to share its commit.
const touchDelay = time.Second

// touches holds the uses of credentials that are not on disk yet. Most come with a request that writes
// something itself, so that one commit is enough for both.
type touches struct {
	mu   sync.RWMutex     // guards list
	list map[string]touch // keyed by the credential's hash
}

// touch is the change of a credential by its use: the new times in Unix milliseconds.
type touch struct{ used, expires int64 }

// noteTouch adds a use, in place of an earlier one of the credential. first is true if no other use
// waits, so that a write must be scheduled.
func (x *touches) noteTouch(hash string, t touch) (first bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.list == nil {
		x.list = make(map[string]touch)
	}
	x.list[hash] = t
	return len(x.list) == 1
}

// touchOf returns the use of a credential that is not on disk yet. Call it before the row is read,
// because a use that is no longer here is in the row by then.
func (x *touches) touchOf(hash string) (t touch, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	t, ok = x.list[hash]
	return t, ok
}

// waiting returns a copy of all uses that are not on disk yet, nil for none.
func (x *touches) waiting() map[string]touch {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if len(x.list) == 0 {
		return nil
	}
	list := make(map[string]touch, len(x.list))
	for hash, t := range x.list {
		list[hash] = t
	}
	return list
}

// dropTouch removes the uses in list, which are on disk now, unless they were replaced since. more is
// true if some still wait.
func (x *touches) dropTouch(list map[string]touch) (more bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for hash, t := range list {
		if x.list[hash] == t {
			delete(x.list, hash)
		}
	}
	return len(x.list) > 0
}

// Touch implements account.Credentials. It only fails if nothing can be written any more.
func (d *Accounts) Touch(_ context.Context, hash string, used, expires time.Time) error {
	if err := d.db.Writable(); err != nil {
		return err
	}
	if d.touches.noteTouch(hash, touch{clock.Milli(used), clock.Milli(expires)}) {
		d.writeTouches()
	}
	return nil
}

// writeTouches schedules the write of the waiting uses. WriteSoon runs it before later writes, which may
// depend on them.
func (d *Accounts) writeTouches() {
	d.db.WriteSoon(touchDelay, &touchWrite{accounts: d})
}

// touchWrite writes the waiting uses of credentials. It implements engine.SoonWrite.
type touchWrite struct {
	accounts *Accounts
	list     map[string]touch // the uses that WriteRows wrote
}

// WriteRows implements engine.SoonWrite. It writes all uses that wait when it runs, not only those at
// its scheduling.
func (w *touchWrite) WriteRows(t engine.Tx) error {
	w.list = w.accounts.touches.waiting()
	for hash, u := range w.list {
		if _, err := t.Exec(`UPDATE credentials SET used_at = ?, expires_at = ? WHERE hash = ?`, u.used, u.expires,
			hash); err != nil {
			return err
		}
	}
	return nil
}

// NoteOutcome implements engine.SoonWrite. It removes the written uses from those that wait.
func (w *touchWrite) NoteOutcome(err error) { w.accounts.noteTouched(w.list, err) }

// noteTouched updates the cached rows after a write of uses. A failed write is not repeated, because the
// next use of each credential is written anyway.
func (d *Accounts) noteTouched(list map[string]touch, err error) {
	if err != nil {
		list = d.touches.waiting() // The write may have failed before WriteRows set its list.
		d.db.Log().Warn("note uses of credentials", "error", err)
	} else {
		d.credentials.Set(func(rows map[string]credentialRow) {
			for hash, t := range list {
				if r, ok := rows[hash]; ok {
					rows[hash] = r.with(t, true)
				}
			}
		})
	}
	if d.touches.dropTouch(list) {
		d.writeTouches()
	}
}

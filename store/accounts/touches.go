package accounts

import (
	"context"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/store/sqlite"
)

// touchDelay is how long uses of credentials wait for a commit to go along
// with before they get one of their own.
const touchDelay = time.Second

// touches are uses of credentials on their way to the disk. Most come with a
// request that writes something itself: one commit is enough for both.
type touches struct {
	mu   sync.RWMutex     // guards list
	list map[string]touch // by the credential's hash
}

// touch is the change of a credential by its use.
type touch struct{ used, expires int64 }

// noteTouch adds a use and reports whether it is the first that waits.
func (x *touches) noteTouch(hash string, t touch) (first bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.list == nil {
		x.list = make(map[string]touch)
	}
	x.list[hash] = t
	return len(x.list) == 1
}

// touchOf returns the waiting change of a credential. Call it before the row is read: a change that no
// longer waits is in the row by then.
func (x *touches) touchOf(hash string) (t touch, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	t, ok = x.list[hash]
	return t, ok
}

// waiting is a copy of all that waits, nil if nothing does.
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

// dropTouch ends the wait of those that were not noted again since, and reports
// whether any still wait.
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

// Touch implements account.Credentials.
func (d *Accounts) Touch(_ context.Context, hash string, used, expires time.Time) error {
	if err := d.db.Writable(); err != nil {
		return err
	}
	if d.touches.noteTouch(hash, touch{clock.Milli(used), clock.Milli(expires)}) {
		d.writeTouches()
	}
	return nil
}

// writeTouches has the waiting uses written soon, before the writes that come
// after them: those must find them.
func (d *Accounts) writeTouches() {
	d.db.WriteSoon(touchDelay, &touchWrite{accounts: d})
}

// touchWrite writes the waiting uses of credentials. It implements sqlite.SoonWrite.
type touchWrite struct {
	accounts *Accounts
	list     map[string]touch // as written
}

// WriteRows implements sqlite.SoonWrite.
func (w *touchWrite) WriteRows(t *sqlite.Tx) error {
	w.list = w.accounts.touches.waiting()
	for hash, u := range w.list {
		if _, err := t.Exec(`UPDATE credentials SET used_at = ?, expires_at = ? WHERE hash = ?`, u.used, u.expires,
			hash); err != nil {
			return err
		}
	}
	return nil
}

// NoteOutcome implements sqlite.SoonWrite.
func (w *touchWrite) NoteOutcome(err error) { w.accounts.noteTouched(w.list, err) }

// noteTouched follows the write of touches. A failed write is not tried again:
// the next use is noted in its turn.
func (d *Accounts) noteTouched(list map[string]touch, err error) {
	if err != nil {
		list = d.touches.waiting() // it may have failed before it read them
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

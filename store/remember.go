package store

import (
	"cmp"
	"strings"
	"sync"
)

// maxRemembered bounds a kind of remembered rows; with more, all are forgotten
// and read again.
const maxRemembered = 8192

// remembered keeps rows that every request asks for and that seldom change:
// who a credential is of, who is in a conversation, what an agent is, how many
// agents somebody owns. It is true to the disk,
// because there is one writer: a transaction that changed such rows makes it
// forget all of them before anybody is told that it was committed. A revoked
// token or a removed member is gone when the call that did it returns.
type remembered[V any] struct {
	most int // rows; 0 is maxRemembered

	mu   sync.RWMutex // guards the rest
	age  uint64       // how often it has forgotten
	rows map[string]V
}

// get returns what is remembered, or else the age to give to put.
func (m *remembered[V]) get(key string) (v V, age uint64, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	v, ok = m.rows[key]
	return v, m.age, ok
}

// put remembers what was read from the disk after get said age. If something
// was forgotten since, the reading may be older than that and is not kept.
func (m *remembered[V]) put(key string, v V, age uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.age != age {
		return
	}
	if m.rows == nil || len(m.rows) >= cmp.Or(m.most, maxRemembered) {
		m.rows = make(map[string]V)
	}
	m.rows[key] = v
}

func (m *remembered[V]) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.age++
	m.rows = nil
}

// change brings remembered rows up to what was committed, where it is known
// what that made of them: it may set those that are there, and add none.
func (m *remembered[V]) change(fn func(rows map[string]V)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.age++
	fn(m.rows)
}

// changes tells which remembered rows a statement may make untrue.
type changes uint8

const (
	changesCredentials changes = 1 << iota
	changesMembers
	changesSettings
	changesOwned
	changesAgents
	changesHooks
	changesPublished
)

// changesOf reads it from the statement's own text, so that a new one cannot
// forget to say. How far somebody has read, and what they decided for
// themselves, is not remembered; new agents are counted by tx.owns and, as who
// is in a new conversation, were remembered by nobody; uses of credentials are
// touched's. Of hooks only webhooks are, and not how they fare.
func changesOf(query string) (c changes) {
	if strings.HasPrefix(query, "SELECT") {
		return 0
	}
	if strings.Contains(query, "credentials") && query != touchUpdate || strings.Contains(query, "accounts") {
		c |= changesCredentials
	}
	if strings.Contains(query, "members") && query != newMembers && !strings.Contains(query, "SET read_seq =") && !strings.Contains(query, "SET pinned_at =") {
		c |= changesMembers
	}
	if strings.Contains(query, "speaks") && query != roomInsert || strings.Contains(query, "spoke_id") || strings.Contains(query, "DELETE FROM conversations") {
		c |= changesSettings
	}
	if strings.HasPrefix(query, "UPDATE agents ") || strings.HasPrefix(query, "DELETE FROM agents ") || strings.Contains(query, "INTO agents ") && query != agentInsert ||
		strings.Contains(query, "agent_owners") || strings.Contains(query, "elsewhere") || strings.Contains(query, "accounts") {
		c |= changesAgents
	}
	if strings.Contains(query, " hooks ") && !strings.Contains(query, "SET waiting =") && !strings.Contains(query, "SET missed =") && !strings.Contains(query, "SET failures =") &&
		query != pushInsert && query != pushUpdate && query != pushDelete && query != roomPushesDelete && query != attemptInsert && !strings.HasPrefix(query, "DELETE FROM hook_events") {
		c |= changesHooks
	}
	sets, _, _ := strings.Cut(query, "WHERE")
	if strings.Contains(sets, "agents") && query != agentInsert &&
		(!strings.HasPrefix(query, "UPDATE") || strings.Contains(sets, "owner_id") || strings.Contains(sets, "deleted_at")) {
		c |= changesOwned
	}
	if strings.Contains(query, "INTO agents ") || strings.HasPrefix(query, "UPDATE agents ") && !strings.HasPrefix(query, "UPDATE agents SET live_state") ||
		strings.HasPrefix(query, "DELETE FROM agents ") || strings.Contains(query, "disabled_at") {
		c |= changesPublished
	}
	return c
}

// owns counts an agent that the transaction has stored for an owner.
func (t *tx) owns(ownerID string) {
	if t.owned == nil {
		t.owned = make(map[string]int)
	}
	t.owned[ownerID]++
}

// settle makes what is remembered true to a transaction that has ended. It
// must come before anybody is told of it.
func (d *DB) settle(t *tx, err error) {
	d.forget(t.changes)
	if err == nil && t.hooked {
		select {
		case d.hooked <- struct{}{}:
		default:
		}
	}
	if err == nil && t.changes&changesPublished != 0 {
		select {
		case d.publishing <- struct{}{}:
		default:
		}
	}
	switch {
	case t.changes&changesOwned != 0 || err != nil && len(t.owned) > 0:
		d.owned.forget()
	case len(t.owned) > 0:
		d.owned.change(func(rows map[string]int) {
			for id, n := range t.owned {
				if has, ok := rows[id]; ok {
					rows[id] = has + n
				}
			}
		})
	}
}

// forget drops the rows that a transaction with these changes may have made
// untrue.
func (d *DB) forget(c changes) {
	if c&changesCredentials != 0 {
		d.credentials.forget()
	}
	if c&changesMembers != 0 {
		d.members.forget()
	}
	if c&changesSettings != 0 {
		d.settings.forget()
	}
	if c&changesAgents != 0 {
		d.agents.forget()
	}
	if c&changesHooks != 0 {
		d.listeners.forget()
	}
}

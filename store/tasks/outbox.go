package tasks

import (
	"agentsite/internal/clock"

	"agentsite/store/sqlite"
)

// TopicTask is the outbox of the runtime: its refs are task ids.
const TopicTask = "task"

// enqueueWork notes in the outbox that something has to be acted on, in the same
// transaction as the change itself.
func enqueueWork(t *sqlite.Tx, topic, ref string) error {
	_, err := t.Exec(`INSERT INTO outbox (topic, ref, created_at) VALUES (?, ?, ?)
		ON CONFLICT (topic, ref) DO UPDATE SET fence = 0, created_at = excluded.created_at`, topic, ref,
		clock.Milli(clock.Now()))
	return err
}

// DequeueWork deletes a row of the outbox after its work is done.
func DequeueWork(t *sqlite.Tx, topic, ref string) error {
	_, err := t.Exec(`DELETE FROM outbox WHERE topic = ? AND ref = ?`, topic, ref)
	return err
}

package tasks

import (
	"agentsite/internal/clock"

	"agentsite/store/engine"
)

// TopicTask is the outbox topic of tasks that wait for the runtime. Its refs are task ids.
const TopicTask = "task"

// enqueueWork adds work to the outbox in the transaction that causes it, so that neither is stored
// without the other. Work that is queued already is released to be claimed again.
func enqueueWork(t engine.Tx, topic, ref string) error {
	return t.Send(`INSERT INTO outbox (topic, ref, created_at) VALUES (?, ?, ?)
		ON CONFLICT (topic, ref) DO UPDATE SET fence = 0, created_at = excluded.created_at`, topic, ref,
		clock.Milli(clock.Now()))
}

// DequeueWork deletes a row of the outbox after its work is done; a missing row is no error.
func DequeueWork(t engine.Tx, topic, ref string) error {
	return t.Send(`DELETE FROM outbox WHERE topic = ? AND ref = ?`, topic, ref)
}

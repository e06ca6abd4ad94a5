package agents

import (
	"context"
	"encoding/json"

	"agentsite/internal/hub"
	"agentsite/store/engine"
)

// topicPublish is the outbox topic of agents to publish to other portals. Its refs are agent ids.
// Database triggers write the rows, see migration 0009.
const topicPublish = "publish"

// Unpublished returns up to limit agents with unpublished changes, longest waiting first: the numbers of
// the changes, for Published, and the agent ids at the same index.
func (d *Agents) Unpublished(ctx context.Context, limit int) (numbers []int64, agentIDs []string, err error) {
	var rows []struct {
		ID  int64  `db:"id"`
		Ref string `db:"ref"`
	}
	err = d.db.List(ctx, &rows, `SELECT id, ref FROM outbox WHERE topic = ? ORDER BY id LIMIT ?`, topicPublish, limit)
	for _, r := range rows {
		numbers, agentIDs = append(numbers, r.ID), append(agentIDs, r.Ref)
	}
	return numbers, agentIDs, engine.MapError(err)
}

// Published removes changes by their numbers. An agent that changed again meanwhile has another number
// and stays in the outbox.
func (d *Agents) Published(ctx context.Context, numbers []int64) error {
	list, err := json.Marshal(numbers)
	if err != nil {
		return err
	}
	return d.db.Write(ctx, func(t engine.Tx) error {
		_, err := t.Exec(`DELETE FROM outbox WHERE topic = ? AND id IN (SELECT CAST(value AS BIGINT) FROM json_each(?))`, topicPublish,
			string(list))
		return err
	})
}

// Publishing signals that Unpublished may have entries; a signal may also come without one. It is for
// one reader.
func (d *Agents) Publishing() <-chan struct{} { return d.publishing.Wake() }

// AgentsByIDs returns the portal's own existing agents with these ids and enabled owners, in no order,
// without their co-owners. Like lists it may leave out Config.
func (d *Agents) AgentsByIDs(ctx context.Context, ids []string) ([]hub.Agent, error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	out, _, err := d.readContents(ctx, new(filler), make([]hub.Agent, 0, len(ids)),
		contentQuery+`AND a.id IN (SELECT value FROM json_each(?))`, string(list))
	return out, engine.MapError(err)
}

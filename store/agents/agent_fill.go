package agents

import (
	"context"
	"sync"

	"agentsite/internal/hub"
	"agentsite/store/engine"
)

// contentQuery reads agents for readContents. It leaves out expensive columns: co-owners, and the
// settings of long specs.
const contentQuery = `SELECT a.rowid, a.id, a.name, a.kind, COALESCE(a.owner_id, ''), COALESCE(o.name, ''), a.version, a.title, a.visibility,
	CASE WHEN octet_length(a.spec) > 8192 THEN json_remove(a.spec, '$.config') ELSE a.spec END,
	a.secret IS NOT NULL, a.status, a.status_message, a.held, a.proof_method, a.proof_origin, a.proof_at,
	a.live_state, a.live_reason, a.live_latency, a.live_at, a.created_at, a.updated_at
	FROM agents a LEFT JOIN accounts o ON o.id = a.owner_id
	WHERE a.deleted_at = 0 AND a.kind <> 'peer' AND COALESCE(o.disabled_at, 0) = 0 `

// fillQuery reads a page of agents in the order of registration.
const fillQuery = contentQuery + `AND a.rowid > ? ORDER BY a.rowid LIMIT ?`

// allPage is the number of agents that one query reads, so that no read transaction is long and keeps
// the WAL growing.
const allPage = 1000

// AllAgents implements hub.Lists, in the order of registration. It reads the next page while yield
// handles one, because the start of a large portal fills its index from this. Damaged rows are logged
// and left out, so that one does not hide the others.
func (d *Agents) AllAgents(ctx context.Context, yield func(hub.Agent) bool) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// Two slices take turns: one is filled while yield reads the other.
	pages, spare := make(chan []hub.Agent), make(chan []hub.Agent, 2)
	spare <- make([]hub.Agent, 0, allPage)
	var err error // written before pages is closed, read after
	wg.Go(func() {
		defer close(pages)
		var f filler
		if f.coOwners, err = d.coOwners(ctx); err != nil {
			return
		}
		page := make([]hub.Agent, 0, allPage)
		for {
			var more bool
			if page, more, err = d.readPage(ctx, &f, page[:0]); err != nil {
				return
			}
			select {
			case pages <- page:
			case <-ctx.Done():
				err = ctx.Err()
				return
			}
			if !more {
				return
			}
			select {
			case page = <-spare:
			case <-ctx.Done():
				err = ctx.Err()
				return
			}
		}
	})
	for page := range pages {
		for i := range page {
			if !yield(page[i]) {
				return nil
			}
		}
		spare <- page // The next page has come, so its predecessor can be filled again.
	}
	return engine.MapError(err)
}

// filler is the progress of AllAgents.
type filler struct {
	after    int64 // rowid of the last agent read
	coOwners map[string]string
	spec     specReader
}

// coOwners returns the ids of the co-owners, separated by spaces, of those agents that have any, by
// agent id.
func (d *Agents) coOwners(ctx context.Context) (map[string]string, error) {
	var list []struct {
		Agent  string `db:"agent_id"`
		Owners string `db:"owners"`
	}
	if err := d.db.List(ctx, &list, `SELECT agent_id, string_agg(account_id, ' ') AS owners FROM agent_owners GROUP BY agent_id`); err != nil {
		return nil, err
	}
	m := make(map[string]string, len(list))
	for _, o := range list {
		m[o.Agent] = o.Owners
	}
	return m, nil
}

// readPage appends the next agents to list and reports whether there may be more after them.
func (d *Agents) readPage(ctx context.Context, f *filler, list []hub.Agent) ([]hub.Agent, bool, error) {
	list, seen, err := d.readContents(ctx, f, list, fillQuery, f.after, allPage)
	return list, seen == allPage, err
}

// readContents appends the agents that a query on contentQuery finds to list, and counts the rows. Rows
// that are damaged are left out.
func (d *Agents) readContents(ctx context.Context, f *filler, list []hub.Agent, query string,
	args ...any) (all []hub.Agent, seen int, err error) {
	rows, err := d.db.Rows(ctx, query, args...)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	var r agentRow
	dest := []any{&f.after, &r.ID, &r.Name, &r.Kind, &r.OwnerID, &r.OwnerName, &r.Version, &r.Title, &r.Visibility,
		&r.Spec,
		&r.HasSecret, &r.Status, &r.StatusMessage, &r.Held, &r.ProofMethod, &r.ProofOrigin, &r.ProofAt,
		&r.LiveState, &r.LiveReason, &r.LiveLatency, &r.LiveAt, &r.CreatedAt, &r.UpdatedAt}
	for ; rows.Next(); seen++ {
		if err := rows.Scan(dest...); err != nil {
			return nil, 0, err
		}
		r.CoOwners = f.coOwners[r.ID]
		var spec AgentSpec
		if f.spec.readSpec(r.Spec, &spec) {
			list = append(list, r.with(&spec))
			continue
		}
		a, err := r.agent()
		if err != nil {
			d.db.Log().Error("skip a damaged agent", "agent", r.ID, "error", err)
			continue
		}
		list = append(list, a)
	}
	return list, seen, rows.Err()
}

// AgentsOfKind returns the ids of the agents of a kind that AllAgents yields, without reading their
// content.
func (d *Agents) AgentsOfKind(ctx context.Context, kind hub.Kind) ([]string, error) {
	var ids []string
	err := d.db.List(ctx, &ids, `SELECT a.id FROM agents a LEFT JOIN accounts o ON o.id = a.owner_id
		WHERE a.kind = ? AND a.deleted_at = 0 AND COALESCE(o.disabled_at, 0) = 0 ORDER BY a.rowid`, string(kind))
	return ids, engine.MapError(err)
}

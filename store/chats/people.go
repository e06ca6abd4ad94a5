package chats

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/store/engine"
)

// Disclosures implements chat.People. Agents to which the member disclosed nothing are missing from the
// map.
func (d *Chats) Disclosures(ctx context.Context, memberKind, memberID string,
	agentIDs []string) (map[string]chat.Disclosure, error) {
	out := make(map[string]chat.Disclosure, len(agentIDs))
	if len(agentIDs) == 0 {
		return out, nil
	}
	in, err := json.Marshal(agentIDs)
	if err != nil {
		return nil, err
	}
	var rows []struct {
		AgentID string `db:"agent_id"`
		Agent   string `db:"name"`
		Host    string `db:"host"`
		Share   string `db:"share"`
		ToldAt  int64  `db:"told_at"`
	}
	if err := d.db.List(ctx, &rows, `SELECT x.agent_id, COALESCE(e.name || '@' || e.host, a.name) AS name, x.host, x.share, x.told_at
		FROM disclosures x JOIN agents a ON a.id = x.agent_id LEFT JOIN elsewhere e ON e.agent_id = x.agent_id
		WHERE x.member_kind = ? AND x.member_id = ? AND x.agent_id IN (SELECT value FROM json_each(?))`, memberKind,
		memberID, string(in)); err != nil {
		return nil, engine.MapError(err)
	}
	for _, r := range rows {
		out[r.AgentID] = chat.Disclosure{AgentID: r.AgentID, Agent: r.Agent, Host: r.Host, Share: chat.Share(r.Share),
			ToldAt: clock.FromMilli(r.ToldAt)}
	}
	return out, nil
}

// Disclose implements chat.People. It replaces an earlier disclosure to the same agent.
func (d *Chats) Disclose(ctx context.Context, memberKind, memberID string, x chat.Disclosure) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		_, err := t.Exec(`INSERT INTO disclosures (member_kind, member_id, agent_id, host, share, told_at) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (member_kind, member_id, agent_id) DO UPDATE SET host = excluded.host, share = excluded.share, told_at = excluded.told_at`,
			memberKind, memberID, x.AgentID, x.Host, string(x.Share), clock.Milli(x.ToldAt))
		return err
	})
}

// Prefs implements chat.People. An account without stored settings has the zero Prefs.
func (d *Chats) Prefs(ctx context.Context, accountID string) (chat.Prefs, error) {
	var r struct {
		Notify    string `db:"notify"`
		QuietFrom int    `db:"quiet_from"`
		QuietTo   int    `db:"quiet_to"`
		Zone      string `db:"zone"`
	}
	err := d.db.Get(ctx, &r, `SELECT notify, quiet_from, quiet_to, zone FROM chat_prefs WHERE account_id = ?`,
		accountID)
	if errors.Is(err, sql.ErrNoRows) {
		return chat.Prefs{}, nil
	}
	return chat.Prefs{Notify: chat.Notify(r.Notify), QuietFrom: r.QuietFrom, QuietTo: r.QuietTo, Zone: r.Zone},
		engine.MapError(err)
}

// SetPrefs implements chat.People. It replaces all settings of the account.
func (d *Chats) SetPrefs(ctx context.Context, accountID string, p chat.Prefs) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		_, err := t.Exec(`INSERT INTO chat_prefs (account_id, notify, quiet_from, quiet_to, zone) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (account_id) DO UPDATE SET notify = excluded.notify, quiet_from = excluded.quiet_from, quiet_to = excluded.quiet_to, zone = excluded.zone`,
			accountID, string(p.Notify), p.QuietFrom, p.QuietTo, p.Zone)
		return err
	})
}

package agents

import (
	"context"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/store/engine"
	"agentsite/store/quotas"
)

// maxOpenReports bounds the open reports of one agent, because more give the operator no new information.
const maxOpenReports = 200

type reportRow struct {
	ID             string `db:"id"`
	AgentID        string `db:"agent_id"`
	AgentName      string `db:"agent_name"`
	ReporterKind   string `db:"reporter_kind"`
	ReporterID     string `db:"reporter_id"`
	ReporterHandle string `db:"reporter_handle"`
	Reason         string `db:"reason"`
	Text           string `db:"text"`
	CreatedAt      int64  `db:"created_at"`
	ClosedAt       int64  `db:"closed_at"`
	ClosedBy       string `db:"closed_by"`
	Outcome        string `db:"outcome"`
}

func (r reportRow) report() hub.Report {
	return hub.Report{ID: r.ID, AgentID: r.AgentID, AgentName: r.AgentName, ReporterKind: r.ReporterKind,
		ReporterID: r.ReporterID, ReporterHandle: r.ReporterHandle,
		Reason: r.Reason, Text: r.Text, CreatedAt: clock.FromMilli(r.CreatedAt), ClosedAt: clock.FromMilli(r.ClosedAt),
		ClosedBy: r.ClosedBy, Outcome: r.Outcome}
}

const reportQuery = `SELECT r.id, r.agent_id, a.name AS agent_name, r.reporter_kind, r.reporter_id, r.reporter_handle, r.reason, r.text,
	r.created_at, r.closed_at, r.closed_by, r.outcome FROM reports r JOIN agents a ON a.id = r.agent_id `

// AddReport implements hub.Reports. Beyond maxOpenReports it is a Conflict fault.
func (d *Agents) AddReport(ctx context.Context, r hub.Report) error {
	return d.aboutAgent(ctx, r.AgentID, func(t engine.Tx, _ string) error {
		var open int
		if err := t.Get(&open, `SELECT COUNT(*) FROM reports WHERE agent_id = ? AND closed_at = 0`,
			r.AgentID); err != nil {
			return err
		}
		if open >= maxOpenReports {
			return fault.New(fault.Conflict, "Many have reported this agent already; the operator will look at it.")
		}
		if err := d.quotas.CheckRoom(t, r.ReporterKind, r.ReporterID, int64(len(r.Text))+quotas.RowBytes); err != nil {
			return err
		}
		if _, err := t.Exec(`INSERT INTO reports (id, agent_id, reporter_kind, reporter_id, reporter_handle, reason, text, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			r.ID, r.AgentID, r.ReporterKind, r.ReporterID, r.ReporterHandle, r.Reason, r.Text,
			clock.Milli(r.CreatedAt)); err != nil {
			return err
		}
		return d.hooks.NotifyReport(t, r)
	})
}

// Reports implements hub.Reports. Reports on deleted agents are included; limit is at most 1,000.
func (d *Agents) Reports(ctx context.Context, open bool, agentID string, limit int) ([]hub.Report, error) {
	which := `WHERE r.closed_at > 0`
	order := ` ORDER BY r.closed_at DESC, r.id DESC LIMIT ?`
	if open {
		which = `WHERE r.closed_at = 0`
		order = ` ORDER BY r.id LIMIT ?`
	}
	args := []any{min(limit, 1000)}
	if agentID != "" {
		which += ` AND r.agent_id = ?`
		args = []any{agentID, min(limit, 1000)}
	}
	var rows []reportRow
	if err := d.db.List(ctx, &rows, reportQuery+which+order, args...); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]hub.Report, len(rows))
	for i, r := range rows {
		out[i] = r.report()
	}
	return out, nil
}

// CloseReport implements hub.Reports. A report that is closed already is a Conflict fault.
func (d *Agents) CloseReport(ctx context.Context, id, by, outcome string) (hub.Report, error) {
	var r reportRow
	err := d.db.Write(ctx, func(t engine.Tx) error {
		r = reportRow{}
		if err := t.Get(&r, reportQuery+`WHERE r.id = ?`, id); err != nil {
			return err
		}
		if r.ClosedAt != 0 {
			return fault.New(fault.Conflict, "%s has closed this report already.", r.ClosedBy)
		}
		r.ClosedAt, r.ClosedBy, r.Outcome = clock.Milli(clock.Now()), by, outcome
		_, err := t.Exec(`UPDATE reports SET closed_at = ?, closed_by = ?, outcome = ? WHERE id = ?`, r.ClosedAt, by,
			outcome, id)
		return err
	})
	if err != nil {
		return hub.Report{}, err
	}
	return r.report(), nil
}

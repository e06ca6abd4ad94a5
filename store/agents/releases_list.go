package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/registry"
	"agentsite/store/engine"
)

type releaseRow struct {
	Name        string `db:"name"`
	Version     string `db:"version"`
	Title       string `db:"title"`
	Description string `db:"description"`
	Endpoint    string `db:"endpoint"`
	Document    string `db:"document"`
	Size        int    `db:"size"`
	Status      string `db:"status"`
	Message     string `db:"status_message"`
	Latest      bool   `db:"latest"`
	PublishedAt int64  `db:"published_at"`
	StatusAt    int64  `db:"status_at"`
	UpdatedAt   int64  `db:"updated_at"`
	Agent       string `db:"agent"`
	Live        string `db:"live"`
	Removed     bool   `db:"removed"`
}

func (r releaseRow) release() registry.Release {
	out := registry.Release{Name: r.Name, Version: r.Version, Title: r.Title, Description: r.Description,
		Endpoint: r.Endpoint, Size: r.Size, Status: r.Status, Message: r.Message,
		Latest: r.Latest, PublishedAt: clock.FromMilli(r.PublishedAt), StatusAt: clock.FromMilli(r.StatusAt),
		UpdatedAt: clock.FromMilli(r.UpdatedAt),
		Agent:     r.Agent, Live: hub.Live(r.Live), Removed: r.Removed}
	if r.Document != "" {
		out.Document = []byte(r.Document)
	}
	return out
}

// Releases implements registry.Releases. It merges published releases and registered agents without a
// release, both ordered by name and version.
func (d *Registry) Releases(ctx context.Context, f registry.Filter) ([]registry.Release, error) {
	out, err := d.listPublished(ctx, f)
	if err != nil || f.Namespace == "" {
		return out, engine.MapError(err)
	}
	own, err := d.listRegistered(ctx, f)
	if err != nil || len(own) == 0 {
		return out, engine.MapError(err)
	}
	out = append(out, own...)
	slices.SortStableFunc(out, func(a, b registry.Release) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return strings.Compare(a.Version, b.Version)
	})
	return out[:min(len(out), f.Limit)], nil
}

// where collects the conditions of a query.
type where struct {
	parts []string
	args  []any
}

func (w *where) and(part string, args ...any) {
	w.parts, w.args = append(w.parts, part), append(w.args, args...)
}

// likePattern returns a pattern of LIKE ... ESCAPE '\' for values that contain text.
func likePattern(text string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text) + "%"
}

// effective is the SQL of a release's status: the end of its agent deletes it, and a deprecated agent
// deprecates its latest version.
const effective = `CASE WHEN COALESCE(a.deleted_at, 0) > 0 OR COALESCE(a.status, '') = 'withdrawn' THEN 'deleted'
	WHEN r.latest = 1 AND r.endpoint <> '' AND r.status = 'active' AND a.status = 'deprecated' THEN 'deprecated' ELSE r.status END`

// listPublished lists the releases that were published through the registry.
func (d *Registry) listPublished(ctx context.Context, f registry.Filter) ([]registry.Release, error) {
	query, args := publishedQuery(f)
	var rows []releaseRow
	err := d.db.List(ctx, &rows, query, args...)
	out := make([]registry.Release, len(rows))
	for i, r := range rows {
		out[i] = r.release()
	}
	return out, err
}

// byIndex forces the index of changes if the filter asks for changes: a mirror asks often, and little has
// changed. SQLite would read all rows in the order of names.
func byIndex(f registry.Filter, index string) string {
	if f.UpdatedSince.IsZero() {
		return ""
	}
	return "INDEXED BY " + index
}

// publishedQuery returns the query and its arguments. It leaves out releases of agents that are not
// public or have a disabled owner.
func publishedQuery(f registry.Filter) (string, []any) {
	var w where
	status, document := effective, "r.document"
	if f.Brief {
		status, document = "r.status", "''"
	} else {
		w.and(`(a.id IS NULL OR a.deleted_at > 0 OR a.visibility = 'public' AND a.status <> 'draft' AND COALESCE(o.disabled_at, 0) = 0)`)
	}
	if f.Name != "" {
		w.and(`r.name = ?`, f.Name)
	}
	if f.Version != "" {
		w.and(`r.version = ?`, f.Version)
	}
	if f.Latest {
		w.and(`r.latest = 1`)
	}
	if f.Search != "" {
		w.and(`LOWER(r.name) LIKE LOWER(?) ESCAPE '\'`, likePattern(f.Search))
	}
	if f.Agent != "" {
		w.and(`a.name = ?`, f.Agent)
	}
	if !f.UpdatedSince.IsZero() {
		w.and(`r.updated_at >= ?`, clock.Milli(f.UpdatedSince))
	}
	if !f.Deleted {
		w.and(`(` + status + `) <> 'deleted'`)
	}
	if f.AfterName != "" {
		w.and(`(r.name, r.version) > (?, ?)`, f.AfterName, f.AfterVersion)
	}
	if len(w.parts) == 0 {
		w.and(`1`)
	}
	return `SELECT r.name, r.version, r.title, r.description, r.endpoint, ` + document + ` AS document, r.size, ` +
		status + ` AS status,
		CASE WHEN a.status IN ('withdrawn', 'deprecated') AND r.status = 'active' AND (` + status +
		`) <> 'active' THEN a.status_message ELSE r.status_message END AS status_message,
		r.latest, r.published_at, r.status_at, r.updated_at, COALESCE(a.name, '') AS agent, COALESCE(a.live_state, '') AS live, COALESCE(a.deleted_at, 0) > 0 AS removed
		FROM releases r ` + byIndex(f, "releases_updated") +
		` JOIN servers s ON s.name = r.name LEFT JOIN agents a ON a.id = s.agent_id LEFT JOIN accounts o ON o.id = a.owner_id
		WHERE ` + strings.Join(w.parts, " AND ") + `
		ORDER BY r.name, r.version LIMIT ?`, append(w.args, f.Limit)
}

// listRegistered lists the public agents of kind mcp without a release, each with its current version.
func (d *Registry) listRegistered(ctx context.Context, f registry.Filter) ([]registry.Release, error) {
	query, args := registeredQuery(f)
	if query == "" {
		return []registry.Release{}, nil
	}
	var rows []struct {
		releaseRow
		Spec string `db:"spec"`
	}
	if err := d.db.List(ctx, &rows, query, args...); err != nil {
		return nil, err
	}
	out := make([]registry.Release, len(rows))
	for i, r := range rows {
		var s AgentSpec
		if err := json.Unmarshal([]byte(r.Spec), &s); err != nil {
			return nil, fmt.Errorf("read agent %s: %w", r.Agent, err)
		}
		out[i] = r.release()
		out[i].Description = s.Description
	}
	return out, nil
}

// registeredQuery returns the query and its arguments, "" if the filter excludes all names of the
// portal's namespace.
func registeredQuery(f registry.Filter) (string, []any) {
	prefix := f.Namespace + "/"
	var w where
	after := f.AfterName
	switch name, ok := strings.CutPrefix(after, prefix); {
	case ok:
		w.and(`a.name >= ? AND (a.name, a.version || '.0.0') > (?, ?)`, name, name, f.AfterVersion)
	case after > prefix:
		return "", nil
	}
	if f.Name != "" {
		name, ok := strings.CutPrefix(f.Name, prefix)
		if !ok {
			return "", nil
		}
		w.and(`a.name = ?`, name)
	}
	if f.Version != "" {
		w.and(`a.version || '.0.0' = ?`, f.Version)
	}
	if f.Search != "" {
		w.and(`? || LOWER(a.name) LIKE LOWER(?) ESCAPE '\'`, prefix, likePattern(f.Search))
	}
	if f.Agent != "" {
		w.and(`a.name = ?`, f.Agent)
	}
	if !f.UpdatedSince.IsZero() {
		w.and(`a.updated_at >= ?`, clock.Milli(f.UpdatedSince))
	}
	if !f.Deleted {
		w.and(`a.deleted_at = 0 AND a.status <> 'withdrawn'`)
	}
	w.and(`a.kind = 'mcp' AND a.visibility = 'public' AND a.status <> 'draft' AND COALESCE(o.disabled_at, 0) = 0 AND NOT EXISTS (SELECT 1 FROM servers s WHERE s.agent_id = a.id)`)
	return `SELECT ? || a.name AS name, a.version || '.0.0' AS version, a.title, a.spec,
		CASE WHEN a.deleted_at > 0 OR a.status = 'withdrawn' THEN 'deleted' ELSE a.status END AS status, a.status_message, 1 AS latest,
		a.created_at AS published_at, a.updated_at AS status_at, a.updated_at, a.name AS agent, a.live_state AS live, a.deleted_at > 0 AS removed
		FROM agents a ` + byIndex(f, "agents_mcp_updated") + ` LEFT JOIN accounts o ON o.id = a.owner_id
		WHERE ` + strings.Join(w.parts, " AND ") + `
		ORDER BY a.name LIMIT ?`, slices.Concat([]any{prefix}, w.args, []any{f.Limit})
}

package agents

import (
	"context"
	"database/sql"
	"errors"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/registry"
	"agentsite/store/engine"
	"agentsite/store/rows"
)

// Registry stores the releases of the MCP registry. It implements registry.Releases.
type Registry struct {
	db     engine.DB
	agents *Agents
}

func NewRegistry(db engine.DB, agents *Agents) *Registry { return &Registry{db, agents} }

// Server implements registry.Releases. Revision is the number that SaveRelease compares.
func (d *Registry) Server(ctx context.Context, name string) (registry.Server, error) {
	var r struct {
		Name     string `db:"name"`
		AgentID  string `db:"agent_id"`
		Site     string `db:"site"`
		Held     bool   `db:"held"`
		Revision int    `db:"revision"`
	}
	err := d.db.Get(ctx, &r, `SELECT name, COALESCE(agent_id, '') AS agent_id, site, held, revision FROM servers WHERE name = ?`, name)
	return registry.Server(r), engine.MapError(err)
}

// CountServers implements registry.Releases. It counts servers of deleted agents as well.
func (d *Registry) CountServers(ctx context.Context, site string) (int, error) {
	var n int
	err := d.db.Get(ctx, &n, `SELECT COUNT(*) FROM servers WHERE site = ?`, site)
	return n, engine.MapError(err)
}

// SaveRelease implements registry.Releases. It returns registry.ErrStale if the server or its agent
// changed since it was read.
func (d *Registry) SaveRelease(ctx context.Context, c registry.Change) error {
	var spec string
	if c.Agent != nil {
		var err error
		if spec, err = specOf(*c.Agent); err != nil {
			return err
		}
	}
	return d.db.Write(ctx, func(t engine.Tx) error {
		if c.Agent != nil {
			if err := d.agents.checkOwner(t, c.Agent.OwnerID, 2*len(spec)+newAgentBytes); err != nil {
				return err
			}
			if err := d.saveAgent(t, c, spec); err != nil {
				return err
			}
		}
		if err := saveServer(t, c); err != nil {
			return err
		}
		at := clock.Milli(c.At)
		if c.Add != nil {
			if err := insertRelease(t, c.Server.Name, *c.Add); err != nil {
				return err
			}
		}
		for _, version := range c.Set {
			if err := rows.CheckChanged(t.Exec(`UPDATE releases SET status = ?, status_message = ?, status_at = CASE WHEN status = ? THEN status_at ELSE ? END, updated_at = ?
				WHERE name = ? AND version = ?`, c.Status, c.Message, c.Status, at, at, c.Server.Name,
				version)); err != nil {
				return err
			}
		}
		if c.Add == nil && c.Status != registry.ReleaseDeleted {
			// Releases that come back from deletion need their addresses, which other servers may have
			// taken.
			if err := checkRemotes(t, c.Server.Name, c.Set); err != nil {
				return err
			}
		}
		// Set updated_at also of the release that is no longer the latest, so that mirrors learn of it.
		_, err := t.Exec(`UPDATE releases SET latest = 1 - latest, updated_at = ? WHERE name = ? AND (latest = 1) <> (version = ?)`, at, c.Server.Name, c.Latest)
		return err
	})
}

// saveAgent creates or updates the agent of a server. A conflict becomes registry.ErrStale, so that the
// caller reads again.
func (d *Registry) saveAgent(t engine.Tx, c registry.Change, spec string) error {
	err := error(nil)
	if c.Base == 0 {
		if err = d.agents.TakeName(t, c.Agent.Name, "agent", c.Agent.ID, clock.Milli(c.At)); err == nil {
			return d.agents.insertAgent(t, *c.Agent, spec, c.Sealed)
		}
	} else {
		err = d.agents.replaceAgent(t, *c.Agent, spec, c.Base, c.Sealed, c.Author)
	}
	if fault.Is(err, fault.Conflict) {
		return registry.ErrStale
	}
	return err
}

func saveServer(t engine.Tx, c registry.Change) error {
	s := c.Server
	if s.Revision == 0 {
		_, err := t.Exec(`INSERT INTO servers (name, agent_id, site, revision, created_at) VALUES (?, ?, ?, 1, ?)`,
			s.Name, rows.NullText(s.AgentID), s.Site, clock.Milli(c.At))
		if engine.ReasonOf(err) == engine.Duplicate {
			return registry.ErrStale
		}
		return err
	}
	err := rows.CheckChanged(t.Exec(`UPDATE servers SET agent_id = ?, held = ?, revision = revision + 1 WHERE name = ? AND revision = ?`, rows.NullText(s.AgentID), s.Held, s.Name, s.Revision))
	if fault.Is(err, fault.NotFound) {
		return registry.ErrStale
	}
	return err
}

func insertRelease(t engine.Tx, name string, r registry.Release) error {
	for _, u := range r.Remotes {
		if err := checkRemote(t, name, u); err != nil {
			return err
		}
	}
	at := clock.Milli(r.PublishedAt)
	var id int64
	err := t.Get(&id, `INSERT INTO releases (name, version, status, status_message, latest, published_at, status_at, updated_at, size, title, description, endpoint, document)
		VALUES (?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`, name, r.Version, r.Status, r.Message, at, at, at,
		len(r.Document), r.Title, r.Description, r.Endpoint, string(r.Document))
	if engine.ReasonOf(err) == engine.Duplicate {
		return registry.ErrStale
	}
	if err != nil {
		return err
	}
	for _, u := range r.Remotes {
		if _, err := t.Exec(`INSERT INTO release_remotes (url, release_id) VALUES (?, ?) ON CONFLICT (url, release_id) DO NOTHING`, u, id); err != nil {
			return err
		}
	}
	return nil
}

// checkRemote returns an Invalid fault if another server has the address in a release that is not
// deleted.
func checkRemote(t engine.Tx, name, address string) error {
	var other string
	err := t.Get(&other, `SELECT r.name FROM release_remotes m JOIN releases r ON r.id = m.release_id
		JOIN servers s ON s.name = r.name LEFT JOIN agents a ON a.id = s.agent_id
		WHERE m.url = ? AND r.name <> ? AND r.status <> 'deleted' AND COALESCE(a.deleted_at, 0) = 0 LIMIT 1`, address,
		name)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = fault.New(fault.Invalid, "remote URL %s is already used by server %s", address, other)
	}
	return err
}

// checkRemotes is checkRemote for all addresses of some versions of a server.
func checkRemotes(t engine.Tx, name string, versions []string) error {
	for _, v := range versions {
		var urls []string
		if err := t.List(&urls, `SELECT m.url FROM release_remotes m JOIN releases r ON r.id = m.release_id WHERE r.name = ? AND r.version = ?`, name, v); err != nil {
			return err
		}
		for _, u := range urls {
			if err := checkRemote(t, name, u); err != nil {
				return err
			}
		}
	}
	return nil
}

// touchReleases marks an agent's releases as changed for mirrors, because their status may have
// changed.
func touchReleases(t engine.Tx, agentID string, at int64) error {
	_, err := t.Exec(`UPDATE releases SET updated_at = ? WHERE name = (SELECT name FROM servers WHERE agent_id = ?)`,
		at, agentID)
	return err
}

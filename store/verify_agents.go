package store

import (
	"context"

	"agentsite/internal/hub"
	"agentsite/store/agents"
	"agentsite/store/sqlite"
)

// checkVersions checks that each agent has every version from 1 to its latest, that all of them can be
// read, that the latest equals the agent, and that the packed history of contacts has a valid length.
func (v *verifier) checkVersions(ctx context.Context) error {
	type row struct {
		ID      string `db:"id"`
		Name    string `db:"name"`
		Version int    `db:"version"`
		Count   int    `db:"count"`
		First   int    `db:"first"`
		Last    int    `db:"last"`
		Bad     int    `db:"bad"`
		Like    bool   `db:"like"` // the latest version equals the agent
		History int    `db:"history"`
	}
	for after := ""; ; {
		n := 0
		err := sqlite.EachRow(ctx, v.c, func(a row) {
			n++
			after = a.ID
			if a.Count != a.Version || a.First != 1 || a.Last != a.Version {
				v.r.addFault("Agent %s (%s) has %d versions from %d to %d, but should have all from 1 to %d.", a.Name,
					a.ID, a.Count, a.First, a.Last, a.Version)
			}
			if !a.Like {
				v.r.addFault("Agent %s (%s) has another kind or status than its latest version.", a.Name, a.ID)
			}
			if a.Bad > 0 {
				v.r.addFault("Agent %s (%s) has %d versions that cannot be read.", a.Name, a.ID, a.Bad)
			}
			if a.History%agents.ContactBytes != 0 || a.History > hub.MaxHistory*agents.ContactBytes {
				v.r.addFault("Agent %s (%s) has a history of contacts that cannot be read.", a.Name, a.ID)
			}
		}, `SELECT a.id, a.name, a.version, COUNT(v.version) AS count, COALESCE(MIN(v.version), 0) AS first, COALESCE(MAX(v.version), 0) AS last,
				COALESCE(SUM(NOT json_valid(v.spec) OR v.icon <> COALESCE(CASE WHEN json_valid(v.spec) THEN v.spec ->> '$.icon' END, '')), 0) AS bad,
				COALESCE(SUM(v.version = a.version AND v.kind = a.kind AND v.status = a.status), 0) > 0 OR COALESCE(MAX(v.version), 0) <> a.version AS like,
				COALESCE((SELECT length(h.history) FROM agent_health h WHERE h.agent_id = a.id), 0) AS history
			FROM (SELECT id, name, version, kind, status FROM agents WHERE id > ? ORDER BY id LIMIT ?) a LEFT JOIN agent_versions v ON v.agent_id = a.id
			GROUP BY a.id ORDER BY a.id`, after, verifyPage)
		if err != nil || n < verifyPage {
			return err
		}
	}
}

// checkUses checks that no day of an agent has more ended calls than calls.
func (v *verifier) checkUses(ctx context.Context) error {
	type row struct {
		Agent string `db:"agent_id"`
		Day   int64  `db:"day"`
	}
	return sqlite.EachRow(ctx, v.c, func(u row) {
		v.r.addFault("The calls of agent %s on day %d do not add up.", u.Agent, u.Day)
	}, `SELECT agent_id, day FROM agent_days
		WHERE calls < completed + failed + canceled OR calls < guests OR MIN(completed, failed, canceled, guests, ms) < 0`)
}

// checkIcons checks that the content of each picture has the hash in its name.
func (v *verifier) checkIcons(ctx context.Context) error {
	type row struct {
		Hash string `db:"hash"`
		Data []byte `db:"data"`
	}
	for after := ""; ; {
		n := 0
		err := sqlite.EachRow(ctx, v.c, func(i row) {
			n++
			after = i.Hash
			if agents.IconHash(i.Data) != i.Hash {
				v.r.addFault("The picture %s is not the one that was stored.", i.Hash)
			}
		}, `SELECT hash, data FROM icons WHERE hash > ? ORDER BY hash LIMIT ?`, after, verifyPage)
		if err != nil || n < verifyPage {
			return err
		}
	}
}

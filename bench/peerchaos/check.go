package main

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite" // registers the driver "sqlite"

	"agentsite/internal/record"
)

// agree waits until every portal holds and shows exactly the agents in the directories of all portals.
// It returns an error if that takes longer than w.within, if a portal was quarantined, or if a log has
// an unexpected error. The text of when says in messages at which point of the run this is.
func (w *world) agree(ctx context.Context, when string) error {
	began := time.Now()
	var differ error
	for time.Since(began) < w.within {
		if differ = w.differ(ctx); differ == nil {
			fmt.Printf("agree %s: %d agents, after %s\n", when, w.count(ctx), time.Since(began).Round(100*time.Millisecond))
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	var all []error
	if differ != nil {
		all = append(all, fmt.Errorf("%s they do not agree after %s: %w", when, w.within, differ))
	}
	for _, p := range w.portals {
		list, err := p.quarantined()
		if err != nil {
			all = append(all, fmt.Errorf("read whom %s has quarantined: %w", p.name, err))
		}
		if len(list) > 0 {
			all = append(all, fmt.Errorf("%s %s has quarantined %v", when, p.name, list))
		}
		if lines := p.troubles(); len(lines) > 0 {
			all = append(all, fmt.Errorf("%s the log of %s has:\n%s", when, p.name, strings.Join(lines, "\n")))
		}
	}
	return errors.Join(all...)
}

func (w *world) count(ctx context.Context) int {
	n, _ := w.portals[0].total(ctx)
	return n
}

// differ returns an error that names the first difference between the portals, nil when there is none.
func (w *world) differ(ctx context.Context) error {
	var totals []int
	for _, of := range w.portals {
		id, want, err := of.truth()
		if err != nil {
			return fmt.Errorf("read the directory of %s: %w", of.name, err)
		}
		var own map[string]string
		for _, at := range append([]*portal{of}, w.portals[:]...) {
			held, err := at.held(id)
			if err != nil {
				return fmt.Errorf("read the replica of %s: %w", at.name, err)
			}
			if own == nil { // The first portal in the list is of itself: its own log must match its directory.
				if err := alike(want, says(held)); err != nil {
					return fmt.Errorf("the log of %s and its directory: %w", of.name, err)
				}
				own = hashes(held)
			}
			if err := alike(own, hashes(held)); err != nil {
				return fmt.Errorf("%s of %s: %w", at.name, of.name, err)
			}
		}
	}
	for _, p := range w.portals {
		n, err := p.total(ctx)
		if err != nil {
			return err
		}
		totals = append(totals, n)
	}
	sum := 0
	for _, of := range w.portals {
		_, want, err := of.truth()
		if err != nil {
			return err
		}
		sum += len(want)
	}
	for i, n := range totals {
		if n != sum {
			return fmt.Errorf("%s finds %d agents where there are %d", w.portals[i].name, n, sum)
		}
	}
	// Equal totals do not prove that the newest versions are shown, so search for a word of one.
	for _, of := range w.portals {
		if err := w.shown(ctx, of); err != nil {
			return err
		}
	}
	return nil
}

// shown searches all portals for one agent of portal of whose description was changed during the run.
func (w *world) shown(ctx context.Context, of *portal) error {
	_, want, err := of.truth()
	if err != nil {
		return err
	}
	for key, text := range want {
		_, words, _ := strings.Cut(text, " ")
		if !strings.HasPrefix(words, "Said ") {
			continue
		}
		for _, at := range w.portals {
			var out struct{ Total int }
			q := url.Values{"q": {strings.Fields(words)[1]}}
			if _, err := at.call(ctx, "GET", "/search?limit=1&"+q.Encode(), nil, &out); err != nil {
				return err
			}
			if out.Total < 1 {
				return fmt.Errorf("%s does not find %q of %s (%s)", at.name, text, of.name, key[:8])
			}
		}
		return nil // One agent is enough: differ has compared the totals.
	}
	return nil
}

// alike returns an error for the first key that only one of the two maps has, or whose values differ.
func alike(want, is map[string]string) error {
	for k, v := range want {
		got, ok := is[k]
		if !ok {
			return fmt.Errorf("%s %q is lacking, %d of %d are there", k[:8], v, len(is), len(want))
		}
		if got != v {
			return fmt.Errorf("%s is %q and not %q", k[:8], got, v)
		}
	}
	if len(is) != len(want) {
		for k, v := range is {
			if _, ok := want[k]; !ok {
				return fmt.Errorf("%s %q should not be there; %d for %d", k[:8], v, len(is), len(want))
			}
		}
	}
	return nil
}

// entry is an agent in a replica: the hash of its record, and its name and description.
type entry struct{ hash, says string }

func says(m map[string]entry) map[string]string {
	out := make(map[string]string, len(m))
	for k, e := range m {
		out[k] = e.says
	}
	return out
}

func hashes(m map[string]entry) map[string]string {
	out := make(map[string]string, len(m))
	for k, e := range m {
		out[k] = e.hash
	}
	return out
}

// read opens a database file of the portal read-only. The portal may be running.
func (p *portal) read(name string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+filepath.Join(p.data, name)+"?mode=ro&_busy_timeout=5000")
}

// truth returns the portal's id and, by agent key in hex, the name and description of each public agent
// in its directory.
func (p *portal) truth() (id record.PortalID, all map[string]string, err error) {
	r, err := p.read("replica.db")
	if err != nil {
		return "", nil, err
	}
	defer r.Close()
	if err := r.QueryRow(`SELECT portal FROM owner`).Scan(&id); err != nil {
		return "", nil, err
	}
	db, err := p.read("agentsite.db")
	if err != nil {
		return "", nil, err
	}
	defer db.Close()
	rows, err := db.Query(`SELECT lower(id), name, COALESCE(json_extract(spec, '$.description'), '') FROM agents WHERE deleted_at = 0 AND kind <> 'builtin' AND visibility = 'public' AND held = 0 AND status IN ('active', 'deprecated')`)
	if err != nil {
		return "", nil, err
	}
	defer rows.Close()
	all = make(map[string]string)
	for rows.Next() {
		var local, name, text string
		if err := rows.Scan(&local, &name, &text); err != nil {
			return "", nil, err
		}
		key := record.AgentKey(record.AgentID(id, local))
		all[hex.EncodeToString(key[:])] = name + " " + text
	}
	return id, all, rows.Err()
}

// held returns, by agent key in hex, the agents of another portal that this portal's replica has. It
// verifies that each record has the hash under which it is stored.
func (p *portal) held(of record.PortalID) (map[string]entry, error) {
	db, err := p.read("replica.db")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.Query(`SELECT a.akey, a.hash, w.wire FROM agents a JOIN wires w ON w.n = a.n WHERE a.gone = 0 AND a.portal = (SELECT id FROM portals WHERE portal = ?)`, of)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := make(map[string]entry)
	for rows.Next() {
		var key, hash, wire []byte
		if err := rows.Scan(&key, &hash, &wire); err != nil {
			return nil, err
		}
		r, err := record.Open("agentsite-main", wire)
		if err != nil {
			return nil, err
		}
		a, ok := r.Body.(*record.Agent)
		if !ok || string(r.Hash[:]) != string(hash) {
			return nil, errors.New("a record is not what it is kept as")
		}
		out[hex.EncodeToString(key)] = entry{hex.EncodeToString(hash), a.Name + " " + a.Description}
	}
	return out, rows.Err()
}

// quarantined returns the portals that this portal has put under quarantine, each with the conflicting
// record. The run is honest, so there must be none.
func (p *portal) quarantined() (out []string, err error) {
	db, err := p.read("replica.db")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.Query(`SELECT portals.portal || ' for ' || COALESCE(type || ' ' || about || ' ' || epoch || '.' || seq, '') FROM portals LEFT JOIN conflicts ON conflicts.portal = portals.id WHERE quarantined OR type IS NOT NULL`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

// total returns the number of registered agents that the portal's search finds. The built-in kinds are
// left out, because each portal has its own.
func (p *portal) total(ctx context.Context) (int, error) {
	var out struct{ Total int }
	_, err := p.call(ctx, "GET", "/search?limit=1&kind=a2a,link,mcp,openai,prompt", nil, &out)
	return out.Total, err
}

// Package ranking has the search engines that benchmarks of the quality of search compare: the portal's index in
// each of its modes, and SQLite's FTS5 with several kinds of queries.
package ranking

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"agentsite/internal/hub"
	"agentsite/internal/index"
	"agentsite/internal/meaning"

	_ "modernc.org/sqlite"
)

// Engine is a search engine. Top returns the ids of the best agents for a text, best first, at most Depth.
type Engine struct {
	Name string
	Top  func(text string) ([]string, error)
}

// Depth is the number of results that are looked at.
const Depth = 10

// Index returns the portal's own index of the agents, with the meaning that is part of the binary.
func Index(agents []hub.Agent) (*index.Index, error) {
	model, err := meaning.Open()
	if err != nil {
		return nil, err
	}
	x := index.NewWithMeaning(model, meaning.Dims)
	for _, a := range agents {
		x.Put(a)
	}
	return x, nil
}

// Portal returns the index in a mode of hub.Modes.
func Portal(x *index.Index, mode string) Engine {
	return portal(x, "portal, "+mode, hub.Query{Mode: mode})
}

// Recruiter returns the index as a team asks it for members: the best agents, even if none fits well.
func Recruiter(x *index.Index) Engine { return portal(x, "portal, recruiting", hub.Query{Unfit: true}) }

func portal(x *index.Index, name string, q hub.Query) Engine {
	return Engine{name, func(text string) ([]string, error) {
		q.Text, q.Limit = text, Depth
		page, err := x.Search(q)
		if err != nil {
			return nil, err
		}
		var ids []string
		for _, r := range page.Results {
			ids = append(ids, r.Agent.ID)
		}
		return ids, nil
	}}
}

// weights are the weights of the columns for bm25. They are those of the fields in the portal's index,
// which improve the results of FTS5 as well.
const weights = "8, 6, 4, 4, 1.5, 1"

// FTS5 fills an SQLite table and returns engines for four kinds of queries: agents with all words, then
// those with any word; agents with any word; and both again with the last word also as a prefix. The
// caller must close the database.
func FTS5(agents []hub.Agent) (*sql.DB, []Engine, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(1) // each connection would have a database in memory of its own
	if err := load(db, agents); err != nil {
		db.Close()
		return nil, nil, fmt.Errorf("fill fts5: %w", err)
	}
	var engines []Engine
	for _, c := range []struct {
		name        string
		all, prefix bool
	}{{"FTS5, all words then any", true, false}, {"FTS5, any word", false, false}, {"FTS5, all then any, prefix", true, true}, {"FTS5, any word, prefix", false, true}} {
		engines = append(engines, Engine{c.name, func(text string) ([]string, error) {
			words := words(text, c.prefix)
			if len(words) == 0 {
				return nil, nil
			}
			var ids []string
			for _, op := range []string{" AND ", " OR "} {
				if op == " AND " && !c.all || len(ids) == Depth {
					continue
				}
				more, err := match(db, strings.Join(words, op))
				if err != nil {
					return nil, err
				}
				for _, id := range more {
					if len(ids) < Depth && !slices.Contains(ids, id) {
						ids = append(ids, id)
					}
				}
			}
			return ids, nil
		}})
	}
	return db, engines, nil
}

func load(db *sql.DB, agents []hub.Agent) error {
	if _, err := db.Exec(`CREATE VIRTUAL TABLE agents USING fts5(id UNINDEXED, name, title, skills, tags, examples, description, tokenize='porter unicode61')`); err != nil {
		return err
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, a := range agents {
		var skills, examples []string
		text := []string{a.Description}
		for _, s := range a.Skills {
			skills, examples, text = append(skills, s.Name), append(examples, s.Examples...), append(text, s.Description)
		}
		if _, err := tx.Exec(`INSERT INTO agents VALUES (?, ?, ?, ?, ?, ?, ?)`, a.ID, a.Name, a.Title,
			strings.Join(skills, ". "), strings.Join(a.Tags(), ", "), strings.Join(examples, " "), strings.Join(text, " ")); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func words(text string, prefix bool) []string {
	list := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i, w := range list {
		list[i] = `"` + w + `"`
		if prefix && i == len(list)-1 {
			list[i] = `("` + w + `" OR "` + w + `"*)`
		}
	}
	return list
}

func match(db *sql.DB, expr string) ([]string, error) {
	rows, err := db.Query(`SELECT id FROM agents WHERE agents MATCH ? ORDER BY bm25(agents, 0, `+weights+`), id LIMIT ?`, expr, Depth)
	if err != nil {
		return nil, fmt.Errorf("match %s: %w", expr, err)
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

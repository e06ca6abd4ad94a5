package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"github.com/jmoiron/sqlx"

	"agentsite/internal/hub"
)

const directorySchema = `
CREATE TABLE agents (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, spec TEXT NOT NULL, at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE versions (agent TEXT NOT NULL, version INTEGER NOT NULL, spec TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (agent, version)) STRICT, WITHOUT ROWID;`

// maxImport is the number of imported agents that share one transaction.
const maxImport = 1000

// directory registers agents: it stores their rows over one writing connection and adds their words to
// the index in memory. It is safe for concurrent use until close.
type directory struct {
	db             *sqlx.DB
	conn           *sqlx.Conn
	agent, version *sqlx.Stmt
	words          *words
	ops            chan *entries
	done           chan struct{}
}

// entries is a group of agents that wait for the same transaction. err is valid once done is closed.
type entries struct {
	list []hub.Agent
	spec []string // the JSON of each agent in list
	err  error
	done chan struct{}
}

func newDirectory(dir string, x *words) (*directory, error) {
	d := &directory{words: x, ops: make(chan *entries, 4096), done: make(chan struct{})}
	var err error
	if d.db, err = sqlx.Open("sqlite", "file:"+filepath.Join(dir, "directory.db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=cache_size(-16384)&_pragma=wal_autocheckpoint(2000)"); err != nil {
		return nil, err
	}
	ctx := context.Background()
	if d.conn, err = d.db.Connx(ctx); err != nil {
		return nil, err
	}
	if _, err = d.conn.ExecContext(ctx, directorySchema); err != nil {
		return nil, err
	}
	if d.agent, err = d.conn.PreparexContext(ctx, `INSERT INTO agents (id, name, version, spec, at) VALUES (?, ?, 1, ?, ?)`); err != nil {
		return nil, err
	}
	if d.version, err = d.conn.PreparexContext(ctx, `INSERT INTO versions (agent, version, spec, at) VALUES (?, 1, ?, ?)`); err != nil {
		return nil, err
	}
	go d.writer()
	return d, nil
}

func (d *directory) close() {
	close(d.ops)
	<-d.done
	d.conn.Close()
	d.db.Close()
}

// writer commits all waiting entries, at most maxBatch, as one transaction, so that they share one
// flush to the disk.
func (d *directory) writer() {
	defer close(d.done)
	ctx := context.Background()
	for o := range d.ops {
		batch := []*entries{o}
	drain:
		for len(batch) < maxBatch {
			select {
			case o, ok := <-d.ops:
				if !ok {
					break drain
				}
				batch = append(batch, o)
			default:
				break drain
			}
		}
		_, err := d.conn.ExecContext(ctx, "BEGIN IMMEDIATE")
		at := time.Now().UnixMilli()
		for _, o := range batch {
			for i, a := range o.list {
				if err == nil {
					_, err = d.agent.Exec(a.ID, a.Name, o.spec[i], at)
				}
				if err == nil {
					_, err = d.version.Exec(a.ID, o.spec[i], at)
				}
			}
		}
		if err == nil {
			_, err = d.conn.ExecContext(ctx, "COMMIT")
		}
		if err != nil {
			d.conn.ExecContext(ctx, "ROLLBACK")
		}
		for _, o := range batch {
			o.err = err
			close(o.done)
		}
	}
}

// registration is the JSON body that registers an agent.
type registration struct {
	Name        string      `json:"name"`
	Title       string      `json:"title"`
	Description string      `json:"description"`
	Kind        hub.Kind    `json:"kind"`
	Skills      []hub.Skill `json:"skills"`
}

func (d *directory) keep(o *entries) error {
	o.done = make(chan struct{})
	d.ops <- o
	<-o.done
	if o.err != nil {
		return o.err
	}
	for i := range o.list {
		d.words.put(&o.list[i])
	}
	return nil
}

// take parses one agent from JSON and appends it.
func (o *entries) take(body []byte) error {
	var in registration
	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}
	o.list = append(o.list, hub.Agent{ID: in.Name, Name: in.Name, Title: in.Title, Description: in.Description, Kind: in.Kind, Skills: in.Skills})
	o.spec = append(o.spec, string(body))
	return nil
}

// register stores one agent. It answers after the commit, when a search finds the agent.
func (d *directory) register(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var o entries
	if err == nil {
		err = o.take(body)
	}
	if err == nil {
		err = d.keep(&o)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer(w, http.StatusCreated, struct {
		Name    string `json:"name"`
		Version int    `json:"version"`
	}{o.list[0].Name, 1})
}

// load stores the agents of a request with one JSON object a line, maxImport in a transaction.
func (d *directory) load(w http.ResponseWriter, r *http.Request) {
	in := bufio.NewScanner(r.Body)
	in.Buffer(nil, 256<<10)
	n, o := 0, new(entries)
	for in.Scan() {
		if err := o.take(in.Bytes()); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if n++; len(o.list) < maxImport {
			continue
		}
		if err := d.keep(o); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		o = new(entries)
	}
	err := in.Err()
	if err == nil && len(o.list) > 0 {
		err = d.keep(o)
	}
	if err != nil {
		http.Error(w, fmt.Sprintf("after %d agents: %s", n, err), http.StatusInternalServerError)
		return
	}
	answer(w, http.StatusOK, struct {
		Registered int `json:"registered"`
	}{n})
}

// search answers with the 20 best agents for the words of the parameter q, and the number of agents
// that have any of them.
func (d *directory) search(w http.ResponseWriter, r *http.Request) {
	list, total := d.words.best(r.URL.Query().Get("q"), 20)
	answer(w, http.StatusOK, struct {
		Results []found `json:"results"`
		Total   int     `json:"total"`
	}{list, total})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"

	"agentsite/bench/proc"
	"agentsite/bench/report"
	"agentsite/internal/ident"
	"agentsite/migrations"
	"agentsite/store/sqlite"
)

// notebook writes numbered notes to a conversation and records the acknowledged and the refused ones.
type notebook struct {
	*ordinary
	written, refused []string
	strange          []string // refusals that are neither 503 nor 507
}

// notebook opens a conversation of p and writes 20 notes to it, all of which must be acknowledged.
func (s *site) notebook(p *person) (*notebook, error) {
	o, err := s.notes(p)
	if err != nil {
		return nil, err
	}
	n := &notebook{ordinary: o}
	for range 20 {
		if ok, err := n.note(); err != nil || !ok {
			return nil, fmt.Errorf("write the first notes: %v %w", n.strange, err)
		}
	}
	return n, nil
}

// note writes one note. An error is a connection that failed: its outcome is unknown.
func (n *notebook) note() (acknowledged bool, err error) {
	text := fmt.Sprintf("note %d", len(n.written)+len(n.refused))
	err = n.site.say(n.person, n.room, text)
	r, answered := errors.AsType[*refused](err)
	switch {
	case err == nil:
		n.written = append(n.written, text)
		return true, nil
	case !answered:
		return false, err
	}
	n.refused = append(n.refused, text)
	if r.status != http.StatusServiceUnavailable && r.status != http.StatusInsufficientStorage {
		n.strange = append(n.strange, r.Error())
	}
	return false, nil
}

// check reads the notes. It returns an error if an acknowledged note is missing or stored twice, if a refused note is
// stored, or if a refusal had another status than 503 and 507.
func (n *notebook) check() error {
	count := make(map[string]int)
	after := int64(0)
	for {
		var page struct {
			Messages []struct {
				Seq   int64
				Parts []struct{ Text string }
			}
		}
		path := fmt.Sprintf("/api/v1/conversations/%s/messages?limit=200&after=%d", n.room, after)
		if err := n.site.call(n.person, http.MethodGet, path, nil, &page); err != nil {
			return fmt.Errorf("read the notes: %w", err)
		}
		for _, m := range page.Messages {
			after = max(after, m.Seq)
			for _, p := range m.Parts {
				count[p.Text]++
			}
		}
		if len(page.Messages) == 0 {
			break
		}
	}
	var errs []error
	for _, text := range n.written {
		if count[text] != 1 {
			errs = append(errs, fmt.Errorf("acknowledged %q is there %d times", text, count[text]))
		}
	}
	for _, text := range n.refused {
		if count[text] != 0 {
			errs = append(errs, fmt.Errorf("refused %q is there", text))
		}
	}
	if len(n.strange) > 0 {
		errs = append(errs, fmt.Errorf("refused with %s", n.strange[0]))
	}
	if len(errs) > 3 {
		errs = append(errs[:3], fmt.Errorf("and %d more", len(errs)-3))
	}
	return errors.Join(errs...)
}

// addSteps adds the result line of a row that is met if all steps succeed.
func (b *bench) addSteps(what, bar string, steps []error) {
	result := "all work"
	if err := errors.Join(steps...); err != nil {
		result = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	b.Add(report.Line{What: what, Portal: result, Bar: bar, Judged: true, Met: result == "all work"})
}

// step names an error, nil for none.
func step(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

// lockedDatabase holds the write lock of the database for eight seconds, longer than the portal waits for it, while
// the ordinary user writes and reads.
func (b *bench) lockedDatabase() error {
	s, people, err := b.open(0)
	if err != nil {
		return err
	}
	defer s.stop()
	n, err := s.notebook(people[2])
	if err != nil {
		return err
	}
	db, err := sqlx.Open("sqlite", "file:"+filepath.Join(s.dir, sqlite.FileName)+"?_busy_timeout=5000&_txlock=immediate")
	if err != nil {
		return err
	}
	defer db.Close()
	tx, err := db.Beginx()
	if err != nil {
		return fmt.Errorf("lock the database: %w", err)
	}
	const held = 8 * time.Second
	time.AfterFunc(held, func() { tx.Rollback() })
	began := time.Now()
	var steps []error
	var slowest time.Duration
	ended := make(chan error, 1)
	go func() { // one write after the other
		for time.Since(began) < held {
			if _, err := n.note(); err != nil {
				ended <- err
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		ended <- nil
	}()
	for time.Since(began) < held-time.Second {
		read := time.Now()
		if err := s.call(people[1], http.MethodGet, "/api/v1/agents/"+builtinAgent, nil, nil); err != nil {
			steps = append(steps, step("a read while it is locked", err))
			break
		}
		slowest = max(slowest, time.Since(read))
		time.Sleep(50 * time.Millisecond)
	}
	steps = append(steps, step("a write while it is locked", <-ended))
	if slowest > 2*time.Second {
		steps = append(steps, fmt.Errorf("a read took %s", report.Millis(slowest)))
	}
	fmt.Fprintf(b.Out, "locked: %d notes written, %d refused, slowest read %s\n", len(n.written), len(n.refused), report.Millis(slowest))
	steps = append(steps, s.recovers(n, 5*time.Second), step("the notes", n.check()))
	b.addSteps("database locked for 8 s: reading, writing after, nothing lost", "503 or waiting; all back in 5 s", steps)
	return nil
}

// recovers writes notes until one is acknowledged, for at most limit.
func (s *site) recovers(n *notebook, limit time.Duration) error {
	for deadline := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		ok, err := n.note()
		if ok {
			return nil
		}
		if time.Now().After(deadline) {
			return step("no write again", errors.Join(err, fmt.Errorf("after %s", limit)))
		}
	}
}

// failingSync runs the portal on a disk and makes each fsync fail after the first notes. From then on the portal must
// acknowledge no write until its next start, even if the disk recovers. After the start all acknowledged notes must be
// stored.
func (b *bench) failingSync() error {
	program := filepath.Join(b.Dir, "powerloss")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = filepath.Join("bench", "powerloss")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build bench/powerloss: %w: %s", err, out)
	}
	disk, err := proc.MountPower(program, "", b.Dir)
	if err != nil {
		fmt.Fprintf(b.Out, "fsync: left out, as mounting is not allowed: %v\n", err)
		return nil
	}
	defer disk.Close()
	s, people, err := b.openIn(disk.At, 0)
	if err != nil {
		return err
	}
	defer func() { s.stop() }()
	n, err := s.notebook(people[2])
	if err != nil {
		return err
	}
	var steps []error
	unknown := 0
	if err := disk.SetFails(true); err != nil {
		return err
	}
	for i := range 20 {
		if i == 10 { // fsync succeeds again, but the unsynced changes are lost.
			if err := disk.SetFails(false); err != nil {
				return err
			}
		}
		ok, err := n.note()
		if ok {
			steps = append(steps, errors.New("a note was acknowledged after fsync had failed"))
		}
		if err != nil {
			unknown++ // the portal has ended
		}
	}
	fmt.Fprintf(b.Out, "fsync: %d notes refused, %d without an answer\n", len(n.refused), unknown)
	s.Kill()
	// The next start gets only the synced data of the disk, as after a power cut.
	image := filepath.Join(b.Dir, "after-fsync")
	if _, err := disk.Cut(image, 0, 0); err != nil {
		return err
	}
	s.dir = image
	s.args[slices.Index(s.args, "--data")+1] = s.dir
	if err := s.start(); err != nil {
		steps = append(steps, step("starting again", err))
	} else {
		steps = append(steps, step("the notes", n.check()), s.recovers(n, 5*time.Second))
	}
	b.addSteps("fsync fails: nothing acknowledged after it, nothing lost before", "as SAFETY F3", steps)
	return nil
}

// killedUpgrades kills the portal at 50 moments of the upgrade of its database from older schemas.
func (b *bench) killedUpgrades() error {
	newest := sqlite.SchemaVersion()
	var steps []error
	var unfinished, finished int
	length := time.Second // of an upgrade, from the start of the process until it is done
	kills := b.Pick(5, 50)
	for i := range kills + 1 { // the first upgrade is not disturbed
		from := 2 + int64(i)*7%(newest-2)
		dir, err := os.MkdirTemp(b.Dir, "upgrade-")
		if err != nil {
			return err
		}
		if _, err := ident.CreateKeys(dir); err != nil {
			return err
		}
		if err := createOld(dir, from); err != nil {
			return fmt.Errorf("make a database of schema %d: %w", from, err)
		}
		serve := func() *exec.Cmd {
			return exec.Command(b.Portal, "serve", "--data", dir, "--log-level", "error", "--network", "off", "--listen", "127.0.0.1:0")
		}
		if i == 0 { // its time is the range of the moments
			began := time.Now()
			p, err := proc.Start("portal", serve().Args[0], serve().Args[1:]...)
			if err != nil {
				return fmt.Errorf("upgrade from schema %d: %w", from, err)
			}
			length = time.Since(began)
			p.Kill()
			os.RemoveAll(dir)
			continue
		}
		cmd := serve()
		if err := cmd.Start(); err != nil {
			return err
		}
		time.Sleep(length * time.Duration(i) / time.Duration(kills+1))
		cmd.Process.Kill()
		cmd.Wait()
		have, err := schemaOf(dir)
		switch {
		case err != nil:
			steps = append(steps, step(fmt.Sprintf("killed upgrade %d from schema %d", i, from), err))
		case have == from:
			unfinished++
		case have == newest:
			finished++
		default:
			steps = append(steps, fmt.Errorf("killed upgrade %d from schema %d left schema %d", i, from, have))
		}
		p, err := proc.Start("portal", serve().Args[0], serve().Args[1:]...)
		if err != nil {
			steps = append(steps, step(fmt.Sprintf("start after killed upgrade %d from schema %d", i, from), err))
			continue
		}
		p.Kill()
		if have, err := schemaOf(dir); err != nil || have != newest {
			steps = append(steps, fmt.Errorf("the next start from schema %d ended with %d: %w", from, have, err))
		}
		copied := sqlite.SchemaCopy(filepath.Join(dir, sqlite.FileName), from)
		if _, err := os.Stat(copied); errors.Is(err, fs.ErrNotExist) {
			steps = append(steps, fmt.Errorf("no copy of schema %d was made", from))
		}
		os.RemoveAll(dir)
	}
	fmt.Fprintf(b.Out, "upgrades: %d kills before the end of the upgrade, %d after it\n", unfinished, finished)
	b.addSteps("upgrades killed at 50 moments", "wholly old or new (SAFETY F25)", steps)
	return nil
}

// createOld makes a database of an older schema in dir.
func createOld(dir string, version int64) error {
	path := filepath.Join(dir, sqlite.FileName)
	db, err := sqlite.Connect(path, sqlite.WriteDSN(path), 1)
	if err != nil {
		return err
	}
	defer db.Close()
	p, err := goose.NewProvider(goose.DialectSQLite3, db.DB, migrations.SQLite())
	if err != nil {
		return err
	}
	if _, err := p.UpTo(context.Background(), version); err != nil {
		return err
	}
	_, err = db.Exec(fmt.Sprintf("PRAGMA application_id = %d", sqlite.ApplicationID))
	return err
}

// schemaOf returns the schema of the database in dir, read from a copy as a later start would find it.
func schemaOf(dir string) (version int64, err error) {
	copied, err := os.MkdirTemp(dir, "look-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(copied)
	for _, end := range []string{"", "-wal"} {
		text, err := os.ReadFile(filepath.Join(dir, sqlite.FileName+end))
		if errors.Is(err, fs.ErrNotExist) && end != "" {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(copied, sqlite.FileName+end), text, 0o600)
		}
		if err != nil {
			return 0, err
		}
	}
	db, err := sqlx.Open("sqlite", "file:"+filepath.Join(copied, sqlite.FileName))
	if err != nil {
		return 0, err
	}
	defer db.Close()
	var intact string
	if err := db.Get(&intact, "PRAGMA integrity_check"); err != nil || intact != "ok" {
		return 0, fmt.Errorf("integrity check: %s %w", intact, err)
	}
	err = db.Get(&version, "SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied = 1")
	return version, err
}

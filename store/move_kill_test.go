package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/jmoiron/sqlx"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/testing/pgtest"
	"agentsite/internal/testing/racetest"
	"agentsite/internal/testing/storetest"
	"agentsite/store"
)

// killedMove is a move in a process that kills itself.
type killedMove struct {
	Dir, Database, To, ToDir string
	// Step is the number of the step after which the process dies.
	Step int
}

const killedVariable = "AGENTSITE_TEST_KILLED_MOVE"

// TestMove_InAProcess is the other process of TestMove_KilledAnywhere.
func TestMove_InAProcess(t *testing.T) {
	text := os.Getenv(killedVariable)
	if text == "" {
		t.Skip("runs for another test")
	}
	var k killedMove
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		t.Fatal(err)
	}
	n := 0
	m := store.Move{Keys: ident.KeyFiles{Dir: k.Dir}, Database: k.Database, To: k.To, ToDir: k.ToDir, Log: slog.New(slog.DiscardHandler),
		Step: func(string) {
			if n++; n == k.Step {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {} // the signal ends the process
			}
		}}
	if _, err := m.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// run runs the move and reports whether it was killed.
func (k killedMove) run(t *testing.T) (killed bool) {
	t.Helper()
	text, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestMove_InAProcess$")
	cmd.Env = append(os.Environ(), killedVariable+"="+string(text))
	out, err := cmd.CombinedOutput()
	exit, _ := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return false
	case exit != nil && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL:
		return true
	}
	t.Fatalf("%v: %s", err, out)
	return false
}

// awaitAlone returns when no process uses the database: a server notices late that a client has died.
func awaitAlone(t *testing.T, url string) {
	t.Helper()
	c, err := sqlx.Connect("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for n := 1; n > 0; {
		if err := c.Get(&n, `SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database()
			AND application_name = 'agentsite'`); err != nil {
			t.Fatal(err)
		}
	}
}

// startsOn reports whether a portal would start on a database.
func startsOn(t *testing.T, dir, database string) bool {
	t.Helper()
	db, err := store.OpenWith(context.Background(), dir, store.Config{Database: database}, slog.New(slog.DiscardHandler))
	if fault.Is(err, fault.Conflict) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var portals int
	if err := db.Get(context.Background(), &portals, `SELECT COUNT(*) FROM accounts`); err != nil {
		t.Fatal(err)
	}
	return portals > 0 // an empty database is none of a portal yet
}

// A move that is killed anywhere leaves at most one database on which a portal starts. Run again, it ends;
// canceled, the portal starts where it was.
func TestMove_KilledAnywhere(t *testing.T) {
	storetest.SkipOnPostgres(t)
	racetest.Skip(t)
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	base := filled(t)
	ada := storetest.Account(t, base, "bea")
	send(t, base, ada, "a file")
	keys, err := ident.KeyFiles{Dir: storetest.Dir(base)}.Load()
	if err == nil {
		_, err = base.ClaimPortal(t.Context(), keys.Public(), "")
	}
	if err != nil {
		t.Fatal(err)
	}
	want := rowsOf(t, base.DB)
	from := storetest.Dir(base)
	if err := base.Close(); err != nil {
		t.Fatal(err)
	}
	full := os.Getenv("AGENTSITE_TEST_FULL") != ""
	there := []int{1, 2, 30, 53, 54, 55}
	back := []int{3, 5, 6}
	if full {
		there, back = nil, []int{1, 2, 3, 4, 5, 6, 7}
		for i := range 55 {
			there = append(there, i+1)
		}
	}
	kill := func(t *testing.T, step int, moveBack bool) {
		url, dir := pgtest.NewDatabase(t), t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		k := killedMove{Dir: dir, To: url, Step: step}
		m := store.Move{Keys: ident.KeyFiles{Dir: dir}, To: url, Log: log}
		if moveBack {
			if _, err := m.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			k = killedMove{Dir: dir, Database: url, ToDir: dir, Step: step}
			m = store.Move{Keys: ident.KeyFiles{Dir: dir}, Database: url, ToDir: dir, Log: log}
		}
		killed := k.run(t)
		awaitAlone(t, url)
		if !killed {
			t.Errorf("step %d was not reached", step)
		}
		onServer := startsOn(t, dir, url)
		inFile := startsOn(t, dir, "")
		if onServer && inFile {
			t.Error("both databases start")
		}
		if step%2 == 0 {
			// Where the move can be canceled, the portal starts as before, and never on the copy.
			if err := m.Cancel(t.Context()); err == nil {
				if !startsOn(t, dir, k.Database) {
					t.Error("after a cancel the portal does not start")
				}
				if startsOn(t, dir, k.To) {
					t.Error("after a cancel the copy starts")
				}
			} else if !fault.Is(err, fault.Conflict) {
				t.Fatal(err)
			}
		}
		if _, err := m.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if startsOn(t, dir, k.Database) {
			t.Error("the old database starts")
		}
		db := storetest.OpenOn(t, dir, k.To)
		if got := rowsOf(t, db.DB); !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		storetest.Sound(t, db)
	}
	for _, step := range there {
		t.Run(fmt.Sprint("there/", step), func(t *testing.T) { kill(t, step, false) })
	}
	for _, step := range back {
		t.Run(fmt.Sprint("back/", step), func(t *testing.T) { kill(t, step, true) })
	}
}

// A move that was interrupted and then ended elsewhere leaves its first copy incomplete for good.
func TestMove_EndsElsewhere(t *testing.T) {
	storetest.SkipOnPostgres(t)
	racetest.Skip(t)
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	db := filled(t)
	dir := storetest.Dir(db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	keys := ident.KeyFiles{Dir: dir}
	first, second := pgtest.NewDatabase(t), pgtest.NewDatabase(t)
	if !(killedMove{Dir: dir, To: first, Step: 30}).run(t) {
		t.Fatal("it was not killed")
	}
	awaitAlone(t, first)
	if _, err := (store.Move{Keys: keys, To: second, Log: log}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := (store.Move{Keys: keys, To: first, Log: log}).Run(t.Context()); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
	if startsOn(t, dir, first) || !startsOn(t, dir, second) {
		t.Error("the first copy starts, or the second does not")
	}
	one, other := t.TempDir(), t.TempDir()
	if !(killedMove{Dir: dir, Database: second, ToDir: one, Step: 5}).run(t) { // placed, and not moved
		t.Fatal("it was not killed")
	}
	awaitAlone(t, second)
	back := store.Move{Keys: keys, Database: second, ToDir: other, Log: log}
	if _, err := back.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	back.ToDir = one
	if _, err := back.Run(t.Context()); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
	if startsOn(t, one, "") || !startsOn(t, other, "") {
		t.Error("the first copy starts, or the second does not")
	}
}

// An incomplete copy of one move is no obstacle for another, and a used database is.
func TestMove_Refuses(t *testing.T) {
	storetest.SkipOnPostgres(t)
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	used := pgtest.NewDatabase(t)
	dir := t.TempDir()
	if _, err := ident.CreateKeys(dir); err != nil {
		t.Fatal(err)
	}
	server := storetest.OpenOn(t, dir, used)
	if _, err := server.ClaimPortal(t.Context(), bytes.Repeat([]byte{1}, 32), ""); err != nil {
		t.Fatal(err)
	}
	db := storetest.New(t)
	m := store.Move{Keys: ident.KeyFiles{Dir: storetest.Dir(db)}, To: used, Log: log}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Run(t.Context()); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "Another portal process") {
		t.Error(err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Run(t.Context()); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "holds a portal already") {
		t.Error(err)
	}
	if err := m.Cancel(t.Context()); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
	for _, to := range []string{"", "mysql://x", "sqlite:", "/tmp/x"} {
		if _, _, err := store.ParseTarget(to); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", to, err)
		}
	}
	if _, err := (store.Move{Keys: m.Keys, ToDir: t.TempDir(), Log: log}).Run(t.Context()); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
}

package postgres

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"agentsite/internal/fault"
	"agentsite/internal/testing/pgtest"
	"agentsite/store/engine"
)

// cutter passes connections on to a server, and cuts one at a chosen message of the client.
type cutter struct {
	listener net.Listener
	server   string

	mu    sync.Mutex // guards the fields below
	left  int        // messages until the cut; 0 for none
	after bool       // the message reaches the server, and its answer is lost
}

func newCutter(t *testing.T, server string) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{listener: l, server: server}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { c.pass(client) })
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return c
}

// arm makes the n-th message from now the last of its connection.
func (c *cutter) arm(n int, after bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.after = n, after
}

// armed reports whether the cut has not happened.
func (c *cutter) armed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left > 0
}

func (c *cutter) cut() (now, after bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left > 0 {
		c.left--
		now = c.left == 0
	}
	return now, c.after
}

func (c *cutter) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", c.server)
	if err != nil {
		return
	}
	defer server.Close()
	lost := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer client.Close()
		b := make([]byte, 64<<10)
		for {
			n, err := server.Read(b)
			select {
			case <-lost:
				return // the server has answered
			default:
			}
			if err != nil {
				return
			}
			if _, err := client.Write(b[:n]); err != nil {
				return
			}
		}
	}()
	b := make([]byte, 64<<10)
	for {
		n, err := client.Read(b)
		if err != nil {
			break
		}
		now, after := c.cut()
		if now && !after {
			break
		}
		if now {
			close(lost)
		}
		if _, err := server.Write(b[:n]); err != nil {
			break
		}
		if now {
			<-ended
			return
		}
	}
	server.Close()
	<-ended
}

// A write is stored exactly once at whichever message its connection is lost, before or after the server got
// the message.
func TestWrite_SurvivesALostConnection(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	server := fmt.Sprintf("%s:%d", cfg.Host, cfg.Port)
	c := newCutter(t, server)
	d, err := Open(t.Context(), strings.Replace(url, server, c.listener.Addr().String(), 1), Portal(),
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const count = `INSERT INTO counters (name, value) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = counters.value + 1`
	for _, after := range []bool{false, true} {
		steps := 0
		for n := 1; ; n++ {
			name := fmt.Sprintf("w%d-%v", n, after)
			c.arm(n, after)
			err := d.Write(t.Context(), func(w engine.Tx) error {
				if _, err := w.Exec(count, name); err != nil {
					return err
				}
				var value int64
				if err := w.Get(&value, `SELECT value FROM counters WHERE name = ?`, name); err != nil {
					return err
				}
				return w.Send(count, name+" too")
			})
			if c.armed() {
				if err != nil {
					t.Error(err)
				}
				break
			}
			steps++
			if err != nil {
				t.Errorf("message %d, after %v: %v", n, after, err)
				continue
			}
			for _, name := range []string{name, name + " too"} {
				var value int64
				if err := d.Get(t.Context(), &value, `SELECT value FROM counters WHERE name = ?`, name); err != nil || value != 1 {
					t.Errorf("message %d, after %v: %s was stored %d times, %v", n, after, name, value, err)
				}
			}
		}
		if steps < 4 { // begin, insert, select, the statement of Send, commit
			t.Errorf("only %d messages were cut", steps)
		}
		t.Logf("%d messages", steps)
	}
}

// Errors of the server become faults with advice, and nothing of the write stays.
func TestWrite_ExplainsErrors(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), pgtest.NewDatabase(t), Portal(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	for code, c := range map[string]struct {
		kind  fault.Kind
		full  bool
		again bool // the write runs again
	}{
		diskFull:           {fault.Unavailable, true, false},
		queryCanceled:      {fault.Unavailable, false, false},
		lockNotAvailable:   {fault.Unavailable, false, false},
		tooManyConnections: {fault.Unavailable, false, false},
		serialization:      {fault.Unavailable, false, true},
		deadlock:           {fault.Unavailable, false, true},
		"XX001":            {fault.Internal, false, false},
	} {
		runs := 0
		err := d.Write(t.Context(), func(w engine.Tx) error {
			runs++
			if _, err := w.Exec(`INSERT INTO counters (name, value) VALUES ('kept', 1)`); err != nil {
				return err
			}
			_, err := w.Exec(`DO $do$ BEGIN RAISE EXCEPTION USING ERRCODE = '` + code + `'; END $do$`)
			return err
		})
		f := fault.As(err)
		if f.Kind != c.kind || f.Full != c.full || (runs > 1) != c.again {
			t.Errorf("%s: %v, full %v, %d runs", code, err, f.Full, runs)
		}
	}
	var n int
	if err := d.Get(t.Context(), &n, `SELECT COUNT(*) FROM counters WHERE name = 'kept'`); err != nil || n > 0 {
		t.Errorf("%d rows of writes that failed, %v", n, err)
	}
	// A statement beyond its time ends, and the next write works.
	err = d.Write(t.Context(), func(w engine.Tx) error {
		if _, err := w.Exec(`SET LOCAL statement_timeout = 1`); err != nil {
			return err
		}
		_, err := w.Exec(`DO $do$ BEGIN PERFORM pg_sleep(60); END $do$`)
		return err
	})
	if !fault.Is(err, fault.Unavailable) {
		t.Error(err)
	}
	if err := d.Write(t.Context(), func(engine.Tx) error { return nil }); err != nil {
		t.Error(err)
	}
}

// A read succeeds at whichever message its connection is lost, before or after the server got the message.
func TestReads_OutliveTheirConnections(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	server := fmt.Sprintf("%s:%d", cfg.Host, cfg.Port)
	c := newCutter(t, server)
	d, err := Open(t.Context(), strings.Replace(url, server, c.listener.Addr().String(), 1), Portal(),
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for name, read := range map[string]func() error{
		"one": func() error { var n int; return d.Get(t.Context(), &n, `SELECT 1`) },
		"many": func() error {
			var list []int
			err := d.List(t.Context(), &list, `SELECT * FROM generate_series(1, 20000)`)
			if err == nil && len(list) != 20000 {
				err = fmt.Errorf("%d rows", len(list))
			}
			return err
		},
		"rows": func() error {
			rows, err := d.Rows(t.Context(), `SELECT 1`)
			if err == nil {
				err = rows.Close()
			}
			return err
		},
	} {
		for _, after := range []bool{false, true} {
			cuts := 0
			for n := 1; ; n++ {
				c.arm(n, after)
				err := read()
				over := c.armed()
				c.arm(0, false)
				if err != nil {
					t.Errorf("%s, cut at message %d, %v: %v", name, n, after, err)
				}
				if over {
					break
				}
				cuts++
			}
			if cuts == 0 {
				t.Errorf("%s was never cut", name)
			}
		}
	}
}

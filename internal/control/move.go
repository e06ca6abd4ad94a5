package control

import (
	"context"
	"io"
	"os"

	"agentsite/internal/fault"
	"agentsite/internal/settings"
	"agentsite/store"
)

// MoveReport has the numbers of copied and compared rows of a move.
type MoveReport = store.MoveReport

// FileTarget is the form of the target of a move to a file.
const FileTarget = store.FileTarget + "DIR"

// MoveDatabase moves the portal to the database that to names, postgres://… or a data folder, while no
// portal runs. After an interruption, calling it again goes on. step is called with the name of each step.
func MoveDatabase(ctx context.Context, cfg settings.Config, to string, stderr io.Writer,
	step func(name string)) (r MoveReport, err error) {
	err = withMove(ctx, cfg, to, stderr, func(m store.Move) error {
		m.Step = step
		r, err = m.Run(ctx)
		return err
	})
	return r, err
}

// CancelMove takes a move back that has not ended, so that the portal starts on its old database again. to
// names the copy, if the old database was marked as moved already; otherwise it may be "".
func CancelMove(ctx context.Context, cfg settings.Config, to string, stderr io.Writer) error {
	return withMove(ctx, cfg, to, stderr, func(m store.Move) error { return m.Cancel(ctx) })
}

// withMove calls fn while it holds the locks of the data folders.
func withMove(ctx context.Context, cfg settings.Config, to string, stderr io.Writer, fn func(store.Move) error) error {
	set, err := cfg.Parse()
	if err != nil {
		return err
	}
	if c, ok := dialControl(ctx, cfg.Data); ok {
		c.Close()
		return fault.New(fault.Conflict, "The portal runs on %s. Stop it first: nothing may change while its database is "+
			"moved.", cfg.Data)
	}
	if cfg.Database == to {
		cfg.Database = "" // the setting of the portal after the move, which starts at the file
	}
	if !dataExists(cfg) {
		return errNoPortal(cfg.Data)
	}
	m := store.Move{Keys: keyFiles(cfg), Database: cfg.Database, Log: set.NewLogger(stderr)}
	if to != "" {
		if m.To, m.ToDir, err = store.ParseTarget(to); err != nil {
			return err
		}
	}
	lock, err := LockData(cfg.Data)
	if err != nil {
		return err
	}
	defer lock.Release()
	if m.ToDir != "" && !isSame(cfg.Data, m.ToDir) {
		other, err := LockData(m.ToDir)
		if err != nil {
			return err
		}
		defer other.Release()
	}
	return fn(m)
}

// isSame reports whether two paths name one folder.
func isSame(a, b string) bool {
	one, err := os.Stat(a)
	other, missing := os.Stat(b)
	return err == nil && missing == nil && os.SameFile(one, other)
}

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"agentsite/internal/app"
	"agentsite/internal/control"
	"agentsite/internal/personal"
	"agentsite/internal/record"
)

// runServe runs the portal. The first SIGINT or SIGTERM finishes requests under way and stops; the
// second ends the process.
func runServe(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("serve", args, 0, 0); err != nil {
		return err
	}
	if err := fs.cfg.Validate(); err != nil {
		return usagef("%s", err)
	}
	fs.cfg.Given = fs.givenSettings()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	// Restore the default action after the first signal, so that the second one ends the process.
	context.AfterFunc(ctx, stop)
	p, err := app.Open(ctx, fs.cfg, e.stderr)
	if err != nil {
		return err
	}
	return p.Run(ctx, e.stdout, e.stderr)
}

// withControl calls f with the operations on the data folder, whether its portal runs or not. create
// allows a folder without a portal.
func withControl(ctx context.Context, e env, fs *flags, create bool, f func(control.Control) error) error {
	c, err := control.Open(ctx, fs.cfg, create, e.stderr)
	if err != nil {
		return err
	}
	return errors.Join(f(c), c.Close())
}

// withReader is withControl for an operation that changes nothing and works on folders that cannot be
// written.
func withReader(ctx context.Context, e env, fs *flags, f func(control.Control) error) error {
	c, err := control.OpenToRead(ctx, fs.cfg, e.stderr)
	if err != nil {
		return err
	}
	return errors.Join(f(c), c.Close())
}

func runUserAdd(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("user add", args, 1, 1); err != nil {
		return err
	}
	if !fs.stdin && isTerminal(e.stdin) {
		return usagef("give the password on stdin, one line, with --password-stdin")
	}
	password, err := readLine(e.stdin)
	if err != nil {
		return fmt.Errorf("read the password from stdin: %w", err)
	}
	return withControl(ctx, e, fs, true, func(c control.Control) error {
		if err := c.AddUser(ctx, args[0], password, fs.admin); err != nil {
			return err
		}
		fmt.Fprintf(e.stdout, "added %s\n", strings.ToLower(args[0]))
		return nil
	})
}

// readLine reads the first line of a stream, without its line break.
func readLine(r io.Reader) (string, error) {
	s, err := bufio.NewReader(io.LimitReader(r, 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimRight(s, "\r\n"), nil
}

func runUserList(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("user list", args, 0, 0); err != nil {
		return err
	}
	return withReader(ctx, e, fs, func(c control.Control) error {
		users, err := c.Users(ctx)
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "NAME\tROLE\tSTATE\tCREATED")
		for _, u := range users {
			role, state := "person", "active"
			if u.Operator {
				role = "operator"
			}
			if u.Disabled {
				state = "disabled"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", u.Name, role, state, u.Created.Format("2006-01-02"))
		}
		return w.Flush()
	})
}

func runUserDisable(ctx context.Context, e env, fs *flags, args []string) error {
	return setDisabled(ctx, e, fs, "user disable", args, true)
}

func runUserEnable(ctx context.Context, e env, fs *flags, args []string) error {
	return setDisabled(ctx, e, fs, "user enable", args, false)
}

func setDisabled(ctx context.Context, e env, fs *flags, name string, args []string, disabled bool) error {
	if err := checkArgs(name, args, 1, 1); err != nil {
		return err
	}
	return withControl(ctx, e, fs, false, func(c control.Control) error {
		if err := c.SetUserDisabled(ctx, args[0], disabled); err != nil {
			return err
		}
		state := "enabled"
		if disabled {
			state = "disabled"
		}
		fmt.Fprintf(e.stdout, "%s %s\n", state, args[0])
		users, err := c.Users(ctx)
		if err != nil {
			return err
		}
		if disabled && !slices.ContainsFunc(users, func(u control.User) bool { return u.Operator && !u.Disabled }) {
			fmt.Fprintln(e.stderr, "agentsite: no operator is left; the next start prints a link that makes one")
		}
		return nil
	})
}

// runUserRemove erases an account. Without --yes the name must be given once more, on stdin.
func runUserRemove(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("user remove", args, 1, 1); err != nil {
		return err
	}
	if !fs.yes {
		fmt.Fprintf(e.stderr, "This erases %s with all its data and agents, for good. Type the name to go on: ",
			record.CleanLine(args[0]))
		if answer, err := readLine(e.stdin); err != nil || strings.TrimSpace(answer) != args[0] {
			return usagef("nothing was removed; type the name, or give --yes")
		}
	}
	return withControl(ctx, e, fs, false, func(c control.Control) error {
		messages := personal.KeepMessages
		if fs.deleteMessages {
			messages = personal.DeleteMessages
		}
		r, err := c.RemoveUser(ctx, args[0], messages)
		if err != nil {
			return err
		}
		fmt.Fprintf(e.stdout, "removed %s, %d conversations, %d agents\n", r.Name, r.Conversations, r.Agents)
		fmt.Fprintln(e.stdout, "Backups made before still hold the account, on PostgreSQL also base backups and archived logs (WAL):")
		fmt.Fprintln(e.stdout, "delete them, or repeat the removal after a restore.")
		for _, name := range r.Copies {
			fmt.Fprintf(e.stdout, "  %s in the data folder\n", name)
		}
		return nil
	})
}

// runUserExport writes everything that the portal holds about an account to a file.
func runUserExport(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("user export", args, 2, 2); err != nil {
		return err
	}
	return withControl(ctx, e, fs, false, func(c control.Control) error {
		size, err := control.ExportUserTo(ctx, c, args[0], args[1])
		if err != nil {
			return err
		}
		fmt.Fprintf(e.stdout, "exported %s to %s, %d bytes; it holds what the person wrote in private, so keep it secret\n",
			record.CleanLine(args[0]), args[1], size)
		return nil
	})
}

func runUserReset(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("user reset", args, 1, 1); err != nil {
		return err
	}
	return withControl(ctx, e, fs, false, func(c control.Control) error {
		link, err := c.ResetLink(ctx, args[0])
		if err != nil {
			return err
		}
		fmt.Fprintln(e.stdout, link)
		return nil
	})
}

func runTokenAdd(ctx context.Context, e env, fs *flags, args []string) error {
	// Arguments are further scopes, so that `--scope a b` works.
	fs.scopes = append(fs.scopes, args...)
	return withControl(ctx, e, fs, false, func(c control.Control) error {
		if fs.user == "" {
			var err error
			if fs.user, err = onlyOperator(ctx, c); err != nil {
				return err
			}
		}
		token, err := c.AddToken(ctx, fs.user, fs.label, fs.scopes, fs.expires.toDuration())
		if err != nil {
			return err
		}
		fmt.Fprintln(e.stdout, token)
		return nil
	})
}

// onlyOperator returns the name of the only enabled operator account. It is an error if there is none,
// or more than one.
func onlyOperator(ctx context.Context, c control.Control) (string, error) {
	users, err := c.Users(ctx)
	if err != nil {
		return "", err
	}
	var names []string
	for _, u := range users {
		if u.Operator && !u.Disabled {
			names = append(names, u.Name)
		}
	}
	switch len(names) {
	case 0:
		return "", usagef("this portal has no operator yet: open the link that it printed at its start, or name " +
			"an account with --user NAME")
	case 1:
		return names[0], nil
	}
	return "", usagef("name the account with --user NAME; operators are %s", strings.Join(names, ", "))
}

// passphraseOf returns the passphrase in the file of --passphrase-file, or "" if the flag is not given.
func passphraseOf(fs *flags) (string, error) {
	if fs.passphrase == "" {
		return "", nil
	}
	f, err := os.Open(fs.passphrase)
	if err != nil {
		return "", fmt.Errorf("read the passphrase: %w", err)
	}
	defer f.Close()
	s, err := readLine(f)
	if err == nil && s == "" {
		err = errors.New("its first line is empty")
	}
	if err != nil {
		return "", fmt.Errorf("read the passphrase from %s: %w", fs.passphrase, err)
	}
	return s, nil
}

func runBackup(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("backup", args, 1, 1); err != nil {
		return err
	}
	passphrase, err := passphraseOf(fs)
	if err != nil {
		return err
	}
	return withReader(ctx, e, fs, func(c control.Control) error {
		size, err := control.BackupTo(ctx, c, args[0], passphrase)
		if err != nil {
			return err
		}
		fmt.Fprintf(e.stdout, "backup %s, %d bytes, verified; it holds the portal's keys, so keep it secret\n", args[0],
			size)
		return nil
	})
}

func runRestore(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("restore", args, 1, 1); err != nil {
		return err
	}
	passphrase, err := passphraseOf(fs)
	if err != nil {
		return err
	}
	f, err := os.Open(args[0])
	if err != nil {
		return fmt.Errorf("open the backup: %w", err)
	}
	defer f.Close()
	r, err := control.RestoreBackup(ctx, f, fs.cfg, passphrase)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "restored into %s: %d accounts, %d agents, %d conversations, %d messages\n", fs.cfg.Data,
		r.Accounts, r.Agents, r.Conversations, r.Messages)
	return nil
}

func runVerify(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("verify", args, 0, 1); err != nil {
		return err
	}
	var what string
	r, err := func() (r control.Report, err error) {
		if len(args) == 0 {
			what = fs.cfg.Data
			return control.VerifyData(ctx, fs.cfg)
		}
		what = args[0]
		passphrase, err := passphraseOf(fs)
		if err != nil {
			return r, err
		}
		f, err := os.Open(args[0])
		if err != nil {
			return r, fmt.Errorf("open the backup: %w", err)
		}
		defer f.Close()
		return control.VerifyBackup(ctx, f, passphrase)
	}()
	for _, m := range r.Replica.Mended {
		fmt.Fprintf(e.stderr, "repaired: %s\n", m)
	}
	if n := r.Replica.More; n > 0 {
		fmt.Fprintf(e.stderr, "repaired: %d more\n", n)
	}
	if len(r.Faults) > 0 {
		for _, f := range r.Faults {
			fmt.Fprintf(e.stderr, "fault: %s\n", f)
		}
		return fmt.Errorf("%s is damaged: %d faults; restore a backup with `agentsite restore FILE`", what,
			len(r.Faults))
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "%s is whole: %d accounts, %d agents, %d conversations, %d messages, %d tasks\n", what,
		r.Accounts, r.Agents, r.Conversations, r.Messages, r.Tasks)
	if r.Replica.Portals > 0 {
		fmt.Fprintf(e.stdout, "its replica holds %d records of %d portals\n", r.Replica.Records, r.Replica.Portals)
	}
	return nil
}

func runVersion(_ context.Context, e env, _ *flags, args []string) error {
	if err := checkArgs("version", args, 0, 0); err != nil {
		return err
	}
	revision := app.Revision()
	if revision == "" {
		revision = "unknown"
	}
	fmt.Fprintf(e.stdout, "agentsite %s\nrevision %s\nschema %d\nprotocols API v1, A2A 1.0 and 0.3, OpenAI chat "+
		"completions, ARD 0.91, MCP 2026-07-28 to 2024-11-05, MCP registry 0.1\n%s %s/%s\n",
		app.Release(), revision, control.SchemaVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

func runMoveDatabase(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("migrate-database", args, 0, 0); err != nil {
		return err
	}
	if fs.cancel {
		if err := control.CancelMove(ctx, fs.cfg, fs.to, e.stderr); err != nil {
			return err
		}
		fmt.Fprintln(e.stdout, "the move is canceled: start the portal as before")
		return nil
	}
	if fs.to == "" {
		return usagef("migrate-database needs --to: postgres://… or %s", control.FileTarget)
	}
	r, err := control.MoveDatabase(ctx, fs.cfg, fs.to, e.stderr, func(string) {})
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "moved to the %s: %d rows of %d tables, %d conversations and %d files compared\n", r.Other, r.Rows,
		r.Tables, r.Heads, r.Files)
	if fs.cfg.Database == "" {
		fmt.Fprintln(e.stdout, "start the portal with --database from now on; the old database does not start again")
	} else {
		fmt.Fprintln(e.stdout, "start the portal without --database from now on; the old database does not start again")
	}
	return nil
}

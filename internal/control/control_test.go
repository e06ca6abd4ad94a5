package control_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/internal/app"
	"agentsite/internal/control"
	"agentsite/internal/fault"
	"agentsite/internal/personal"
	"agentsite/internal/settings"
	"agentsite/internal/testing/apptest"
)

// told is what a session of commands says, secrets and times masked; it makes
// a backup with each passphrase and one without.
func told(t *testing.T, c control.Control, passphrases ...string) []string {
	t.Helper()
	ctx := t.Context()
	var out []string
	say := func(what string, got string, err error) {
		if err != nil {
			f := fault.As(err)
			got = "error " + string(f.Kind) + " " + f.Safe
		}
		for _, mask := range []string{`ags[sli]?_[-_A-Za-z0-9]{43}`} {
			got = regexp.MustCompile(mask).ReplaceAllString(got, "SECRET")
		}
		out = append(out, what+": "+got)
	}
	users := func() (string, error) {
		list, err := c.Users(ctx)
		var b strings.Builder
		for _, u := range list {
			b.WriteString(u.Name)
			if u.Operator {
				b.WriteString("+")
			}
			if u.Disabled {
				b.WriteString("!")
			}
			if u.Created.Year() < 2026 || u.Created.Location() != time.UTC {
				b.WriteString("?")
			}
			b.WriteString(" ")
		}
		return b.String(), err
	}
	list, err := c.Users(ctx)
	if err != nil || list == nil || len(list) != 0 {
		t.Errorf("nobody is %v %v", list, err)
	}
	say("add", "", c.AddUser(ctx, " Ada ", apptest.Password, false))
	say("add operator", "", c.AddUser(ctx, "boss", apptest.Password, true))
	say("add again", "", c.AddUser(ctx, "ada", apptest.Password, false))
	say("add reserved", "", c.AddUser(ctx, "admin", "short", false))
	say("disable", "", c.SetUserDisabled(ctx, "ADA", true))
	say("disable nobody", "", c.SetUserDisabled(ctx, "nobody", true))
	got, err := users()
	say("list", got, err)
	got, err = c.AddToken(ctx, "ada", "x", nil, time.Hour)
	say("token of a disabled account", got, err)
	say("enable", "", c.SetUserDisabled(ctx, "ada", false))
	got, err = c.AddToken(ctx, "ada", "x", []string{"chat:read", "tasks"}, time.Hour)
	say("token", got, err)
	got, err = c.AddToken(ctx, "ada", strings.Repeat("x", 200), []string{"fly"}, -1)
	say("bad token", got, err)
	got, err = c.AddToken(ctx, "nobody\x1b[31m", "x", nil, 0)
	say("token of nobody", got, err)
	got, err = c.ResetLink(ctx, "ada")
	say("reset", got, err)
	got, err = c.ResetLink(ctx, "nobody")
	say("reset nobody", got, err)
	say("add eve", "", c.AddUser(ctx, "eve", apptest.Password, false))
	for _, name := range []string{"Eve", "eve", "nobody", "boss"} {
		r, err := c.RemoveUser(ctx, name, personal.KeepMessages)
		say("remove "+name, r.Name, err)
	}
	say("add eve again", "", c.AddUser(ctx, "eve", apptest.Password, false))
	say("enable eve", "", c.SetUserDisabled(ctx, "eve", false))
	got, err = users()
	say("list", got, err)
	r, err := c.Verify(ctx)
	if err != nil || r.Accounts != 2 || len(r.Faults) != 0 {
		t.Errorf("%+v %v", r, err)
	}
	for _, passphrase := range append(passphrases, "") {
		var b bytes.Buffer
		if err := c.Backup(ctx, &b, passphrase); err != nil {
			t.Fatal(err)
		}
		if r, err := control.VerifyBackup(ctx, &b, passphrase); err != nil || r.Accounts != 2 {
			t.Errorf("%+v %v", r, err)
		}
	}
	return out
}

func TestControl_SameThroughTheSocketAsOnTheFolder(t *testing.T) {
	t.Parallel()
	const url = "http://localhost:4711"
	p := apptest.Start(t, func(c *settings.Config) { c.URL = url })
	c := p.OpenControl(t)
	defer c.Close()
	running := told(t, c, "open sesame")

	dir := t.TempDir()
	if got, err := portalURL(t, dir, "127.0.0.1:0", url); err != nil || got != url {
		t.Fatal(got, err)
	}
	cfg := settings.Defaults()
	cfg.Data, cfg.CheapHashes = dir, true
	d, err := control.Open(t.Context(), cfg, false, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	resting := told(t, d)
	if !slices.Equal(running, resting) {
		t.Errorf("running: %s\nresting: %s", strings.Join(running, "\n"), strings.Join(resting, "\n"))
	}
	if all := strings.Join(resting, "\n"); !strings.Contains(all, "reset: "+url+"/reset?link=SECRET") || !strings.Contains(all, "list: ada! boss+ \n") {
		t.Error(all)
	}
}

func TestControl_OnlyForWhoOwnsTheFolder(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	st, err := os.Stat(filepath.Join(p.Dir, "control.sock"))
	if err != nil || st.Mode().Perm() != 0o600 || st.Mode().Type() != os.ModeSocket {
		t.Errorf("%v %v", st.Mode(), err)
	}
}

func TestControl_ReachesAFolderWithALongPath(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long-", 20), strings.Repeat("path-", 20))
	p := apptest.Start(t, func(c *settings.Config) { c.Data = dir })
	for range 20 { // each gives back what it opened
		c := p.OpenControl(t)
		if _, err := c.Users(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if st, err := os.Stat(filepath.Join(dir, "control.sock")); err != nil || st.Mode().Perm() != 0o600 {
		t.Error(st, err)
	}
}

func TestControl_WhereThereIsNoPortal(t *testing.T) {
	t.Parallel()
	cfg := settings.Defaults()
	cfg.Data = filepath.Join(t.TempDir(), "d")
	if _, err := control.Open(t.Context(), cfg, false, io.Discard); err == nil || !strings.Contains(err.Error(), "there is no portal in") {
		t.Error(err)
	}
	if _, err := control.VerifyData(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "there is no portal in") {
		t.Error(err)
	}
	if _, err := os.Stat(cfg.Data); !os.IsNotExist(err) {
		t.Error("asking made a folder")
	}
	c, err := control.Open(t.Context(), cfg, true, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddUser(t.Context(), "calc", apptest.Password, true); err != nil { // the name of a built-in agent
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	p := apptest.Start(t, func(c *settings.Config) { c.Data = cfg.Data })
	if p.Setup != "" {
		t.Error("a portal with an operator offers a link")
	}
	p.LogIn(t, "calc").Must(http.MethodGet, "/admin", nil, http.StatusOK)
}

func TestControl_WaitsForAPortalThatIsStarting(t *testing.T) {
	t.Parallel()
	cfg := settings.Defaults()
	cfg.Data, cfg.Listen = t.TempDir(), "127.0.0.1:0"
	p, err := app.Open(t.Context(), cfg, io.Discard) // holds the lock, has no socket yet
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		c, err := control.Open(t.Context(), cfg, false, io.Discard)
		if err == nil {
			_, err = c.Users(t.Context())
			c.Close()
		}
		got <- err
	}()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, io.Discard, io.Discard) }()
	if err := <-got; err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(cfg.Data, "control.sock")); !os.IsNotExist(err) {
		t.Error("the socket stays:", err)
	}
	// Closing what has ended leaves its successor alone.
	q := apptest.Start(t, func(c *settings.Config) { c.Data = cfg.Data })
	p.Close()
	c := q.OpenControl(t)
	defer c.Close()
	if _, err := c.Users(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(cfg.Data, "control.sock")); err != nil {
		t.Error(err)
	}
}

func TestControl_StaleSocketOfAKilledPortal(t *testing.T) {
	t.Parallel()
	cfg := settings.Defaults()
	cfg.Data = t.TempDir()
	if _, err := portalURL(t, cfg.Data, "127.0.0.1:0", ""); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cfg.Data, "control.sock"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := control.Open(t.Context(), cfg, false, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	p := apptest.Start(t, func(c *settings.Config) { c.Data = cfg.Data })
	if st, err := os.Stat(filepath.Join(p.Dir, "control.sock")); err != nil || st.Mode().Perm() != 0o600 || st.Mode().Type() != os.ModeSocket {
		t.Error(st, err)
	}
}

// portalURL opens a portal on the folder for a moment.
func portalURL(t *testing.T, dir, listen, url string) (string, error) {
	t.Helper()
	cfg := app.Defaults()
	cfg.Data, cfg.Listen, cfg.URL = dir, listen, url
	p, err := app.Open(t.Context(), cfg, io.Discard)
	if err != nil {
		return "", err
	}
	defer p.Close()
	return p.URL(), nil
}

package app_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/control"
	"agentsite/internal/ident"
)

// The commands of keys on a folder whose portal does not run.
func TestKeys_RootKeyGoesAwayAndSigns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := portalURL(t, dir, "127.0.0.1:0", ""); err != nil {
		t.Fatal(err)
	}
	cfg := app.Defaults()
	cfg.Data = dir
	ctx := t.Context()
	c, err := control.Open(ctx, cfg, false, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	first, err := c.Keys(ctx)
	if err != nil || first.Away || len(first.Keys) != 1 || !first.Keys[0].Signs || first.Due != "" {
		t.Fatalf("%+v %v", first, err)
	}
	root := filepath.Join(t.TempDir(), "root.key")
	if err := c.DetachRoot(ctx, root); err != nil {
		t.Fatal(err)
	}
	id, err := c.RotateKeys(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := c.Keys(ctx); err != nil || !s.Away || s.Due == "" || len(s.Keys) != 2 || s.Keys[1].Listed {
		t.Errorf("%+v %v", s, err)
	}
	if err := control.SignCard(ctx, c, filepath.Join(dir, "seal.key")); err == nil {
		t.Error("another key signed the card")
	}
	if err := control.SignCard(ctx, c, root); err != nil {
		t.Fatal(err)
	}
	if s, err := c.Keys(ctx); err != nil || s.Due != "" || !s.Keys[1].Listed || string(s.Keys[1].ID) != id || s.Portal != first.Portal {
		t.Errorf("%+v %v", s, err)
	}
	if err := c.RevokeKey(ctx, "nobody"); err == nil {
		t.Error("a key that is not there was revoked")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	// The portal runs without its root key.
	if _, err := portalURL(t, dir, "127.0.0.1:0", ""); err != nil {
		t.Error(err)
	}
}

// A portal with its root key outside the data folder, while it does not run: commands, backup, check.
func TestKeyFile_ServesAllCommands(t *testing.T) {
	t.Parallel()
	cfg, ctx := app.Defaults(), t.Context()
	cfg.Data, cfg.Listen, cfg.KeyFile = t.TempDir(), "127.0.0.1:0", filepath.Join(t.TempDir(), "identity")
	p, err := app.Open(ctx, cfg, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	c, err := control.Open(ctx, cfg, false, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if s, err := c.Keys(ctx); err != nil || s.Away {
		t.Errorf("%+v %v", s, err)
	}
	var backup bytes.Buffer
	if err := c.Backup(ctx, &backup, ""); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := control.VerifyData(ctx, cfg); err != nil || !r.OK() {
		t.Errorf("%v %v", r.Faults, err)
	}
	to := filepath.Join(t.TempDir(), "restored")
	if r, err := control.RestoreBackup(ctx, &backup, app.Config{Data: to}, ""); err != nil || !r.OK() {
		t.Fatalf("%v %v", r.Faults, err)
	}
	want, err := os.ReadFile(cfg.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(to, ident.PortalKeyFile)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the backup has another root key: %v", err)
	}
	if err := os.Remove(cfg.KeyFile); err != nil {
		t.Fatal(err)
	}
	if r, err := control.VerifyData(ctx, cfg); err != nil || r.OK() {
		t.Errorf("a missing root key is not seen: %v", err)
	}
	if p, err := app.Open(ctx, cfg, io.Discard); err == nil {
		p.Close()
		t.Error("the portal started with a new identity")
	}
}

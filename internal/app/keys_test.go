package app_test

import (
	"io"
	"path/filepath"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/control"
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

package app_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/control"
	"agentsite/internal/testing/apptest"
)

func TestConfig_NamesTheSettingThatIsWrong(t *testing.T) {
	t.Parallel()
	set := func(edit func(*app.Config)) app.Config {
		c := app.Defaults()
		edit(&c)
		return c
	}
	for _, c := range []struct {
		says string // beginning of the error; empty: fine
		edit func(*app.Config)
	}{
		{"", func(c *app.Config) {}},
		{"", func(c *app.Config) { *c = app.Config{Listen: "localhost:0", Data: "d"} }},
		{"", func(c *app.Config) { c.Listen = "[::1]:8080" }},
		{"", func(c *app.Config) { c.Listen = "127.9.9.9:0" }},
		{"", func(c *app.Config) { c.Listen, c.URL = ":8080", "https://agents.example.org/" }},
		{"", func(c *app.Config) { c.URL = "HTTP://LocalHost:8080" }},
		{"", func(c *app.Config) {
			c.AllowCIDR, c.TrustedProxies = " 10.0.0.0/8 ,, fd00::/8,192.168.1.7 ", "127.0.0.1"
		}},
		{"", func(c *app.Config) { c.SMTP, c.MailFrom = "smtp://x.example", "a@x.example" }},
		{"", func(c *app.Config) { c.Accounts, c.Guests, c.Log, c.LogLevel = "closed", "off", "json", "WARN" }},

		{"", func(c *app.Config) { c.Tier = "summary" }},
		{"--tier leaf: this version cannot be that yet", func(c *app.Config) { c.Tier = "leaf" }},
		{"", func(c *app.Config) { c.Tier = "index" }},
		{"--tier \"all\": use auto, replica, summary or index", func(c *app.Config) { c.Tier = "all" }},
		{"--listen \"8080\"", func(c *app.Config) { c.Listen = "8080" }},
		{"--listen \"\"", func(c *app.Config) { c.Listen = "" }},
		{"--listen 0.0.0.0:8080 is reached from other machines", func(c *app.Config) { c.Listen = "0.0.0.0:8080" }},
		{"--listen :8080 is reached", func(c *app.Config) { c.Listen = ":8080" }},
		{"--listen [::]:80 is reached", func(c *app.Config) { c.Listen = "[::]:80" }},
		{"--listen 127.0.0.1.nip.io:80 is reached", func(c *app.Config) { c.Listen = "127.0.0.1.nip.io:80" }},
		{"--listen notlocalhost:80 is reached", func(c *app.Config) { c.Listen = "notlocalhost:80" }},
		{"--url", func(c *app.Config) { c.URL = "https://x.example/portal" }},
		{"--url", func(c *app.Config) { c.URL = "https://x.example?a=b" }},
		{"--url", func(c *app.Config) { c.URL = "https://x.example?" }},
		{"--url", func(c *app.Config) { c.URL = "https://x.example/#top" }},
		{"--url", func(c *app.Config) { c.URL = "https://me@x.example" }},
		{"--url", func(c *app.Config) { c.URL = "x.example" }},
		{"--url", func(c *app.Config) { c.URL = "ftp://x.example" }},
		{"--url", func(c *app.Config) { c.URL = "https://" }},
		{"--url", func(c *app.Config) { c.URL = "https://:8443" }},
		{"--url", func(c *app.Config) { c.URL = "https://x.example:port" }},
		{"--url", func(c *app.Config) { c.URL = "https:x.example" }},
		{"--data", func(c *app.Config) { c.Data = "" }},
		{"--accounts", func(c *app.Config) { c.Accounts = "everybody" }},
		{"--guests", func(c *app.Config) { c.Guests = "maybe" }},
		{"--allow-cidr \"10.0.0.0/33\"", func(c *app.Config) { c.AllowCIDR = "10.0.0.0/8,10.0.0.0/33" }},
		{"--allow-cidr", func(c *app.Config) { c.AllowCIDR = "intranet" }},
		{"--trusted-proxies", func(c *app.Config) { c.TrustedProxies = "10.0.0.0/8 fd00::/8" }},
		{"--smtp", func(c *app.Config) { c.SMTP = "x.example:25" }},
		{"--mail-from", func(c *app.Config) { c.SMTP = "smtp://x.example" }},
		{"--log \"xml\"", func(c *app.Config) { c.Log = "xml" }},
		{"--log-level", func(c *app.Config) { c.LogLevel = "loud" }},
	} {
		err := set(c.edit).Validate()
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.HasPrefix(err.Error(), c.says)) {
			t.Errorf("%+v: %v, want %q", set(c.edit), err, c.says)
		}
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

func TestURL_RememberedOnlyWhenGiven(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := portalURL(t, dir, "127.0.0.1:0", "")
	if err != nil || !strings.HasPrefix(first, "http://127.0.0.1:") {
		t.Fatal(first, err)
	}
	// An address that followed from --listen is not remembered.
	if again, err := portalURL(t, dir, "localhost:0", ""); err != nil || !strings.HasPrefix(again, "http://localhost:") {
		t.Error(again, err)
	}
	for _, step := range []struct{ given, want string }{
		{"HTTPS://Agents.Example.org:443/", "https://agents.example.org"},
		{"", "https://agents.example.org"},
		{"http://x.example:80", "http://x.example"},
		{"https://x.example:8443", "https://x.example:8443"},
		{"https://x.example:", "https://x.example"},
		{"http://[::1]:80", "http://[::1]"},
		{"", "http://[::1]"},
	} {
		if got, err := portalURL(t, dir, "127.0.0.1:0", step.given); err != nil || got != step.want {
			t.Errorf("--url %q: %s %v, want %s", step.given, got, err, step.want)
		}
	}
	// What is refused is not remembered either.
	if _, err := portalURL(t, dir, "127.0.0.1:0", "https://x.example/path"); err == nil {
		t.Error("a path was taken")
	}
	if got, err := portalURL(t, dir, "127.0.0.1:0", ""); err != nil || got != "http://[::1]" {
		t.Error(got, err)
	}
}

func TestLock_ExcludesASecondPortal(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	cfg := app.Defaults()
	cfg.Data, cfg.Listen = dir, "127.0.0.1:0"
	p, err := app.Open(t.Context(), cfg, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := app.Open(t.Context(), cfg, io.Discard); err == nil || !strings.Contains(err.Error(), "another agentsite runs on this data folder") || !strings.Contains(err.Error(), "--data") {
		t.Error(err)
	}
	st, err := os.Stat(dir)
	if err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v %v", st.Mode(), err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if st, err := f.Info(); err != nil || st.Mode().Perm()&0o077 != 0 && f.Name() != "lock" && !f.IsDir() {
			t.Errorf("%s is %v %v", f.Name(), st.Mode(), err)
		}
	}
	p.Close()
	p.Close()
	q, err := app.Open(t.Context(), cfg, io.Discard)
	if err != nil {
		t.Fatal("the lock stays after the end:", err)
	}
	q.Close()
}

func TestOpen_BusyAddressLeavesTheFolderFree(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	cfg := app.Defaults()
	cfg.Data, cfg.Listen = t.TempDir(), p.Addr().String()
	if _, err := app.Open(t.Context(), cfg, io.Discard); err == nil || !strings.Contains(err.Error(), "--listen") {
		t.Error(err)
	}
	cfg.Listen = "127.0.0.1:0"
	q, err := app.Open(t.Context(), cfg, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	q.Close()
}

func TestOpen_MissingKeyIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := portalURL(t, dir, "127.0.0.1:0", ""); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "portal.key")
	b, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if _, err := portalURL(t, dir, "127.0.0.1:0", ""); err == nil || !strings.Contains(err.Error(), "portal.key is missing") {
		t.Error(err)
	}
	// Another portal's key is refused too, by every way in.
	other := t.TempDir()
	if _, err := portalURL(t, other, "127.0.0.1:0", ""); err != nil {
		t.Fatal(err)
	}
	foreign, err := os.ReadFile(filepath.Join(other, "portal.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, foreign, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := app.Defaults()
	cfg.Data = dir
	_, opened := portalURL(t, dir, "127.0.0.1:0", "")
	_, controlled := control.Open(t.Context(), cfg, false, io.Discard)
	for _, err := range []error{opened, controlled} {
		if err == nil || !strings.Contains(err.Error(), "belongs to another portal.key") {
			t.Error(err)
		}
	}
	if err := os.WriteFile(key, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := portalURL(t, dir, "127.0.0.1:0", ""); err != nil {
		t.Error("put back, it still does not open:", err)
	}
}

func TestLog_TellsSettingsWithoutSecrets(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t, func(c *app.Config) {
		c.SMTP, c.MailFrom, c.Log = "smtp://ada:hunter2@127.0.0.1:1", "a@x.example", "json"
	})
	p.Guest(t).Must(http.MethodGet, "/", nil, http.StatusOK)
	log := p.Log()
	if strings.Contains(log, "hunter2") || p.Setup == "" || strings.Contains(log, p.Setup) || !strings.Contains(log, `"smtp":"set"`) {
		t.Errorf("%.400s", log)
	}
}

package app_test

import (
	"bytes"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/storetest"
)

// hashBytes is the memory of one computation of a password's hash.
const hashBytes = 19 << 20

// A failed login computes one hash, also for a name that has no account: its time
// must not say which names have one. Hashes are counted by the memory that they
// take, so no other test may run meanwhile.
func TestLogin_UnknownAndWrongLookAlike(t *testing.T) {
	p := apptest.Start(t, apptest.RealHashes)
	p.User(t, "olivia")
	p.User(t, "ended")
	if err := p.Control().SetUserDisabled(t.Context(), "ended", true); err != nil {
		t.Fatal(err)
	}
	bodies := map[string]string{}
	ask := func(name, password string) (hashes uint64) {
		c := p.Guest(t)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a := c.Must(http.MethodPost, "/login", form("name", name, "password", password), http.StatusUnauthorized)
		runtime.ReadMemStats(&after)
		bodies[name] = strings.ReplaceAll(plain(a, object{}), name, "…")
		if len(a.Header["Set-Cookie"]) != 0 {
			t.Errorf("%s: a cookie for a failed login", name)
		}
		return (after.TotalAlloc - before.TotalAlloc) / hashBytes
	}
	ask("never", "wrong wrong wrong") // the first one also makes the hash to compare with
	for _, name := range []string{"olivia", "never"} {
		if n := ask(name, "wrong wrong wrong"); n != 1 {
			t.Errorf("a login as %s computes %d hashes, not 1", name, n)
		}
	}
	ask("ended", apptest.Password)
	for _, name := range []string{"never", "ended"} {
		if bodies[name] != bodies["olivia"] {
			t.Errorf("the answers differ:\n%s", differ(bodies["olivia"], bodies[name]))
		}
	}
}

func TestLogin_FloodIsLimited(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	p.User(t, "olga")
	flood := p.Guest(t)
	none := func(int) func(*http.Request) { return func(*http.Request) {} }
	a := badLogins(flood, 15, none)
	if a.Status != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
		t.Errorf("%d, Retry-After %q", a.Status, a.Header.Get("Retry-After"))
	}
	// The right password is no way around it, and others are not locked out.
	flood.Must(http.MethodPost, "/login", form("name", "olga", "password", apptest.Password), http.StatusTooManyRequests)
	p.LogIn(t, "olga")
}

// once counts how many of 20 at the same moment succeed.
func once(t *testing.T, p *apptest.Portal, post func(c *apptest.Client) apptest.Answer) int {
	t.Helper()
	var won atomic.Int64
	var wg sync.WaitGroup
	start := make(chan struct{})
	for range 20 {
		c := p.Guest(t)
		wg.Go(func() {
			<-start
			if a := post(c); a.Status == http.StatusSeeOther {
				won.Add(1)
			}
		})
	}
	close(start)
	wg.Wait()
	return int(won.Load())
}

func TestLinks_WorkOnce(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	if p.Setup == "" {
		t.Fatal("no setup link")
	}
	won := once(t, p, func(c *apptest.Client) apptest.Answer {
		return c.Do(http.MethodPost, "/signup", form("name", apptest.Fresh("first"), "password", apptest.Password, "setup", p.Setup))
	})
	if won != 1 {
		t.Errorf("the operator's link worked %d times", won)
	}
	users, err := p.Control().Users(t.Context())
	operators := 0
	for _, u := range users {
		if u.Operator {
			operators++
		}
	}
	if err != nil || operators != 1 || len(users) != 1 {
		t.Errorf("%d operators of %d accounts, %v", operators, len(users), err)
	}
	p.User(t, "olga")
	link, err := p.Control().ResetLink(t.Context(), "olga")
	if err != nil {
		t.Fatal(err)
	}
	u, _ := url.Parse(link)
	won = once(t, p, func(c *apptest.Client) apptest.Answer {
		return c.Do(http.MethodPost, "/reset", form("token", u.Query().Get("link"), "password", apptest.Fresh("a good password")))
	})
	if won != 1 {
		t.Errorf("the reset link worked %d times", won)
	}
	// A newer link makes the older void; looking at a link does not use it up.
	old, _ := p.Control().ResetLink(t.Context(), "olga")
	newer, _ := p.Control().ResetLink(t.Context(), "olga")
	secret := func(link string) string { u, _ := url.Parse(link); return u.Query().Get("link") }
	p.Guest(t).Must(http.MethodPost, "/reset", form("token", secret(old), "password", "another good password"), http.StatusNotFound)
	p.Guest(t).Must(http.MethodGet, "/reset?link="+secret(newer), nil, http.StatusOK)
	p.Guest(t).Must(http.MethodPost, "/reset", form("token", secret(newer), "password", "another good password"), http.StatusSeeOther)
}

// A link printed at the start is void once the command line made an operator.
func TestSetup_IsVoidOnceThereIsAnOperator(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	p.Operator(t, "rob")
	a := p.Guest(t).Do(http.MethodPost, "/signup", form("name", "intruder", "password", apptest.Password, "setup", p.Setup))
	if a.Status != http.StatusBadRequest {
		t.Errorf("%d", a.Status)
	}
	users, _ := p.Control().Users(t.Context())
	if len(users) != 1 {
		t.Errorf("accounts: %v", users)
	}
}

func TestSecrets_AreNotInTheData(t *testing.T) {
	t.Parallel()
	far := agenttest.NewOpenAIServer(t)
	p := apptest.Start(t)
	c := p.User(t, "olga")
	u, _ := url.Parse(p.Base)
	link, err := p.Control().ResetLink(t.Context(), "olga")
	if err != nil {
		t.Fatal(err)
	}
	token := c.NewToken("tasks")
	key := "sk-" + apptest.Fresh("stored-key-of-an-agent")
	c.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "keyed", "description": "X.", "kind": "openai", "endpoint": far.Base(agenttest.Echo), "visibility": "public",
		"config": map[string]any{"model": "echo-1", "key": key}}, http.StatusCreated)
	page := c.Must(http.MethodPost, "/account/tokens", form("label", "page", "scopes", "tasks", "expires", "7d"), http.StatusOK).Body
	shown := between(page, `ags_`, `<`)
	if len(shown) == 0 {
		t.Fatal("the token is not shown")
	}
	secrets := map[string]string{"token": token.Token, "token of the page": "ags_" + strings.FieldsFunc(shown[0], func(r rune) bool { return strings.ContainsRune(`"'&; `, r) })[0],
		"password": apptest.Password, "agent's key": key, "session": c.HTTP.Jar.Cookies(u)[0].Value, "reset link": strings.Split(link, "link=")[1], "setup link": p.Setup}
	for _, s := range secrets {
		p.Canary(s)
	}
	// Shown once: from now on no answer has any of them.
	for _, path := range []string{"/account", "/api/v1/tokens", "/api/v1/me", "/api/v1/agents/keyed", "/api/v1/agents?owner=me", "/api/v1/agents/keyed/versions", "/agents/keyed", "/agents/keyed/edit", "/"} {
		c.Must(http.MethodGet, path, nil, http.StatusOK)
	}
	var backup bytes.Buffer
	if err := p.Control().Backup(t.Context(), &backup, ""); err != nil {
		t.Fatal(err)
	}
	seen := 0
	err = filepath.WalkDir(p.Dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s may be read by others: %s", d.Name(), info.Mode())
		}
		b, err := os.ReadFile(path)
		seen += len(b)
		for what, s := range secrets {
			if bytes.Contains(b, []byte(s)) {
				t.Errorf("the %s is in %s", what, d.Name())
			}
		}
		return err
	})
	if err != nil || seen < 100_000 && !storetest.OnPostgres() {
		t.Errorf("%d bytes seen, %v", seen, err)
	}
	if storetest.OnPostgres() {
		for what, s := range secrets {
			if in := storetest.TablesHolding(t, p.Dir, s); len(in) > 0 {
				t.Errorf("the %s is in %q", what, in)
			}
		}
	}
	for what, s := range secrets {
		if bytes.Contains(backup.Bytes(), []byte(s)) {
			t.Errorf("the %s is in the backup", what)
		}
	}
}

// An API token is one thing only, a session another; neither opens what a
// link or invitation does.
func TestSecrets_AreGoodForOneThing(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.User(t, "olga")
	link, _ := p.Control().ResetLink(t.Context(), "olga")
	reset := strings.Split(link, "link=")[1]
	for what, s := range map[string]string{"reset link": reset, "setup link": p.Setup, "nothing": "", "prefix": "ags_", "garbage": "ags_" + strings.Repeat("A", 43)} {
		g := p.Guest(t)
		if a := g.Do(http.MethodGet, "/api/v1/me", nil, setHeader("Authorization", "Bearer "+s)); a.Status != http.StatusUnauthorized {
			t.Errorf("%s as a token: %d", what, a.Status)
		}
		if a := g.Do(http.MethodGet, "/api/v1/me", nil, setHeader("Authorization", "Basic "+s)); a.Status != http.StatusUnauthorized {
			t.Errorf("%s as basic: %d", what, a.Status)
		}
	}
	token := c.NewToken().Token
	for what, s := range map[string]string{"token": token, "setup link": p.Setup} {
		p.Guest(t).Must(http.MethodPost, "/reset", form("token", s, "password", "another good password"), http.StatusNotFound)
		_ = what
	}
	for _, s := range []string{token, reset} {
		if a := p.Guest(t).Do(http.MethodPost, "/signup", form("name", apptest.Fresh("new"), "password", apptest.Password, "setup", s)); a.Status == http.StatusSeeOther {
			t.Error("another secret worked as the setup link")
		}
	}
	// Neither header nor query nor form carries a token but Authorization.
	for _, edit := range []func(*http.Request){setHeader("X-Api-Key", token), setHeader("X-Auth-Token", token), func(r *http.Request) { r.URL.RawQuery = "access_token=" + token + "&token=" + token }} {
		if a := p.Guest(t).Do(http.MethodGet, "/api/v1/me", nil, edit); a.Status != http.StatusUnauthorized {
			t.Errorf("a token elsewhere: %d", a.Status)
		}
	}
}

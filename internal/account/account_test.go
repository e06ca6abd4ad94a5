package account_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/testing/storetest"
)

const password = "correct horse battery"

var system = ident.Actor{Kind: ident.System}

// world is a service on a database of its own.
type world struct {
	*account.Service
	t  *testing.T
	db *storetest.DB
}

func open(t *testing.T, edit ...func(*account.Config)) world {
	t.Helper()
	return on(t, storetest.New(t), edit...)
}

func on(t *testing.T, db *storetest.DB, edit ...func(*account.Config)) world {
	cfg := account.Config{Policy: account.Open, Guests: true, URL: "https://portal.example", Log: slog.New(slog.DiscardHandler)}
	for _, e := range edit {
		e(&cfg)
	}
	return world{account.New(db, cfg), t, db}
}

func (w world) add(name string, operator bool) account.Account {
	w.t.Helper()
	a, err := w.Add(w.t.Context(), system, account.SignUp{Name: name, Password: password, Email: name + "@mail.example"}, operator)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// from is a visitor at an address.
func from(addr string) ident.Actor { return ident.Actor{Kind: ident.Guest, Addr: addr} }

// actor is whom the secret proves.
func (w world) actor(secret string) ident.Actor {
	w.t.Helper()
	a, err := w.Authenticate(w.t.Context(), secret, "192.0.2.1")
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// session logs in; it returns the actor and the secret.
func (w world) session(name string) (ident.Actor, string) {
	w.t.Helper()
	s, err := w.LogIn(w.t.Context(), from("login/"+name), name, password)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.actor(s), s
}

func (w world) token(actor ident.Actor, scopes ...ident.Scope) (ident.Actor, string) {
	w.t.Helper()
	s, err := w.CreateToken(w.t.Context(), actor, account.NewToken{Scopes: scopes})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.actor(s), s
}

func (w world) void(what, secret string) {
	w.t.Helper()
	if a, err := w.Authenticate(w.t.Context(), secret, ""); !fault.Is(err, fault.Unauthenticated) || a.ID != "" {
		w.t.Errorf("%s still opens: %+v %v", what, a, err)
	}
}

func kind(t *testing.T, what string, err error, want fault.Kind) {
	t.Helper()
	if !fault.Is(err, want) {
		t.Errorf("%s: %v, want %s", what, err, want)
	}
}

func TestSignUp_FollowsThePolicy(t *testing.T) {
	t.Parallel()
	for policy, want := range map[account.Policy]fault.Kind{account.Open: "", account.Invite: fault.Forbidden, account.Closed: fault.Forbidden} {
		w := open(t, func(c *account.Config) { c.Policy = policy })
		a, err := w.SignUp(t.Context(), from("a"), account.SignUp{Name: " Ada ", Password: password})
		if want == "" {
			if err != nil || a.Name != "ada" || a.Operator {
				t.Errorf("%s: %+v %v", policy, a, err)
			}
		} else {
			kind(t, string(policy), err, want)
			if _, err := w.db.AccountByName(t.Context(), "ada"); !fault.Is(err, fault.NotFound) {
				t.Errorf("%s: an account was made all the same", policy)
			}
		}
	}
}

func TestSignUp_RefusesBadInput(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.add("taken", false)
	for _, c := range []struct {
		in    account.SignUp
		field string
		kind  fault.Kind
	}{
		{account.SignUp{Name: "admin", Password: password}, "name", fault.Invalid},
		{account.SignUp{Name: "аda", Password: password}, "name", fault.Invalid},
		{account.SignUp{Name: "ada", Password: "short"}, "password", fault.Invalid},
		{account.SignUp{Name: "ada", Password: "aaaaaaaaaaaa"}, "password", fault.Invalid},
		{account.SignUp{Name: "ada", Password: "\xff" + password}, "password", fault.Invalid},
		{account.SignUp{Name: "ada", Password: strings.Repeat("xy", 129)}, "password", fault.Invalid},
		{account.SignUp{Name: "longer-than-ten", Password: "longer-than-ten"}, "password", fault.Invalid},
		{account.SignUp{Name: "ada", Password: password, Email: "Ada <ada@x.example>"}, "email", fault.Invalid},
		{account.SignUp{Name: "ada", Password: password, Email: "a@x.example\r\nBcc: b@x.example"}, "email", fault.Invalid},
		{account.SignUp{Name: "ada", Password: password, Email: strings.Repeat("a", 250) + "@x.example"}, "email", fault.Invalid},
		{account.SignUp{Name: "ada", Password: password, Invite: "agsi_nothing"}, "invite", fault.Invalid},
		{account.SignUp{Name: "TAKEN", Password: password}, "name", fault.Conflict},
	} {
		_, err := w.SignUp(t.Context(), from("a"), c.in)
		if f := fault.As(err); f == nil || f.Kind != c.kind || f.Fields[c.field] == "" {
			t.Errorf("%+v: %v", c.in, err)
		}
	}
}

func TestSignUp_LimitedByAddress(t *testing.T) {
	t.Parallel()
	w := open(t, func(c *account.Config) { c.Policy = account.Closed })
	for range 20 {
		_, err := w.SignUp(t.Context(), from("one"), account.SignUp{})
		kind(t, "within the burst", err, fault.Forbidden)
	}
	_, err := w.SignUp(t.Context(), from("one"), account.SignUp{})
	if f := fault.As(err); f.Kind != fault.RateLimited || f.RetryAfter <= 0 {
		t.Error(err)
	}
	_, err = w.SignUp(t.Context(), from("two"), account.SignUp{})
	kind(t, "another address", err, fault.Forbidden)
}

func TestSetup_LinkWorksForOneOfMany(t *testing.T) {
	t.Parallel()
	w := open(t, func(c *account.Config) { c.Policy = account.Closed })
	secret, err := w.Setup(t.Context())
	if err != nil || secret == "" {
		t.Fatal(err)
	}
	names := []string{"ada", "bob", "cyd", "dan"}
	made := make([]bool, len(names))
	var wg sync.WaitGroup
	for i, n := range names {
		wg.Go(func() {
			a, err := w.SignUp(t.Context(), from(n), account.SignUp{Name: n, Password: password, Invite: secret})
			made[i] = err == nil
			if err == nil && !a.Operator {
				t.Error("the link made no operator")
			}
			if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Invalid) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n, err := w.db.CountOperators(t.Context()); err != nil || n != 1 {
		t.Errorf("%d operators, %v %v", n, made, err)
	}
	if list, err := w.List(t.Context(), system, ""); err != nil || len(list) != 1 {
		t.Errorf("%d accounts %v", len(list), err)
	}
	if s, err := w.Setup(t.Context()); s != "" || err != nil {
		t.Error("a portal with an operator offers a link", err)
	}
}

func TestSetup_NewStartVoidsTheEarlierLink(t *testing.T) {
	t.Parallel()
	w := open(t)
	first, err := w.Setup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := w.Setup(t.Context())
	if err != nil || second == first {
		t.Fatal(err)
	}
	_, err = w.SignUp(t.Context(), from("a"), account.SignUp{Name: "eve", Password: password, Invite: first})
	kind(t, "the earlier link", err, fault.Invalid)
	w.void("a setup link as a session", second)
	// A mistake does not use it up.
	_, err = w.SignUp(t.Context(), from("a"), account.SignUp{Name: "x", Password: "short", Invite: second})
	kind(t, "a mistake", err, fault.Invalid)
	if a, err := w.SignUp(t.Context(), from("a"), account.SignUp{Name: "ada", Password: password, Invite: " " + second + "\n"}); err != nil || !a.Operator {
		t.Error(a, err)
	}
}

func TestSetup_LinkIsVoidOnceThereIsAnOperator(t *testing.T) {
	t.Parallel()
	w := open(t)
	secret, err := w.Setup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.add("boss", true)
	_, err = w.SignUp(t.Context(), from("a"), account.SignUp{Name: "eve", Password: password, Invite: secret})
	kind(t, "a link of before", err, fault.Invalid)
	if n, _ := w.db.CountOperators(t.Context()); n != 1 {
		t.Errorf("%d operators", n)
	}
}

func TestInvitation_WorksOnceAndNotAfterItsTime(t *testing.T) {
	t.Parallel()
	w := open(t, func(c *account.Config) { c.Policy = account.Invite })
	w.add("boss", true)
	boss, _ := w.session("boss")
	secret, err := w.Invitation(t.Context(), boss, "for ann")
	if err != nil {
		t.Fatal(err)
	}
	if list, err := w.Invitations(t.Context(), boss); err != nil || len(list) != 1 || list[0].Label != "for ann" || list[0].ExpiresAt.Sub(list[0].CreatedAt) > 7*24*time.Hour {
		t.Errorf("%+v %v", list, err)
	}
	w.void("an invitation as a session", secret)
	var wg sync.WaitGroup
	errs := make([]error, 3)
	for i, n := range []string{"ann", "bob", "cyd"} {
		wg.Go(func() {
			_, errs[i] = w.SignUp(t.Context(), from(n), account.SignUp{Name: n, Password: password, Invite: secret})
		})
	}
	wg.Wait()
	n := 0
	for _, err := range errs {
		if err == nil {
			n++
		}
	}
	if list, _ := w.Invitations(t.Context(), boss); n != 1 || len(list) != 0 {
		t.Errorf("%d accounts by one invitation: %v; open: %v", n, errs, list)
	}
	if n, _ := w.db.CountOperators(t.Context()); n != 1 {
		t.Error("an invitation made an operator")
	}

	old := account.Credential{ID: ident.NewID(), Hash: ident.HashSecret("agsi_old"), Kind: account.InviteCredential, CreatedAt: time.Now().Add(-time.Hour), ExpiresAt: time.Now().Add(-time.Second)}
	if err := w.db.AddCredential(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	_, err = w.SignUp(t.Context(), from("z"), account.SignUp{Name: "zed", Password: password, Invite: "agsi_old"})
	kind(t, "an expired invitation", err, fault.Invalid)
}

func TestInvitation_RevokedOneByOne(t *testing.T) {
	t.Parallel()
	w := open(t, func(c *account.Config) { c.Policy = account.Invite })
	for range 2 {
		if _, err := w.Invitation(t.Context(), system, ""); err != nil {
			t.Fatal(err)
		}
	}
	list, _ := w.Invitations(t.Context(), system)
	kind(t, "revoke nothing", w.RevokeInvitation(t.Context(), system, ""), fault.NotFound)
	kind(t, "revoke unknown", w.RevokeInvitation(t.Context(), system, ident.NewID()), fault.NotFound)
	if err := w.RevokeInvitation(t.Context(), system, list[0].ID); err != nil {
		t.Error(err)
	}
	if left, _ := w.Invitations(t.Context(), system); len(left) != 1 || left[0].ID != list[1].ID {
		t.Errorf("%v", left)
	}
	_, err := w.Invitation(t.Context(), system, strings.Repeat("x", 101))
	kind(t, "a long note", err, fault.Invalid)
}

func TestLogIn_SameAnswerForUnknownWrongAndDisabled(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.add("ada", false)
	w.add("gone", false)
	if err := w.Disable(t.Context(), system, "gone"); err != nil {
		t.Fatal(err)
	}
	said := make(map[string]bool)
	for _, c := range [][2]string{{"ada", "not the password"}, {"nobody", password}, {"gone", password}, {"ada", ""}, {"", ""}, {"ada", strings.Repeat("x", 5000)}} {
		s, err := w.LogIn(t.Context(), from("a"), c[0], c[1])
		kind(t, c[0], err, fault.Unauthenticated)
		if s != "" {
			t.Error("a secret beside the error")
		}
		said[err.Error()] = true
	}
	if len(said) != 1 {
		t.Errorf("the answers differ: %v", said)
	}
	if s, err := w.LogIn(t.Context(), from("a"), " ADA ", password); err != nil || !strings.HasPrefix(s, ident.SessionPrefix) {
		t.Error(err)
	}
}

func TestLogIn_LimitsGuesses(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.add("ada", false)
	guess := func(addr, name string) error {
		_, err := w.LogIn(t.Context(), from(addr), name, strings.Repeat("x", 2000)) // refused before it is hashed
		return err
	}
	for i := range 10 {
		name := []string{"ada", "ADA", " ada"}[i%3]
		kind(t, name, guess("evil", name), fault.Unauthenticated)
	}
	kind(t, "one more guess", guess("evil", "ada"), fault.RateLimited)
	if _, err := w.LogIn(t.Context(), from("evil"), "ada", password); !fault.Is(err, fault.RateLimited) {
		t.Error("the right password passes a limit", err)
	}
	if _, err := w.LogIn(t.Context(), from("home"), "ada", password); err != nil {
		t.Error("a stranger locks the account for others:", err)
	}
	for i := range 40 {
		err := guess("flood", "n"+ident.NewID())
		if want := i < 30; fault.Is(err, fault.Unauthenticated) != want || fault.Is(err, fault.RateLimited) == want {
			t.Fatalf("attempt %d: %v", i, err)
		}
	}
}

// notices counts the warnings of an account.
type notices struct{ warned chan string }

func (n notices) NotifyGuesses(_ context.Context, accountID string) { n.warned <- accountID }

// Wrong passwords from everywhere warn the person once and keep the right one out nowhere.
func TestLogIn_GuessesFromEverywhereLockNobodyOut(t *testing.T) {
	t.Parallel()
	n := notices{make(chan string, 100)}
	w := open(t, func(c *account.Config) { c.Notices = n })
	go w.Run(t.Context())
	ada := w.add("ada", false)
	w.session("ada") // from login/ada
	for i := range 150 {
		for _, name := range []string{"ada", "nobody"} {
			_, err := w.LogIn(t.Context(), from(fmt.Sprint("10.0.0.", i)), name, strings.Repeat("x", 2000)) // refused before it is hashed
			kind(t, name, err, fault.Unauthenticated)
		}
	}
	if id := <-n.warned; id != ada.ID || len(n.warned) != 0 {
		t.Errorf("warned %s, and %d more", id, len(n.warned))
	}
	if _, err := w.LogIn(t.Context(), from("192.0.2.1"), "ada", password); err != nil {
		t.Error(err)
	}
	// Where the right password came from, wrong ones of a neighbour behind the same address keep it out
	// only as far as that address is limited.
	for range 12 {
		_, err := w.LogIn(t.Context(), from("192.0.2.1"), "ada", strings.Repeat("x", 2000))
		kind(t, "a neighbour", err, fault.Unauthenticated)
	}
	if _, err := w.LogIn(t.Context(), from("192.0.2.1"), "ada", password); err != nil {
		t.Error(err)
	}
}

// between calls f once after an account was looked up by name.
type between struct {
	account.Store
	once sync.Once
	f    func()
}

func (b *between) AccountByName(ctx context.Context, name string) (account.Account, error) {
	a, err := b.Store.AccountByName(ctx, name)
	b.once.Do(b.f)
	return a, err
}

func TestLogIn_LosesToDisableAndToNewPassword(t *testing.T) {
	t.Parallel()
	w := open(t)
	a := w.add("ada", false)
	cfg := account.Config{Policy: account.Open, Log: slog.New(slog.DiscardHandler)}
	racing := account.New(&between{Store: w.db, f: func() {
		if err := w.Disable(t.Context(), system, "ada"); err != nil {
			t.Error(err)
		}
	}}, cfg)
	if s, err := racing.LogIn(t.Context(), from("a"), "ada", password); err == nil || s != "" {
		t.Error("a disabled account got a session")
	}
	racing = account.New(&between{Store: w.db, f: func() {
		link, err := w.ResetLink(t.Context(), system, "ada")
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := w.Reset(t.Context(), from("r"), secretOf(link), "another password"); err != nil {
			t.Error(err)
		}
	}}, cfg)
	if err := w.Enable(t.Context(), system, "ada"); err != nil {
		t.Fatal(err)
	}
	_, err := racing.LogIn(t.Context(), from("a"), "ada", password)
	kind(t, "the password of before", err, fault.Unauthenticated)
	if list, err := w.db.ListCredentials(t.Context(), a.ID, account.SessionCredential); err != nil || len(list) != 0 {
		t.Errorf("sessions are left for later: %v %v", list, err)
	}
}

func secretOf(link string) string {
	_, s, _ := strings.Cut(link, "link=")
	return s
}

package account_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/testing/storetest"
)

// guard watches an actor's right.
func (w world) guard(actor ident.Actor) context.Context {
	ctx, stop := w.Guard(w.t.Context(), actor)
	w.t.Cleanup(stop)
	return ctx
}

func (w world) ended(what string, ctx context.Context, want bool) {
	w.t.Helper()
	if got := ctx.Err() != nil; got != want {
		w.t.Errorf("%s: ended is %v", what, got)
	}
}

func TestPasswordChange_EndsTheOtherSessions(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.add("ada", false)
	w.add("bob", false)
	mine, mySecret := w.session("ada")
	other, otherSecret := w.session("ada")
	bob, bobSecret := w.session("bob")
	mg, og, bg := w.guard(mine), w.guard(other), w.guard(bob)

	err := w.ChangePassword(t.Context(), mine, "wrong", "short")
	if f := fault.As(err); f.Fields["old"] == "" || f.Fields["password"] == "" {
		t.Error("not every fault is named:", err)
	}
	w.ended("a refused change", og, false)
	if err := w.ChangePassword(t.Context(), mine, password, "an entirely new one"); err != nil {
		t.Fatal(err)
	}
	w.void("the other session", otherSecret)
	w.ended("the other session's stream", og, true)
	w.ended("my stream", mg, false)
	w.ended("bob's stream", bg, false)
	w.actor(mySecret)
	w.actor(bobSecret)
	if _, err := w.LogIn(t.Context(), from("x"), "ada", password); !fault.Is(err, fault.Unauthenticated) {
		t.Error("the old password still works", err)
	}
	if _, err := w.LogIn(t.Context(), from("x"), "ada", "an entirely new one"); err != nil {
		t.Error(err)
	}
}

func TestLogOut_EndsThisSessionOnly(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.add("ada", false)
	a, aSecret := w.session("ada")
	b, bSecret := w.session("ada")
	ag, bg := w.guard(a), w.guard(b)
	if n, err := w.Sessions(t.Context(), a); n != 2 || err != nil {
		t.Error(n, err)
	}
	if err := w.LogOut(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	w.void("the session", aSecret)
	w.ended("its stream", ag, true)
	w.actor(bSecret)
	w.ended("another stream", bg, false)
	if err := w.LogOut(t.Context(), from("x")); err != nil {
		t.Error("who has no session:", err)
	}
}

func TestLogOutEverywhere_EndsSessionsNotTokens(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.add("ada", false)
	a, s1 := w.session("ada")
	b, s2 := w.session("ada")
	tok, secret := w.token(a)
	ag, bg, tg := w.guard(a), w.guard(b), w.guard(tok)
	if err := w.LogOutEverywhere(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	w.void("one", s1)
	w.void("two", s2)
	w.ended("one", ag, true)
	w.ended("two", bg, true)
	w.ended("a token", tg, false)
	w.actor(secret)
}

func TestDisable_EndsEverythingWithinTheCall(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.add("boss", true)
	ada := w.add("ada", false)
	boss, _ := w.session("boss")
	a, session := w.session("ada")
	tok, token := w.token(a)
	link, err := w.ResetLink(t.Context(), boss, "ada")
	if err != nil {
		t.Fatal(err)
	}
	guards := []context.Context{w.guard(a), w.guard(tok)}
	bg := w.guard(boss)

	kind(t, "a person", w.Disable(t.Context(), a, "boss"), fault.Forbidden)
	kind(t, "oneself", w.Disable(t.Context(), boss, "boss"), fault.Conflict)
	kind(t, "nobody", w.Disable(t.Context(), boss, "nobody"), fault.NotFound)
	if err := w.Disable(t.Context(), boss, " ADA "); err != nil {
		t.Fatal(err)
	}
	for _, g := range guards {
		w.ended("a stream of ada", g, true)
	}
	w.ended("a stream of the operator", bg, false)
	check := func(when string) {
		w.void(when+": session", session)
		w.void(when+": token", token)
		_, err := w.Reset(t.Context(), from("r"), secretOf(link), "an entirely new one")
		kind(t, when+": reset link", err, fault.NotFound)
	}
	check("disabled")
	select {
	case id := <-w.Ended():
		if id != ada.ID {
			t.Error(id)
		}
	default:
		t.Error("nobody is told to stop ada's work")
	}
	_, err = w.CreateTokenFor(t.Context(), system, "ada", account.NewToken{})
	kind(t, "a token for later", err, fault.Conflict)
	_, err = w.ResetLink(t.Context(), system, "ada")
	kind(t, "a link for later", err, fault.Conflict)
	// Who was proved a moment before makes nothing that lasts.
	if s, err := w.CreateToken(t.Context(), a, account.NewToken{}); err == nil {
		t.Error("a disabled account made a token", s)
	}

	if err := w.Enable(t.Context(), boss, "ada"); err != nil {
		t.Fatal(err)
	}
	check("enabled again")
	if list, err := w.Tokens(t.Context(), w.actor(mustLogIn(w, "ada"))); err != nil || len(list) != 0 {
		t.Errorf("%v %v", list, err)
	}
}

func mustLogIn(w world, name string) string {
	_, s := w.session(name)
	return s
}

func TestGuard_StopReleasesEverything(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.add("ada", false)
	a, _ := w.session("ada")
	ctx, stop := w.Guard(t.Context(), a)
	stop()
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Error("a stopped guard's context goes on")
	}
	stop() // twice is fine
	if err := w.LogOut(t.Context(), a); err != nil {
		t.Error(err)
	}
	g, stopGuest := w.Guard(t.Context(), ident.Actor{})
	defer stopGuest()
	w.ended("somebody without a right that could end", g, false)
}

func TestToken_NarrowedMakesNothingWider(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.add("boss", true)
	boss, _ := w.session("boss")
	if !boss.IsOperator() || boss.Narrowed {
		t.Fatalf("%+v", boss)
	}
	narrow, _ := w.token(boss, ident.AccountAll, ident.ChatRead)
	if narrow.IsOperator() || narrow.Kind != ident.Person || !narrow.May(ident.ChatRead) || narrow.May(ident.ChatWrite) {
		t.Errorf("%+v", narrow)
	}
	for _, scopes := range [][]ident.Scope{{ident.Admin}, {ident.ChatRead, ident.ChatWrite}, {ident.AccountAll, ident.Tasks}} {
		_, err := w.CreateToken(t.Context(), narrow, account.NewToken{Scopes: scopes})
		kind(t, "wider", err, fault.Forbidden)
	}
	same, _ := w.token(narrow) // asking for all gives what it has
	if !same.Narrowed || same.IsOperator() || !same.May(ident.ChatRead) || same.May(ident.ChatWrite) || same.May(ident.Admin) {
		t.Errorf("a narrowed token made %+v", same)
	}
	less, _ := w.token(narrow, ident.ChatRead)
	_, err := w.CreateToken(t.Context(), less, account.NewToken{})
	kind(t, "without the scope account", err, fault.Forbidden)

	admin, _ := w.token(boss, ident.Admin)
	if !admin.IsOperator() || admin.May(ident.AccountAll) {
		t.Errorf("%+v", admin)
	}
	_, err = w.CreateToken(t.Context(), admin, account.NewToken{})
	kind(t, "admin without account", err, fault.Forbidden)

	w.add("ada", false)
	ada, _ := w.session("ada")
	vain, _ := w.token(ada, ident.Admin)
	if vain.IsOperator() {
		t.Error("a scope made a person the operator")
	}
}

func TestOperatorActs_NeedTheAdminScope(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.add("boss", true)
	w.add("ada", false)
	boss, _ := w.session("boss")
	person, _ := w.session("ada")
	narrow, _ := w.token(boss, ident.AccountAll)
	// A door that builds actors wrong must not get further either.
	forged := ident.Actor{Kind: ident.Operator, ID: boss.ID, Narrowed: true, Scopes: []ident.Scope{ident.AccountAll}}
	for who, a := range map[string]ident.Actor{"person": person, "narrowed": narrow, "forged": forged, "guest": from("x"), "nobody": {}} {
		acts := map[string]error{
			"disable": w.Disable(t.Context(), a, "ada"), "enable": w.Enable(t.Context(), a, "ada"),
			"revoke invitation": w.RevokeInvitation(t.Context(), a, ident.NewID()),
		}
		_, acts["list"] = w.List(t.Context(), a, "")
		_, acts["reset link"] = w.ResetLink(t.Context(), a, "ada")
		_, acts["invite"] = w.Invitation(t.Context(), a, "")
		_, acts["invitations"] = w.Invitations(t.Context(), a)
		_, acts["add"] = w.Add(t.Context(), a, account.SignUp{Name: "eve", Password: password}, true)
		_, acts["token for"] = w.CreateTokenFor(t.Context(), a, "ada", account.NewToken{})
		for act, err := range acts {
			kind(t, who+" "+act, err, fault.Forbidden)
		}
	}
}

func TestToken_Bounds(t *testing.T) {
	t.Parallel()
	w := open(t)
	ada := w.add("ada", false)
	w.add("bob", false)
	a, _ := w.session("ada")
	b, _ := w.session("bob")
	for what, in := range map[string]account.NewToken{
		"label": {Label: strings.Repeat("x", 101)}, "too long": {Life: 367 * 24 * time.Hour}, "negative": {Life: -1},
		"unknown scope": {Scopes: []ident.Scope{"fly"}}, "empty scope": {Scopes: []ident.Scope{""}}, "two in one": {Scopes: []ident.Scope{"chat:read chat:write"}},
	} {
		_, err := w.CreateToken(t.Context(), a, in)
		kind(t, what, err, fault.Invalid)
	}
	many := make([]ident.Scope, 500)
	for i := range many {
		many[i] = ident.Tasks
	}
	if tok, _ := w.token(a, many...); len(tok.Scopes) != 1 {
		t.Errorf("%d scopes are kept", len(tok.Scopes))
	}
	list, err := w.Tokens(t.Context(), a)
	if err != nil || len(list) != 1 || list[0].Label != "token" {
		t.Fatalf("%+v %v", list, err)
	}
	if life := list[0].ExpiresAt.Sub(list[0].CreatedAt); life != 90*24*time.Hour {
		t.Errorf("lives %v", life)
	}
	kind(t, "somebody else's", w.RevokeToken(t.Context(), b, list[0].ID), fault.NotFound)
	kind(t, "unknown", w.RevokeToken(t.Context(), a, ident.NewID()), fault.NotFound)
	kind(t, "no id", w.RevokeToken(t.Context(), a, ""), fault.NotFound)
	for range 99 {
		c := account.Credential{ID: ident.NewID(), Hash: ident.NewID(), Kind: account.TokenCredential, AccountID: ada.ID, CreatedAt: clock.Now(), ExpiresAt: clock.Now().Add(time.Hour)}
		if err := w.db.AddCredential(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	_, err = w.CreateToken(t.Context(), a, account.NewToken{})
	kind(t, "one too many", err, fault.Conflict)
	tok := w.guard(ident.Actor{ID: ada.ID, Credential: list[0].ID})
	if err := w.RevokeToken(t.Context(), a, list[0].ID); err != nil {
		t.Fatal(err)
	}
	w.ended("a revoked token's stream", tok, true)
	if left, _ := w.Tokens(t.Context(), a); len(left) != 99 {
		t.Errorf("%d tokens are left", len(left))
	}
}

func TestAuthenticate_OnlyWhatProvesSomebody(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.add("ada", false)
	link, err := w.ResetLink(t.Context(), system, "ada")
	if err != nil {
		t.Fatal(err)
	}
	a, secret := w.session("ada")
	for what, s := range map[string]string{"nothing": "", "a reset link": secretOf(link), "a hash": ident.HashSecret(secret), "an id": a.Credential,
		"another case": strings.ToUpper(secret), "half": secret[:20], "more": secret + "x"} {
		w.void(what, s)
	}
	c, _, err := w.db.CredentialByHash(t.Context(), ident.HashSecret(secret))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.db.Touch(t.Context(), c.Hash, clock.Now(), clock.Now().Add(-time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	w.void("an expired session", secret)
}

func TestAuthenticate_UseProlongsSessionsNotTokens(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.add("ada", false)
	a, session := w.session("ada")
	_, token := w.token(a, ident.Tasks)
	for _, secret := range []string{session, token} {
		c, _, err := w.db.CredentialByHash(t.Context(), ident.HashSecret(secret))
		if err != nil {
			t.Fatal(err)
		}
		before, soon := clock.Now().Add(-time.Hour), clock.Now().Add(time.Hour)
		if err := w.db.Touch(t.Context(), c.Hash, before, soon); err != nil {
			t.Fatal(err)
		}
		w.actor(secret)
		c, _, err = w.db.CredentialByHash(t.Context(), ident.HashSecret(secret))
		if err != nil || !c.UsedAt.After(before) {
			t.Error("the use was not noted", err)
		}
		if prolonged := c.ExpiresAt.After(soon); prolonged != (c.Kind == account.SessionCredential) {
			t.Errorf("%s: prolonged is %v", c.Kind, prolonged)
		}
	}
}

func TestReset_WorksOnceAndVoidsEarlierLinks(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.add("ada", false)
	a, session := w.session("ada")
	g := w.guard(a)
	first, err := w.ResetLink(t.Context(), system, "ada")
	if err != nil {
		t.Fatal(err)
	}
	link, err := w.ResetLink(t.Context(), system, "ADA")
	if err != nil || !strings.HasPrefix(link, "https://portal.example/reset?link="+ident.LinkPrefix) {
		t.Fatal(link, err)
	}
	_, err = w.Reset(t.Context(), from("r"), secretOf(first), "an entirely new one")
	kind(t, "an earlier link", err, fault.NotFound)
	_, err = w.Reset(t.Context(), from("r"), secretOf(link), "short")
	if f := fault.As(err); f.Kind != fault.Invalid || f.Fields["password"] == "" {
		t.Error(err)
	}
	_, err = w.Reset(t.Context(), from("r"), session, "an entirely new one")
	kind(t, "a session as a link", err, fault.NotFound)
	_, err = w.Reset(t.Context(), from("r"), "", "an entirely new one")
	kind(t, "no link", err, fault.NotFound)

	errs := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := w.Reset(t.Context(), from("r"), secretOf(link), "an entirely new one")
			errs <- err
		}()
	}
	e1, e2 := <-errs, <-errs
	if (e1 == nil) == (e2 == nil) {
		t.Errorf("one link, two uses: %v, %v", e1, e2)
	}
	w.void("a session of before", session)
	w.ended("its stream", g, true)
	_, err = w.ResetLink(t.Context(), system, "nobody")
	kind(t, "nobody", err, fault.NotFound)
}

// box is a mailer that keeps what it gets, or fails.
type box struct {
	to, subject, text []string
	fail              error
	sent              chan struct{} // one for each
}

func (b *box) Send(_ context.Context, to, subject, text string) error {
	b.to, b.subject, b.text = append(b.to, to), append(b.subject, subject), append(b.text, text)
	if b.sent != nil {
		b.sent <- struct{}{}
	}
	return b.fail
}

func TestMailReset_SameAnswerWhoeverAsks(t *testing.T) {
	t.Parallel()
	b := &box{sent: make(chan struct{}, 8)}
	w := open(t, func(c *account.Config) { c.Mailer = b })
	go w.Run(t.Context())
	w.add("ada", false)
	w.add("gone", false)
	if err := w.Disable(t.Context(), system, "gone"); err != nil {
		t.Fatal(err)
	}
	storetest.Account(t, w.db, "unmailed")
	for _, name := range []string{"nobody", "gone", "unmailed", "", "ada@mail.example"} {
		if err := w.MailReset(t.Context(), from("m"), name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := w.MailReset(t.Context(), from("m"), " Ada"); err != nil {
		t.Fatal(err)
	}
	// Letters go out in order: the first is the only one that was due.
	if <-b.sent; len(b.to) != 1 || b.to[0] != "ada@mail.example" {
		t.Fatal(b.to)
	}
	_, rest, ok := strings.Cut(b.text[0], "https://portal.example/reset?link=")
	secret, _, _ := strings.Cut(rest, "\n")
	if !ok || !strings.Contains(b.text[0], "ada") || strings.Contains(b.text[0], password) || strings.Contains(b.subject[0], "ags") {
		t.Errorf("%s: %s", b.subject[0], b.text[0])
	}
	if a, err := w.Reset(t.Context(), from("r"), secret, "an entirely new one"); err != nil || a.Name != "ada" {
		t.Error(a, err)
	}
	down := open(t, func(c *account.Config) { c.Mailer = &box{fail: errors.New("the server is down")} })
	go down.Run(t.Context())
	down.add("ada", false)
	if err := down.MailReset(t.Context(), from("m"), "ada"); err != nil {
		t.Error("a mail that fails tells that the account exists:", err)
	}
	kind(t, "no mailer", open(t).MailReset(t.Context(), from("m"), "ada"), fault.Unavailable)
}

// A stranger may ask for links of a person: the earlier links stay valid, and at most ten mails are sent.
func TestMailReset_OthersVoidNoLink(t *testing.T) {
	t.Parallel()
	b := &box{sent: make(chan struct{}, 64)}
	w := open(t, func(c *account.Config) { c.Mailer = b })
	w.add("ada", false)
	w.add("bob", false)
	done := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	go func() { defer close(done); w.Run(ctx) }()
	ask := func(name string) {
		t.Helper()
		if err := w.MailReset(t.Context(), from(ident.NewID()), name); err != nil {
			t.Fatal(err)
		}
	}
	ask("ada")
	<-b.sent
	for range 9 {
		ask("ada")
		<-b.sent
	}
	a, _ := w.db.AccountByName(t.Context(), "ada")
	for range 3 { // the limit of requests has room again after a restart
		w2 := on(t, w.db, func(c *account.Config) { c.Mailer = b })
		go w2.Run(ctx)
		if err := w2.MailReset(t.Context(), from("x"), "ada"); err != nil {
			t.Fatal(err)
		}
		if err := w2.MailReset(t.Context(), from("x"), "bob"); err != nil {
			t.Fatal(err)
		}
		<-b.sent // bob's, which comes after
	}
	stop()
	<-done
	if links, err := w.db.ListCredentials(t.Context(), a.ID, account.ResetCredential); err != nil || len(links) != 10 || len(b.to) != 13 {
		t.Errorf("%d links, %d mails, %v", len(links), len(b.to), err)
	}
	_, rest, _ := strings.Cut(b.text[0], "link=")
	secret, _, _ := strings.Cut(rest, "\n")
	if _, err := w.Reset(t.Context(), from("r"), secret, "an entirely new one"); err != nil {
		t.Error("the first link:", err)
	}
	if links, _ := w.db.ListCredentials(t.Context(), a.ID, account.ResetCredential); len(links) != 0 {
		t.Errorf("%d links are left", len(links))
	}
}

func TestMailReset_LimitedByNameAndAddress(t *testing.T) {
	t.Parallel()
	b := &box{sent: make(chan struct{}, 64)}
	w := open(t, func(c *account.Config) { c.Mailer = b })
	w.add("ada", false)
	for i := range 12 {
		err := w.MailReset(t.Context(), from(ident.NewID()), strings.Repeat(" ", i)+"ada")
		if limited := fault.Is(err, fault.RateLimited); limited != (i >= 10) {
			t.Errorf("request %d: %v", i, err)
		}
	}
	go w.Run(t.Context())
	for range 10 {
		<-b.sent
	}
	for i := range 31 {
		err := w.MailReset(t.Context(), from("one"), ident.NewID())
		if limited := fault.Is(err, fault.RateLimited); limited != (i >= 30) {
			t.Errorf("request %d: %v", i, err)
		}
	}
}

func TestGuest_HasASessionOfItsOwn(t *testing.T) {
	t.Parallel()
	w := open(t)
	s1, g1, err := w.StartGuest(t.Context(), from("g"))
	if err != nil {
		t.Fatal(err)
	}
	_, g2, err := w.StartGuest(t.Context(), from("g"))
	if err != nil || g1.ID == "" || g1.ID == g2.ID || g1.Kind != ident.Guest || g1.Addr != "g" || g1.IsPerson() {
		t.Fatalf("%+v %+v %v", g1, g2, err)
	}
	if again := w.actor(s1); again.ID != g1.ID {
		t.Error("the visitor is somebody else")
	}
	for what, err := range map[string]error{"everywhere": w.LogOutEverywhere(t.Context(), g1), "password": w.ChangePassword(t.Context(), g1, "", password), "revoke": w.RevokeToken(t.Context(), g1, g2.ID)} {
		kind(t, what, err, fault.Unauthenticated)
	}
	ctx := w.guard(g1)
	if err := w.LogOut(t.Context(), g1); err != nil {
		t.Fatal(err)
	}
	w.void("a guest who left", s1)
	w.ended("a guest who left", ctx, true)
	for range 28 {
		if _, _, err := w.StartGuest(t.Context(), from("g")); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err = w.StartGuest(t.Context(), from("g"))
	kind(t, "one visitor too many", err, fault.RateLimited)
}

func TestGuest_OffMeansNobody(t *testing.T) {
	t.Parallel()
	w := open(t)
	secret, _, err := w.StartGuest(t.Context(), from("g"))
	if err != nil {
		t.Fatal(err)
	}
	off := on(t, w.db, func(c *account.Config) { c.Guests = false })
	_, a, err := off.StartGuest(t.Context(), from("g"))
	kind(t, "a new visitor", err, fault.Unauthenticated)
	if a.ID != "" {
		t.Errorf("%+v", a)
	}
	off.void("a visitor of before", secret)
}

func TestSignUp_LimitRefills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A closed portal refuses after the limit was asked, before the store.
		closed := account.New(nil, account.Config{Policy: account.Closed})
		for range 20 {
			closed.SignUp(t.Context(), from("a"), account.SignUp{})
		}
		_, err := closed.SignUp(t.Context(), from("a"), account.SignUp{})
		f := fault.As(err)
		if f.Kind != fault.RateLimited || f.RetryAfter != time.Minute {
			t.Fatal(err)
		}
		time.Sleep(f.RetryAfter)
		_, err = closed.SignUp(t.Context(), from("a"), account.SignUp{})
		kind(t, "after the wait", err, fault.Forbidden)
		_, err = closed.SignUp(t.Context(), from("a"), account.SignUp{})
		kind(t, "and once more", err, fault.RateLimited)
	})
}

// A token that a token made ends with it and no later, however long the chain is.
func TestToken_EndsWithItsMaker(t *testing.T) {
	t.Parallel()
	w := open(t)
	ada := w.add("ada", false)
	a, _ := w.session("ada")
	brief, err := w.CreateToken(t.Context(), a, account.NewToken{Label: "one", Life: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	one := w.actor(brief)
	chain := []ident.Actor{one}
	secrets := []string{brief}
	for range 3 {
		next, secret := w.token(chain[len(chain)-1])
		chain, secrets = append(chain, next), append(secrets, secret)
	}
	beside, _ := w.token(a) // made by the session, so it stays
	list, err := w.db.ListCredentials(t.Context(), ada.ID, account.TokenCredential)
	if err != nil || len(list) != 5 {
		t.Fatalf("%v %v", list, err)
	}
	first := list[slices.IndexFunc(list, func(c account.Credential) bool { return c.ID == one.Credential })]
	for i, c := range list {
		if c.ID == beside.Credential {
			if c.Parent != "" || !c.ExpiresAt.After(first.ExpiresAt) {
				t.Errorf("the session's own: %+v", c)
			}
			continue
		}
		if c.ID != one.Credential && (c.Parent == "" || c.ExpiresAt.After(first.ExpiresAt)) {
			t.Errorf("%d ends at %v, its maker at %v; parent %q", i, c.ExpiresAt, first.ExpiresAt, c.Parent)
		}
	}
	last := w.guard(chain[3])
	if err := w.RevokeToken(t.Context(), a, one.Credential); err != nil {
		t.Fatal(err)
	}
	for i, s := range secrets {
		w.void(fmt.Sprint("token ", i, " of the chain"), s)
	}
	w.ended("a stream of the last one", last, true)
	if left, _ := w.Tokens(t.Context(), a); len(left) != 1 || left[0].ID != beside.Credential {
		t.Errorf("left: %+v", left)
	}
	// Proved a moment before it was revoked, it makes no token that outlives it.
	_, err = w.CreateToken(t.Context(), one, account.NewToken{})
	kind(t, "a revoked maker", err, fault.Unauthenticated)
}

func TestToken_ExpiredMakesNone(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.add("ada", false)
	a, _ := w.session("ada")
	tok, secret := w.token(a)
	if err := w.db.Touch(t.Context(), ident.HashSecret(secret), clock.Now(), clock.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	_, err := w.CreateToken(t.Context(), tok, account.NewToken{})
	kind(t, "an expired maker", err, fault.Unauthenticated)
}

// The count is kept in the transaction: of racing requests at the bound one is refused each.
func TestToken_RacingAtTheBound(t *testing.T) {
	t.Parallel()
	w := open(t, func(c *account.Config) { c.MaxTokens = 5 })
	w.add("ada", false)
	a, _ := w.session("ada")
	for range 4 {
		w.token(a)
	}
	errs := make(chan error, 8)
	for range 8 {
		go func() {
			_, err := w.CreateToken(t.Context(), a, account.NewToken{})
			errs <- err
		}()
	}
	made := 0
	for range 8 {
		if err := <-errs; err == nil {
			made++
		} else if !fault.Is(err, fault.Conflict) {
			t.Error(err)
		}
	}
	if list, _ := w.Tokens(t.Context(), a); made != 1 || len(list) != 5 {
		t.Errorf("%d were made, %d tokens now", made, len(list))
	}
}

// A sign-in beyond the bound ends the session used least recently, so that a right password always signs in.
func TestStartSession_EndsTheOldestBeyondTheBound(t *testing.T) {
	t.Parallel()
	w := open(t, func(c *account.Config) { c.MaxSessions = 3 })
	ada := w.add("ada", false)
	w.add("bob", false)
	_, bob := w.session("bob")
	var secrets []string
	for range 3 {
		s, err := w.StartSession(t.Context(), ada)
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, s)
	}
	// The others are in use, so the second is the least recently used.
	for _, i := range []int{0, 2} {
		if err := w.db.Touch(t.Context(), ident.HashSecret(secrets[i]), clock.Now().Add(time.Minute), clock.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	second := w.guard(w.actor(secrets[1]))
	if _, err := w.StartSession(t.Context(), ada); err != nil {
		t.Fatal(err)
	}
	w.void("the oldest", secrets[1])
	w.ended("its stream", second, true)
	w.actor(secrets[0])
	w.actor(secrets[2])
	w.actor(bob)
}

// A stream ends when the token with which it was opened expires, without a revocation.
func TestGuard_EndsWhenTheTokenExpires(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.add("ada", false)
	a, _ := w.session("ada")
	secret, err := w.CreateToken(t.Context(), a, account.NewToken{Label: "brief", Life: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	lasting, _ := w.token(a)
	brief, token, mine := w.guard(w.actor(secret)), w.guard(lasting), w.guard(a)
	<-brief.Done()
	w.void("the expired token", secret)
	w.ended("the stream of another token", token, false)
	w.ended("the stream of a session", mine, false)
}

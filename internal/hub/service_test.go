package hub_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

func TestSecret_SealedForThisAgentAndNeverShown(t *testing.T) {
	t.Parallel()
	w := open(t)
	a := w.publish(w.ada, draft("helper", func(d *hub.Draft) { d.Secret = ptr("sk-canary") }))
	b := w.publish(w.ada, draft("other"))
	if !a.HasSecret || b.HasSecret {
		t.Error("HasSecret is wrong")
	}
	for _, v := range []any{a, w.prober.says} {
		if j, _ := json.Marshal(v); strings.Contains(string(j), "canary") {
			t.Errorf("%s", j)
		}
	}
	sealed, err := w.db.SealedSecret(t.Context(), a.ID)
	if err != nil || strings.Contains(string(sealed), "canary") {
		t.Error(err)
	}
	if _, err := w.keys.Open(sealed, b.ID); err == nil {
		t.Error("another agent opens it")
	}
	if _, s, err := w.Open(t.Context(), a.ID); err != nil || s != "sk-canary" {
		t.Error(s, err)
	}
	if asked := w.prober.asked[0]; asked.Secret != "sk-canary" {
		t.Error("the exchange was made without the credential")
	}
}

func TestSecret_StaysWithItsOrigin(t *testing.T) {
	t.Parallel()
	w := open(t)
	a := w.publish(w.ada, draft("helper", func(d *hub.Draft) { d.Secret = ptr("sk-canary") }))
	update := func(d hub.Draft) hub.Agent {
		t.Helper()
		a, err := w.Update(t.Context(), w.ada, "helper", d)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	secret := func() string {
		t.Helper()
		_, s, err := w.Open(t.Context(), a.ID)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if got := update(hub.Draft{Endpoint: ptr("https://models.example/v2"), Title: ptr("New")}); !got.HasSecret || secret() != "sk-canary" {
		t.Error("another path of the same origin lost the credential")
	}
	for _, to := range []string{"https://models.example:444/v1", "https://evil.example/v1", "https://models.example.evil.example/v1"} {
		if got := update(hub.Draft{Endpoint: &to}); got.HasSecret || secret() != "" {
			t.Errorf("the credential went along to %s", to)
		}
		if got := update(hub.Draft{Endpoint: &to, Secret: ptr("sk-" + to)}); !got.HasSecret || secret() != "sk-"+to {
			t.Error("a new credential was not taken")
		}
	}
	// Going back does not bring the old one back.
	if got := update(hub.Draft{Endpoint: ptr("https://models.example/v1")}); got.HasSecret || secret() != "" {
		t.Error("a dropped credential is back")
	}
	update(hub.Draft{Secret: ptr("x")})
	if got := update(hub.Draft{Secret: ptr("")}); got.HasSecret || secret() != "" {
		t.Error("an empty credential does not remove the old one")
	}
	for _, asked := range w.prober.asked {
		if asked.Secret == "sk-canary" && !strings.HasPrefix(asked.Endpoint, "https://models.example/") {
			t.Errorf("sent to %s", asked.Endpoint)
		}
	}
}

func TestUpdate_ConflictsWithAnEditInBetween(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.publish(w.ada, draft("helper"))
	a, err := w.Update(t.Context(), w.ada, "helper", hub.Draft{Title: ptr("Second"), BaseVersion: 1})
	if err != nil || a.Version != 2 || a.Description != "It helps." {
		t.Fatal(a, err)
	}
	_, err = w.Update(t.Context(), w.ada, "helper", hub.Draft{Title: ptr("Late"), BaseVersion: 1})
	kind(t, "an edit of an old version", err, fault.Conflict)
	_, err = w.Update(t.Context(), w.ada, "helper", hub.Draft{Name: ptr("renamed")})
	if f := fault.As(err); f.Kind != fault.Invalid || f.Fields["name"] == "" {
		t.Error(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for i := range 8 {
		wg.Go(func() {
			_, err := w.Update(t.Context(), w.ada, "helper", hub.Draft{Title: ptr(fmt.Sprint(i)), BaseVersion: 2})
			if err != nil && !fault.Is(err, fault.Conflict) {
				t.Error(err)
			}
			if err == nil {
				mu.Lock()
				done++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	list, _, err := w.Versions(t.Context(), w.bob, "helper", 0)
	if done != 1 || err != nil || len(list) != 3 || list[0].Version != 3 || list[2].Title != "helper" {
		t.Errorf("%d edits went through: %v %v", done, list, err)
	}
}

func TestDelete_NameIsNeverGivenAway(t *testing.T) {
	t.Parallel()
	w := open(t)
	a := w.publish(w.ada, draft("helper", func(d *hub.Draft) { d.Secret = ptr("k") }))
	kind(t, "somebody else", w.Delete(t.Context(), w.bob, "helper"), fault.Forbidden)
	if err := w.Delete(t.Context(), w.ada, "helper"); err != nil {
		t.Fatal(err)
	}
	_, err := w.Get(t.Context(), w.ada, "helper")
	kind(t, "get", err, fault.NotFound)
	_, _, err = w.Open(t.Context(), a.ID)
	kind(t, "open", err, fault.NotFound)
	if w.found() != "" || w.Count() != 0 {
		t.Error("it is still found")
	}
	for _, who := range []ident.Actor{w.ada, w.bob, w.boss} {
		_, err := w.Publish(t.Context(), who, draft("helper"))
		if f := fault.As(err); f == nil || f.Kind != fault.Conflict || f.Fields["name"] == "" {
			t.Error(who.Name, err)
		}
	}
	_, err = w.Publish(t.Context(), w.ada, draft("bob"))
	kind(t, "a person's name", err, fault.Conflict)
	// A verdict that comes late does not bring it back.
	w.Observe(t.Context(), a.ID, hub.Liveness{State: hub.Alive, CheckedAt: clock.Now()})
	if w.found() != "" {
		t.Error("a late verdict lists a removed agent")
	}
}

func TestVisibility_WhoSeesWhat(t *testing.T) {
	t.Parallel()
	w := open(t)
	of := func(v hub.Visibility) func(*hub.Draft) { return func(d *hub.Draft) { d.Visibility = &v } }
	w.publish(w.ada, draft("open-one", of(hub.Public)))
	w.publish(w.ada, draft("by-name", of(hub.Unlisted)))
	w.publish(w.ada, draft("mine-only", of(hub.Private)))
	w.publish(w.ada, draft("at-rest"))
	if _, err := w.Update(t.Context(), w.ada, "at-rest", hub.Draft{Status: &hub.Status{State: hub.Withdrawn, Message: "Use\x00 another."}}); err != nil {
		t.Fatal(err)
	}
	guest := ident.Actor{Kind: ident.Guest, ID: ident.NewID()}
	narrowBoss := narrowed(w.boss, ident.AgentsRead, ident.AgentsWrite)
	for who, c := range map[string]struct {
		actor     ident.Actor
		get, call string // of open-one, by-name, mine-only, at-rest: y yes, - not found, x conflict
	}{
		"guest": {guest, "yy-y", "yy-x"}, "nobody": {ident.Actor{}, "yy-y", "yy-x"}, "bob": {w.bob, "yy-y", "yy-x"},
		"ada": {w.ada, "yyyy", "yyyx"}, "operator": {w.boss, "yyyy", "yy-x"}, "operator without admin": {narrowBoss, "yy-y", "yy-x"},
		"ada's chat token": {narrowed(w.ada, ident.ChatWrite), "yyyy", "yyyx"},
	} {
		var get, call string
		mark := func(err error) string {
			switch {
			case err == nil:
				return "y"
			case fault.Is(err, fault.NotFound):
				return "-"
			case fault.Is(err, fault.Conflict):
				return "x"
			}
			t.Error(who, err)
			return "?"
		}
		for _, name := range []string{"open-one", "by-name", "mine-only", "at-rest"} {
			_, err := w.Get(t.Context(), c.actor, name)
			get += mark(err)
			_, err = w.Callable(t.Context(), c.actor, name+"@HOME.example")
			call += mark(err)
		}
		if get != c.get || call != c.call {
			t.Errorf("%s sees %s and calls %s, want %s and %s", who, get, call, c.get, c.call)
		}
	}
	if got := w.found(); got != "open-one" {
		t.Errorf("a search finds %q", got)
	}
	// Absent and hidden look alike.
	_, hidden := w.Get(t.Context(), w.bob, "mine-only")
	_, absent := w.Get(t.Context(), w.bob, "no-such-1")
	if strings.ReplaceAll(hidden.Error(), "mine-only", "X") != strings.ReplaceAll(absent.Error(), "no-such-1", "X") {
		t.Errorf("%v\n%v", hidden, absent)
	}
	_, err := w.Update(t.Context(), w.bob, "mine-only", hub.Draft{Title: ptr("x")})
	kind(t, "edit what is hidden", err, fault.NotFound)
	_, _, err = w.Versions(t.Context(), w.bob, "mine-only", 0)
	kind(t, "versions of what is hidden", err, fault.NotFound)
	_, err = w.Get(t.Context(), w.ada, "open-one@elsewhere.example")
	kind(t, "another portal's", err, fault.NotFound)
	_, err = w.Get(t.Context(), narrowed(w.ada, ident.ChatRead), "open-one")
	kind(t, "without a scope", err, fault.Forbidden)
	_, err = w.Search(t.Context(), narrowed(w.ada, ident.ChatWrite), hub.Query{})
	kind(t, "search without the scope", err, fault.Forbidden)

	// What becomes private leaves the search, and its private versions stay so.
	if _, err := w.Update(t.Context(), w.ada, "open-one", hub.Draft{Visibility: ptr(hub.Private), Description: ptr("A secret plan.")}); err != nil || w.found() != "" {
		t.Error(err, w.found())
	}
	if _, err := w.Update(t.Context(), w.ada, "open-one", hub.Draft{Visibility: ptr(hub.Public), Description: ptr("Out.")}); err != nil {
		t.Fatal(err)
	}
	if list, _, err := w.Versions(t.Context(), w.bob, "open-one", 0); err != nil || len(list) != 2 {
		t.Errorf("a stranger sees %d versions: %v", len(list), err)
	}
	if list, _, err := w.Versions(t.Context(), w.ada, "open-one", 0); err != nil || len(list) != 3 {
		t.Errorf("the owner sees %d versions: %v", len(list), err)
	}
}

func TestEdit_OwnerAndOperatorOnly(t *testing.T) {
	t.Parallel()
	w := open(t)
	a := w.publish(w.ada, draft("helper"))
	for who, c := range map[string]struct {
		actor ident.Actor
		want  fault.Kind
	}{
		"bob": {w.bob, fault.Forbidden}, "guest": {ident.Actor{Kind: ident.Guest, ID: ident.NewID()}, fault.Unauthenticated},
		"operator without admin": {narrowed(w.boss, ident.AgentsWrite), fault.Forbidden}, "ada's reader": {narrowed(w.ada, ident.AgentsRead, ident.Admin), fault.Forbidden},
	} {
		_, err := w.Update(t.Context(), c.actor, "helper", hub.Draft{Title: ptr("Mine now")})
		kind(t, who+" updates", err, c.want)
		_, err = w.Check(t.Context(), c.actor, "helper")
		kind(t, who+" checks", err, c.want)
		kind(t, who+" deletes", w.Delete(t.Context(), c.actor, "helper"), c.want)
		if a.MayEdit(c.actor) {
			t.Errorf("%s is shown an edit button", who)
		}
	}
	if b, err := w.Update(t.Context(), w.boss, "helper", hub.Draft{Title: ptr("By the operator")}); err != nil || b.OwnerID != w.ada.ID {
		t.Error(b, err)
	}
	if _, err := w.Check(t.Context(), w.ada, "helper"); err != nil || !a.MayEdit(w.ada) || !a.MayEdit(w.boss) {
		t.Error(err)
	}
	err := w.Each(t.Context(), narrowed(w.boss, ident.AgentsRead), func(hub.Agent) bool { t.Error("shown"); return true })
	kind(t, "each without admin", err, fault.Forbidden)
	_, _, err = w.Mine(t.Context(), narrowed(w.ada, ident.ChatRead), "")
	kind(t, "mine without the scope", err, fault.Forbidden)
}

func TestUpdate_WithdrawWorksWhateverBecameOfTheRest(t *testing.T) {
	t.Parallel()
	w := open(t)
	now := clock.Now()
	// An agent as an older version with other rules stored it.
	old := hub.Agent{ID: ident.NewID(), Name: "oldie", Title: "Oldie", Kind: "cobol", OwnerID: w.ada.ID, Visibility: hub.Public, Version: 1,
		Status: hub.Status{State: hub.Active}, CreatedAt: now, UpdatedAt: now}
	if err := w.db.CreateAgent(t.Context(), old, nil); err != nil {
		t.Fatal(err)
	}
	_, err := w.Update(t.Context(), w.ada, "oldie", hub.Draft{Status: &hub.Status{State: "gone"}})
	kind(t, "a state there is not", err, fault.Invalid)
	a, err := w.Update(t.Context(), w.ada, "oldie", hub.Draft{Status: &hub.Status{State: hub.Withdrawn, Message: "Bye\u202e."}})
	if err != nil || a.Status.State != hub.Withdrawn || a.Status.Message != "Bye." {
		t.Error(a, err)
	}
	_, _, err = w.Open(t.Context(), a.ID)
	kind(t, "work for it", err, fault.Conflict)
}

func TestBuiltin_EnsuredOnceAndVersioned(t *testing.T) {
	t.Parallel()
	w := open(t)
	d := hub.Draft{Name: ptr("calc"), Title: ptr("Calc"), Description: ptr("Reckons."), Kind: ptr(hub.Builtin)}
	for range 3 {
		if err := w.EnsureBuiltin(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	a, err := w.Get(t.Context(), w.bob, "calc")
	if err != nil || a.Version != 1 || a.Kind != hub.Builtin || a.OwnerID != "" || a.Liveness.State != hub.Alive || w.TextGoesTo(a) != "" {
		t.Fatalf("%+v %v", a, err)
	}
	d.Description = ptr("Reckons better.")
	for range 2 {
		if err := w.EnsureBuiltin(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := w.Get(t.Context(), w.bob, "calc"); err != nil || b.Version != 2 || b.ID != a.ID || b.Description != "Reckons better." {
		t.Errorf("%+v %v", b, err)
	}
	for _, who := range []ident.Actor{w.ada, w.boss} {
		_, err := w.Update(t.Context(), who, "calc", hub.Draft{Title: ptr("Mine")})
		kind(t, who.Name+" updates", err, fault.Forbidden)
		kind(t, who.Name+" deletes", w.Delete(t.Context(), who, "calc"), fault.Forbidden)
		if a.MayEdit(who) {
			t.Error(who.Name, "may edit")
		}
	}
	_, err = w.Publish(t.Context(), w.ada, draft("calc"))
	kind(t, "its name", err, fault.Conflict)
}

func TestBuiltin_IsRetiredAndComesBack(t *testing.T) {
	t.Parallel()
	w := open(t)
	// A word of the portal, which it may give an agent of its own.
	d := hub.Draft{Name: ptr("conformance"), Description: ptr("For tests."), Kind: ptr(hub.Builtin), Visibility: ptr(hub.Public)}
	if err := w.RetireBuiltin(t.Context(), "conformance"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.EnsureBuiltin(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Get(t.Context(), w.bob, "conformance"); err != nil {
			t.Error(err)
		}
		for range 2 {
			if err := w.RetireBuiltin(t.Context(), "conformance"); err != nil {
				t.Fatal(err)
			}
		}
		_, err := w.Get(t.Context(), w.bob, "conformance")
		kind(t, "a retired agent", err, fault.NotFound)
	}
	mine := w.publish(w.ada, draft("bot"))
	if err := w.RetireBuiltin(t.Context(), "bot"); err != nil {
		t.Fatal(err)
	}
	if a, err := w.Get(t.Context(), w.bob, "bot"); err != nil || a.Version != mine.Version {
		t.Errorf("somebody's agent: %+v %v", a, err)
	}
	_, err := w.Publish(t.Context(), w.ada, draft("conformance"))
	kind(t, "reserved by the portal", err, fault.Invalid)
}

func TestBuiltin_StaysOffWhereItsNameIsTaken(t *testing.T) {
	t.Parallel()
	w := open(t)
	mine := w.publish(w.ada, draft("calc"))
	w.publish(w.ada, draft("guide-1"))
	if err := w.Delete(t.Context(), w.ada, "guide-1"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"calc", "guide-1", "bob"} {
		if err := w.EnsureBuiltin(t.Context(), hub.Draft{Name: &name, Description: ptr("x"), Kind: ptr(hub.Builtin)}); err != nil {
			t.Errorf("a portal on which %s is taken does not start: %v", name, err)
		}
	}
	if a, err := w.Get(t.Context(), w.bob, "calc"); err != nil || a.ID != mine.ID || a.Kind != hub.OpenAI || a.Version != 1 {
		t.Errorf("%+v %v", a, err)
	}
}

func TestPublish_BoundedPerOwner(t *testing.T) {
	t.Parallel()
	w := open(t)
	now := clock.Now()
	for i := range hub.MaxAgentsPerOwner {
		a := hub.Agent{ID: ident.NewID(), Name: fmt.Sprint("a", i), Title: "x", Kind: hub.OpenAI, OwnerID: w.ada.ID, Visibility: hub.Private, Version: 1,
			Status: hub.Status{State: hub.Active}, Liveness: hub.Liveness{CheckedAt: now}, CreatedAt: now, UpdatedAt: now}
		if err := w.db.CreateAgent(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
	}
	_, err := w.Publish(t.Context(), w.ada, draft("one-more"))
	kind(t, "one too many", err, fault.Conflict)
	w.publish(w.bob, draft("bobs"))
	if err := w.Delete(t.Context(), w.ada, "a0"); err != nil {
		t.Fatal(err)
	}
	w.publish(w.ada, draft("one-more"))
}

func TestOwnerChanged_TakesAgentsOutOfTheSearchAndBack(t *testing.T) {
	t.Parallel()
	w := open(t)
	a := w.publish(w.ada, draft("helper"))
	w.publish(w.ada, draft("hidden", func(d *hub.Draft) { d.Visibility = ptr(hub.Unlisted) }))
	if err := w.db.SetDisabled(t.Context(), w.ada.ID, clock.Now(), w.boss); err != nil {
		t.Fatal(err)
	}
	if err := w.OwnerChanged(t.Context(), w.ada.ID, true); err != nil || w.found() != "" {
		t.Error(err, w.found())
	}
	_, err := w.Get(t.Context(), w.bob, "helper")
	kind(t, "of a disabled owner", err, fault.NotFound)
	_, _, err = w.Open(t.Context(), a.ID)
	kind(t, "work for it", err, fault.NotFound)
	w.Observe(t.Context(), a.ID, hub.Liveness{State: hub.Alive, CheckedAt: clock.Now()})
	if w.found() != "" {
		t.Error("a verdict lists an agent of a disabled owner")
	}
	if err := w.db.SetDisabled(t.Context(), w.ada.ID, time.Time{}, w.boss); err != nil {
		t.Fatal(err)
	}
	if err := w.OwnerChanged(t.Context(), w.ada.ID, false); err != nil || w.found() != "helper" {
		t.Error(err, w.found())
	}
}

func TestSearch_RefusesWhatIsOutOfBounds(t *testing.T) {
	t.Parallel()
	w := open(t)
	for field, q := range map[string]hub.Query{"q": {Text: strings.Repeat("x", 501)}, "limit": {Limit: 101}, "live": {Live: []string{"asleep"}}, "cursor": {Cursor: strings.Repeat("x", 501)}} {
		_, err := w.Search(t.Context(), w.bob, q)
		if f := fault.As(err); f == nil || f.Kind != fault.Invalid || f.Fields[field] == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
	_, err := w.Search(t.Context(), w.bob, hub.Query{Limit: -1})
	kind(t, "a negative limit", err, fault.Invalid)
	_, err = w.Search(t.Context(), w.bob, hub.Query{Cursor: "garbage"})
	kind(t, "a made-up cursor", err, fault.Invalid)
}

func TestUpdate_TheSameCredentialAgainChangesNothing(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.publish(w.ada, draft("helper", func(d *hub.Draft) { d.Secret = ptr("sk-1") }))
	a, err := w.Update(t.Context(), w.ada, "helper", draft("helper", func(d *hub.Draft) { d.Secret = ptr("sk-1") }))
	if err != nil || a.Version != 1 {
		t.Errorf("version %d, %v", a.Version, err)
	}
	if a, err = w.Update(t.Context(), w.ada, "helper", hub.Draft{Secret: ptr("sk-2")}); err != nil || a.Version != 2 {
		t.Errorf("another: version %d, %v", a.Version, err)
	}
	if _, s, err := w.Open(t.Context(), a.ID); err != nil || s != "sk-2" {
		t.Error(s, err)
	}
	// At another site the same words are a new credential.
	if a, err = w.Update(t.Context(), w.ada, "helper", hub.Draft{Endpoint: ptr("https://other.example/v1"), Secret: ptr("sk-2")}); err != nil || !a.HasSecret {
		t.Errorf("%+v, %v", a, err)
	}
}

// What search may not find is not listed, to its owner neither.
func TestListed_IsWhatSearchFinds(t *testing.T) {
	t.Parallel()
	w := open(t)
	for name, edit := range map[string]func(*hub.Draft){
		"shown":     func(*hub.Draft) {},
		"unlisted":  func(d *hub.Draft) { d.Visibility = ptr(hub.Unlisted) },
		"private":   func(d *hub.Draft) { d.Visibility = ptr(hub.Private) },
		"drafted":   func(d *hub.Draft) { d.Status = &hub.Status{State: hub.StatusDraft} },
		"withdrawn": func(d *hub.Draft) { d.Status = &hub.Status{State: hub.Withdrawn} },
	} {
		w.publish(w.ada, draft(name, edit))
		for who, actor := range map[string]ident.Actor{"guest": {Kind: ident.Guest}, "owner": w.ada} {
			a, err := w.Listed(t.Context(), actor, name)
			switch {
			case name == "shown" && (err != nil || a.Name != name):
				t.Errorf("%s: %v", who, err)
			case name != "shown":
				kind(t, name+" as "+who, err, fault.NotFound)
			}
		}
	}
	_, err := w.Listed(t.Context(), narrowed(w.ada, ident.ChatWrite), "shown")
	kind(t, "a token without the scope", err, fault.Forbidden)
}

// No agent of an account can pass for a built-in one or for an operator, by its name or its title, when it is registered
// or changed.
func TestPublish_RefusesNamesLikeBuiltIn(t *testing.T) {
	t.Parallel()
	w := open(t)
	if err := w.EnsureBuiltin(t.Context(), hub.Draft{Name: ptr("calc"), Title: ptr("Calculator"), Description: ptr("Reckons."),
		Kind: ptr(hub.Builtin)}); err != nil {
		t.Fatal(err)
	}
	mine := draft("loans")
	mine.Title = ptr("Loan calculator")
	if _, err := w.Publish(t.Context(), w.ada, mine); err != nil {
		t.Fatal(err)
	}
	for _, title := range []string{"Calculator", "CALC", "Calcu1ator", "Саlculаtor", "Calculator (official)", "Operator", "0perator"} {
		d := draft("other")
		d.Title = ptr(title)
		_, err := w.Publish(t.Context(), w.ada, d)
		kind(t, "registers "+title, err, fault.Invalid)
		_, err = w.Update(t.Context(), w.ada, "loans", hub.Draft{Title: ptr(title)})
		kind(t, "changes to "+title, err, fault.Invalid)
	}
	for _, name := range []string{"calculator", "ca1c", "ca-lc", "0perator"} {
		_, err := w.Publish(t.Context(), w.ada, draft(name))
		kind(t, "registers "+name, err, fault.Invalid)
	}
	if _, err := w.Update(t.Context(), w.ada, "loans", hub.Draft{Description: ptr("Of houses.")}); err != nil {
		t.Error("a change that leaves the title:", err)
	}
}

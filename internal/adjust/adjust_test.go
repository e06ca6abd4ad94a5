package adjust_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/adjust"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// memory is a Store in memory, and the password "right" of all people.
type memory struct {
	list  []adjust.Stored
	notes []string
}

func (m *memory) Settings(context.Context) ([]adjust.Stored, error) { return slices.Clone(m.list), nil }

func (m *memory) SaveSettings(_ context.Context, _ ident.Actor, changes []adjust.Change) error {
	for _, c := range changes {
		m.notes = append(m.notes, c.Name+": "+c.Note)
		next := adjust.Stored{Name: c.Name, Value: c.Value}
		for _, s := range m.list {
			if s.Name == c.Name {
				next.Previous, next.Had = s.Value, true
			}
		}
		m.list = slices.DeleteFunc(m.list, func(s adjust.Stored) bool { return s.Name == c.Name })
		if !c.Reset {
			m.list = append(m.list, next)
		}
	}
	return nil
}

func (m *memory) Confirm(_ context.Context, _ ident.Actor, password string) error {
	if password != "right" {
		return fault.Field("confirm", "this is not your password")
	}
	return nil
}

func (m *memory) ConfirmFresh(context.Context, ident.Actor) error { return nil }

var operator = ident.Actor{Kind: ident.Operator, ID: "op", Scopes: []ident.Scope{ident.Admin}}

func open() (*adjust.Service, *adjust.Snapshot, *memory) {
	m := new(memory)
	values := adjust.Values{adjust.Accounts: "open", adjust.Guests: "on", adjust.Name: "One"}
	live := adjust.NewSnapshot(values)
	return adjust.New(adjust.Config{Store: m, Snapshot: live, Given: adjust.Values{adjust.Guests: "--guests"},
		Started: values, Defaults: values, Passwords: m,
		Check: func(name, value string) error {
			if strings.Contains(value, "bad") {
				return errors.New("--" + name + " is bad")
			}
			return nil
		}}), live, m
}

func TestChange_AppliesWhatIsLiveAndIsUndone(t *testing.T) {
	t.Parallel()
	s, live, m := open()
	ctx := t.Context()
	changed, err := s.Change(ctx, operator, "right", adjust.Values{adjust.Accounts: "closed", adjust.Name: "Two", adjust.Limits: "running=9"})
	if err != nil || !reflect.DeepEqual(changed, []string{adjust.Name, adjust.Accounts, adjust.Limits}) {
		t.Fatal(changed, err)
	}
	if live.Value(adjust.Accounts) != "closed" || live.NameOr("host") != "Two" || live.Value(adjust.Limits) != "" {
		t.Error("the wrong settings apply at once")
	}
	list, err := s.List(ctx, operator)
	limits := list[len(list)-1]
	if err != nil || list[0].Pending || list[0].Value != "Two" || list[0].Undo != "One" || !limits.Pending ||
		limits.Value != "running=9" {
		t.Errorf("%+v %v", list, err)
	}
	if !slices.Contains(m.notes, "accounts: open → closed") {
		t.Errorf("%q", m.notes)
	}
	if _, err := s.Change(ctx, operator, "right", adjust.Values{adjust.Accounts: "invite"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Undo(ctx, operator, "right", adjust.Accounts); err != nil || live.Value(adjust.Accounts) != "closed" {
		t.Error(live.Value(adjust.Accounts), err)
	}
	if err := s.Undo(ctx, operator, "right", adjust.Name); err != nil || slices.ContainsFunc(m.list, func(s adjust.Stored) bool {
		return s.Name == adjust.Name
	}) {
		t.Error("the default does not apply again", err)
	}
	if changed, err := s.Change(ctx, operator, "wrong", adjust.Values{adjust.Accounts: "closed"}); err != nil || changed != nil {
		t.Error("what stays asks for a password", changed, err)
	}
}

func TestChange_RefusesAndKeepsAll(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		actor    ident.Actor
		password string
		values   adjust.Values
		field    string
	}{
		"wrong password":  {operator, "wrong", adjust.Values{adjust.Accounts: "closed"}, "confirm"},
		"invalid":         {operator, "right", adjust.Values{adjust.Accounts: "closed", adjust.Limits: "bad"}, "limits"},
		"fixed by a flag": {operator, "right", adjust.Values{adjust.Guests: "off"}, "guests"},
		"a person":        {ident.Actor{Kind: ident.Person, ID: "p"}, "right", adjust.Values{adjust.Accounts: "closed"}, ""},
		"a visitor":       {ident.Actor{Kind: ident.Guest}, "right", adjust.Values{adjust.Accounts: "closed"}, ""},
	} {
		s, live, m := open()
		_, err := s.Change(t.Context(), tt.actor, tt.password, tt.values)
		if err == nil || tt.field != "" && fault.As(err).Fields[tt.field] == "" {
			t.Errorf("%s: %v", name, err)
		}
		if len(m.list) > 0 || live.Value(adjust.Accounts) != "open" || live.Value(adjust.Guests) != "on" {
			t.Errorf("%s: something was changed", name)
		}
		if err := s.Undo(t.Context(), tt.actor, tt.password, adjust.Accounts); err == nil {
			t.Errorf("%s: undone", name)
		}
	}
}

func TestSnapshot_NilLetsNobodyIn(t *testing.T) {
	t.Parallel()
	var s *adjust.Snapshot
	if s.AllowsGuests() || s.OpensAccounts() || s.NameOr("host") != "host" {
		t.Error("a part without settings lets people in")
	}
}

// Package adjust holds the settings that an operator may change in the browser: it checks a change, has it stored with
// an entry in the operators' log, and publishes the settings that apply at once. It does not know the meaning of a
// value; the check that flags go through decides whether it is valid. A flag or an environment variable wins over a
// stored value.
package adjust

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Names of the settings.
const (
	Name     = "name"
	Contact  = "contact"
	Rules    = "rules"
	Accounts = "accounts"
	Guests   = "guests"
	Limits   = "limits"
)

// Names returns the names of all settings, in the order of the page.
func Names() []string { return []string{Name, Contact, Rules, Accounts, Guests, Limits} }

// IsLive reports whether a change of a setting applies without a restart.
func IsLive(name string) bool { return name != Limits }

// On is the value of Guests, and Open that of Accounts, that let all visitors in.
const (
	On   = "on"
	Open = "open"
)

// Values are values of settings by name.
type Values map[string]string

// Snapshot is the settings in effect, replaced as a whole. A nil Snapshot has empty values. It is safe for concurrent
// use.
type Snapshot struct{ values atomic.Pointer[Values] }

// NewSnapshot returns a snapshot with values, which the caller must not change any more.
func NewSnapshot(values Values) *Snapshot {
	s := new(Snapshot)
	s.values.Store(&values)
	return s
}

// Value returns the value of a setting that is in effect.
func (s *Snapshot) Value(name string) string {
	if s == nil {
		return ""
	}
	return (*s.values.Load())[name]
}

// NameOr returns the name of the portal, or host if none is set.
func (s *Snapshot) NameOr(host string) string { return cmp.Or(s.Value(Name), host) }

// AllowsGuests reports whether visitors without an account may talk to agents.
func (s *Snapshot) AllowsGuests() bool { return s.Value(Guests) == On }

// OpensAccounts reports whether every visitor may create an account.
func (s *Snapshot) OpensAccounts() bool { return s.Value(Accounts) == Open }

// Stored is a setting as an operator made it.
type Stored struct {
	Name, Value string
	// Previous is the value before the last change; Had is false if there was none, so that the default applied.
	Previous string
	Had      bool
	At       time.Time
}

// Change is a new value of a setting. Reset removes it, so that the default applies again.
type Change struct {
	Name, Value string
	Reset       bool
	// Note describes the change in the operators' log.
	Note string
}

// Store stores settings. SaveSettings writes changes and their entries in the operators' log in one transaction.
type Store interface {
	Settings(ctx context.Context) ([]Stored, error)
	SaveSettings(ctx context.Context, by ident.Actor, changes []Change) error
}

// Config holds the parts of a Service.
type Config struct {
	Store    Store
	Snapshot *Snapshot
	// Given are the flags or environment variables that fix settings, by the name of the setting.
	Given Values
	// Started are the values with which the portal started, Defaults those of a portal without any settings.
	Started, Defaults Values
	// Check returns an error if a value is not valid for a setting.
	Check     func(name, value string) error
	Passwords Passwords
}

// Passwords checks that the person of a session acts.
type Passwords interface {
	// Confirm returns an error unless the password is that of the actor.
	Confirm(ctx context.Context, actor ident.Actor, password string) error
	// ConfirmFresh returns an error unless the actor gave the password a moment ago.
	ConfirmFresh(ctx context.Context, actor ident.Actor) error
}

// Service changes settings. It is safe for concurrent use.
type Service struct {
	cfg Config
	mu  sync.Mutex // held while changes are stored and published
}

// New returns a Service.
func New(cfg Config) *Service { return &Service{cfg: cfg} }

// State is a setting for the operator.
type State struct {
	Name  string
	Value string // the one to which it is set; applies after a restart if Pending
	// Given is the flag or environment variable that fixes it, "" if it can be changed.
	Given   string
	Pending bool
	// Changed is set if an operator changed it; Undo is the value before.
	Changed time.Time
	Undo    string
}

// List returns all settings. Only operators may call it.
func (s *Service) List(ctx context.Context, actor ident.Actor) ([]State, error) {
	if err := requireOperator(actor); err != nil {
		return nil, err
	}
	stored, err := s.stored(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]State, 0, len(Names()))
	for _, name := range Names() {
		st := State{Name: name, Given: s.cfg.Given[name], Value: s.cfg.Started[name]}
		if st.Given == "" {
			one, ok := stored[name]
			st.Value = s.cfg.Defaults[name]
			if ok {
				st.Value, st.Changed, st.Undo = one.Value, one.At, s.cfg.Defaults[name]
				if one.Had {
					st.Undo = one.Previous
				}
			}
			st.Pending = !IsLive(name) && st.Value != s.cfg.Started[name]
		}
		out = append(out, st)
	}
	return out, nil
}

func (s *Service) stored(ctx context.Context) (map[string]Stored, error) {
	list, err := s.cfg.Store.Settings(ctx)
	if err != nil {
		return nil, err
	}
	out := make(map[string]Stored, len(list))
	for _, one := range list {
		out[one.Name] = one
	}
	return out, nil
}

// Change stores the values that differ from those in effect, and returns the names of changed settings. Only operators
// may call it, with their password. Nothing is stored if one of the values is not valid.
func (s *Service) Change(ctx context.Context, actor ident.Actor, password string, values Values) ([]string, error) {
	return s.change(ctx, actor, values, &password)
}

// change is Change; password is nil if it was checked before.
func (s *Service) change(ctx context.Context, actor ident.Actor, values Values, password *string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes, err := s.changes(ctx, actor, values)
	if err != nil || len(changes) == 0 {
		return nil, err
	}
	return s.save(ctx, actor, password, changes)
}

// changes returns the changes to values that differ from those in effect, or an error if one is not valid.
func (s *Service) changes(ctx context.Context, actor ident.Actor, values Values) ([]Change, error) {
	list, err := s.List(ctx, actor)
	if err != nil {
		return nil, err
	}
	var c fault.Check
	var changes []Change
	for _, st := range list {
		value, ok := values[st.Name]
		value = clean(value)
		if !ok || value == st.Value {
			continue
		}
		c.Field(st.Given == "", st.Name, "%s fixes it; start the portal without it to change it here", st.Given)
		if err := s.cfg.Check(st.Name, value); err != nil {
			c.Field(false, st.Name, "%s", strings.TrimPrefix(err.Error(), "--"))
		}
		changes = append(changes, Change{Name: st.Name, Value: value, Note: note(st.Value, value)})
	}
	return changes, c.Err()
}

// CheckFresh returns the error with which ChangeFresh would refuse values. It stores nothing.
func (s *Service) CheckFresh(ctx context.Context, actor ident.Actor, values Values) error {
	if err := s.cfg.Passwords.ConfirmFresh(ctx, actor); err != nil {
		return err
	}
	_, err := s.changes(ctx, actor, values)
	return err
}

// ChangeFresh is Change for an operator that gave the password a moment ago, such as at sign-up.
func (s *Service) ChangeFresh(ctx context.Context, actor ident.Actor, values Values) ([]string, error) {
	if err := s.cfg.Passwords.ConfirmFresh(ctx, actor); err != nil {
		return nil, err
	}
	return s.change(ctx, actor, values, nil)
}

// Undo sets a setting to its value before the last change. Only operators may call it, with their password.
func (s *Service) Undo(ctx context.Context, actor ident.Actor, password, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := requireOperator(actor); err != nil {
		return err
	}
	stored, err := s.stored(ctx)
	if err != nil {
		return err
	}
	one, ok := stored[name]
	if !ok || s.cfg.Given[name] != "" {
		return fault.New(fault.NotFound, "There is no change of this setting to undo.")
	}
	change := Change{Name: name, Value: one.Previous, Reset: !one.Had}
	if change.Reset {
		change.Value = s.cfg.Defaults[name]
	} else if err := s.cfg.Check(name, change.Value); err != nil {
		return fault.New(fault.Conflict, "The value before is no longer valid: %s.", err)
	}
	change.Note = "undone: " + note(one.Value, change.Value)
	_, err = s.save(ctx, actor, &password, []Change{change})
	return err
}

// save stores and publishes changes; the caller holds mu.
func (s *Service) save(ctx context.Context, actor ident.Actor, password *string, changes []Change) ([]string, error) {
	if password != nil {
		if err := s.cfg.Passwords.Confirm(ctx, actor, *password); err != nil {
			return nil, err
		}
	}
	if err := s.cfg.Store.SaveSettings(ctx, actor, changes); err != nil {
		return nil, err
	}
	next := make(Values)
	for name, value := range *s.cfg.Snapshot.values.Load() {
		next[name] = value
	}
	var names []string
	for _, c := range changes {
		names = append(names, c.Name)
		if IsLive(c.Name) {
			next[c.Name] = c.Value
		}
	}
	s.cfg.Snapshot.values.Store(&next)
	return names, nil
}

func requireOperator(actor ident.Actor) error {
	if actor.IsOperator() && actor.May(ident.Admin) {
		return nil
	}
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Log in as the operator.")
	}
	return fault.New(fault.Forbidden, "Only the operator of this portal may do that.")
}

// clean returns a value as it is stored: browsers send line breaks of text areas as CR LF.
func clean(value string) string { return strings.TrimSpace(strings.ReplaceAll(value, "\r\n", "\n")) }

// note describes a change on one line for the operators' log.
func note(from, to string) string {
	brief := func(s string) string {
		if s = strings.Join(strings.Fields(s), " "); s == "" {
			return "empty"
		}
		if r := []rune(s); len(r) > 100 {
			return string(r[:100]) + "…"
		}
		return s
	}
	return brief(from) + " → " + brief(to)
}

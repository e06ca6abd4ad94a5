package models_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/models"
	"agentsite/internal/usage"
)

// memory is a store in memory that fails on demand.
type memory struct {
	rows map[string]models.Stored
	err  error
}

func (m *memory) AllModels(context.Context) (out []models.Stored, err error) {
	for _, r := range m.rows {
		out = append(out, r)
	}
	return out, m.err
}

func (m *memory) CreateModel(ctx context.Context, s models.Stored) error {
	return m.UpdateModel(ctx, s)
}

func (m *memory) UpdateModel(_ context.Context, s models.Stored) error {
	if m.err == nil {
		m.rows[s.ID] = s
	}
	return m.err
}

func (m *memory) DeleteModel(_ context.Context, id string) error {
	if m.err == nil {
		delete(m.rows, id)
	}
	return m.err
}

// sealer binds plain text to its context, readably.
type sealer struct{}

func (sealer) Seal(plain, bound string) []byte { return []byte(bound + "|" + plain) }

func (sealer) Open(sealed []byte, bound string) (string, error) {
	plain, ok := strings.CutPrefix(string(sealed), bound+"|")
	if !ok {
		return "", errors.New("sealed for another row")
	}
	return plain, nil
}

// private refuses addresses of a network that accounts may not reach.
type private struct{}

func (private) CheckURL(address string) error {
	if strings.Contains(address, "10.0.0.") {
		return errors.New("this address is private")
	}
	return nil
}

var (
	ada  = ident.Actor{Kind: ident.Person, ID: "ada", Name: "ada"}
	ben  = ident.Actor{Kind: ident.Person, ID: "ben", Name: "ben"}
	root = ident.Actor{Kind: ident.Operator, ID: "root", Name: "root"}
)

func open(t *testing.T, set *models.Model) (*models.Service, *memory) {
	t.Helper()
	m := &memory{rows: make(map[string]models.Stored)}
	return models.New(models.Config{Store: m, Sealer: sealer{}, Set: set, SetKey: "sk-set", Addresses: private{}}), m
}

func draft(name, url, model string) models.Draft {
	return models.Draft{Name: &name, URL: &url, Model: &model}
}

func create(t *testing.T, s *models.Service, by ident.Actor, d models.Draft, portal bool) models.Model {
	t.Helper()
	m, err := s.Create(t.Context(), by, d, portal)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFind_ChoosesTheOwnersModelFirst(t *testing.T) {
	set := &models.Model{Name: models.Default, URL: "http://127.0.0.1/v1", Model: "small-1", Fixed: true}
	for what, set := range map[string]*models.Model{"with a model in the settings": set, "without": nil} {
		s, _ := open(t, set)
		if _, ok := s.Find("ada", ""); ok != (set != nil) {
			t.Errorf("%s: a default is there: %v", what, ok)
		}
		if set == nil {
			create(t, s, root, draft("default", "http://10.0.0.1/v1", "small-1"), true)
		}
		create(t, s, root, draft("fast", "https://a.example/v1", "portal-fast"), true)
		create(t, s, ada, draft("fast", "https://b.example/v1", "adas-fast"), false)
		for _, tt := range [][3]string{{"ada", "fast", "adas-fast"}, {"ben", "fast", "portal-fast"}, {"", "fast", "portal-fast"},
			{"ada", "", "small-1"}, {"ben", "default", "small-1"}, {"ben", "none", ""}} {
			if m, ok := s.Find(tt[0], tt[1]); m.Model != tt[2] || ok != (tt[2] != "") {
				t.Errorf("%s: %q finds %+v", what, tt, m)
			}
		}
		if m, ok := s.Find("ben", "small-1"); ok != (set != nil) || ok && !m.Fixed {
			t.Errorf("%s: the name on the server: %+v", what, m)
		}
	}
}

func TestChain_FallsBackOnce(t *testing.T) {
	s, _ := open(t, nil)
	create(t, s, root, draft("big", "https://a.example/v1", "big"), true)
	create(t, s, ada, draft("spare", "https://b.example/v1", "spare"), false)
	d := draft("fast", "https://c.example/v1", "fast")
	spare, big, none := "spare", "big", "none"
	d.Fallback = &spare
	create(t, s, ada, d, false)
	if _, err := s.Update(t.Context(), ada, "spare", models.Draft{Fallback: &big}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"fast": "fast spare", "spare": "spare big", "big": "big", "none": ""} {
		var got []string
		for _, m := range s.Chain("ada", name) {
			got = append(got, m.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if _, err := s.Update(t.Context(), ada, "fast", models.Draft{Fallback: &none}); fault.As(err).Fields["fallback"] == "" {
		t.Errorf("an unknown fallback: %v", err)
	}
	// The portal's models do not fall back to an account's.
	if _, err := s.Update(t.Context(), root, "big", models.Draft{Fallback: &spare}); fault.As(err).Fields["fallback"] == "" {
		t.Errorf("the portal's falls back to an account's: %v", err)
	}
}

func TestServerOf_OpensTheKey(t *testing.T) {
	set := &models.Model{Name: models.Default, Provider: models.Anthropic, URL: "https://x.example/v1", Model: "m", Fixed: true}
	s, store := open(t, set)
	key := "sk-ada"
	d := draft("fast", "https://c.example/v1", "fast")
	d.Key = &key
	m := create(t, s, ada, d, false)
	if got, err := s.ServerOf(m); err != nil || got != (models.Server{Provider: models.OpenAI, URL: m.URL, Key: key}) {
		t.Errorf("%+v %v", got, err)
	}
	if got, err := s.ServerOf(*set); err != nil || got != (models.Server{Provider: models.Anthropic, URL: set.URL, Key: "sk-set"}) {
		t.Errorf("%+v %v", got, err)
	}
	// Another address needs the key again, because it would get the one of the first.
	other := "https://evil.example/v1"
	if _, err := s.Update(t.Context(), ada, "fast", models.Draft{URL: &other}); fault.As(err).Fields["key"] == "" {
		t.Errorf("%v", err)
	}
	path := "https://c.example/v2"
	if _, err := s.Update(t.Context(), ada, "fast", models.Draft{URL: &path}); err != nil {
		t.Error(err)
	}
	// Another process, or a start, reads the same.
	again := models.New(models.Config{Store: store, Sealer: sealer{}})
	if err := again.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, ok := again.Find("ada", "fast")
	if got, err := again.ServerOf(found); !ok || err != nil || got.Key != key || got.URL != path {
		t.Errorf("%+v %v", got, err)
	}
}

func TestChanges_AreTheOwners(t *testing.T) {
	set := &models.Model{Name: models.Default, URL: "https://x.example/v1", Model: "m", Fixed: true}
	s, store := open(t, set)
	create(t, s, root, draft("big", "https://a.example/v1", "big"), true)
	own := create(t, s, ada, draft("fast", "https://c.example/v1", "fast"), false)
	name := "quick"
	for _, tt := range []struct {
		by   ident.Actor
		name string
		kind fault.Kind
	}{{ben, "fast", fault.NotFound}, {ben, own.ID, fault.NotFound}, {ben, "big", fault.Forbidden}, {ident.Actor{}, "fast", fault.Unauthenticated},
		{ident.Actor{Kind: ident.Person, ID: "ada", Narrowed: true}, "fast", fault.Forbidden}, {root, models.Default, fault.Conflict}, {ben, models.Default, fault.Forbidden}} {
		_, err := s.Update(t.Context(), tt.by, tt.name, models.Draft{Name: &name})
		if derr := s.Delete(t.Context(), tt.by, tt.name); !fault.Is(err, tt.kind) || !fault.Is(derr, tt.kind) {
			t.Errorf("%s on %s: %v, %v", tt.by.ID, tt.name, err, derr)
		}
	}
	if _, err := s.Create(t.Context(), ben, draft("x", "https://a.example/v1", "m"), true); !fault.Is(err, fault.Forbidden) {
		t.Errorf("a portal's model of an account: %v", err)
	}
	if _, err := s.Create(t.Context(), root, draft("default", "https://a.example/v1", "m"), true); fault.As(err).Fields["name"] == "" {
		t.Errorf("a second default: %v", err)
	}
	store.err = errors.New("disk")
	if _, err := s.Update(t.Context(), ada, own.ID, models.Draft{Name: &name}); err == nil {
		t.Error("a change was not stored and succeeded")
	}
	store.err = nil
	if _, err := s.Update(t.Context(), ada, own.ID, models.Draft{Name: &name}); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Find("ada", "fast"); ok {
		t.Error("the old name still finds it")
	}
	list, err := s.List(t.Context(), ben)
	if err != nil || len(list) != 2 || list[0].URL != "" || list[1].URL != "" {
		t.Errorf("what another account sees: %+v %v", list, err)
	}
	if list, _ = s.List(t.Context(), ada); len(list) != 3 || list[2].URL == "" {
		t.Errorf("%+v", list)
	}
	if err := errors.Join(s.Delete(t.Context(), ada, "quick"), s.Delete(t.Context(), root, "big")); err != nil || len(store.rows) != 0 {
		t.Errorf("%v %v", err, store.rows)
	}
}

func TestCreate_ChecksEachField(t *testing.T) {
	s, _ := open(t, nil)
	bad := func(change func(*models.Draft)) models.Draft {
		d := draft("fast", "https://c.example/v1", "m")
		change(&d)
		return d
	}
	text := func(s string) *string { return &s }
	provider := models.Provider("other")
	for _, tt := range []struct {
		field string
		draft models.Draft
	}{
		{"name", bad(func(d *models.Draft) { d.Name = text("Fast One") })},
		{"name", bad(func(d *models.Draft) { d.Name = text("") })},
		{"provider", bad(func(d *models.Draft) { d.Provider = &provider })},
		{"model", bad(func(d *models.Draft) { d.Model = text("a\nb") })},
		{"model", bad(func(d *models.Draft) { d.Model = nil })},
		{"url", bad(func(d *models.Draft) { d.URL = text("ftp://x/v1") })},
		{"url", bad(func(d *models.Draft) { d.URL = text("https://u:p@x/v1") })},
		{"url", bad(func(d *models.Draft) { d.URL = text("https://x/v1/chat/completions") })},
		{"url", bad(func(d *models.Draft) { d.URL = text("http://10.0.0.7/v1") })},
		{"key", bad(func(d *models.Draft) { d.Key = text("sk 1") })},
		{"fallback", bad(func(d *models.Draft) { d.Fallback = text("fast") })},
		{"price", bad(func(d *models.Draft) { d.Price = &usage.Price{Input: -1} })},
	} {
		if _, err := s.Create(t.Context(), ada, tt.draft, false); !fault.Is(err, fault.Invalid) || fault.As(err).Fields[tt.field] == "" {
			t.Errorf("%s: %v", tt.field, err)
		}
		if _, err := s.Check(ada, tt.draft, false); fault.As(err).Fields[tt.field] == "" {
			t.Errorf("%s is checked: %v", tt.field, err)
		}
	}
	d := draft("fast", "c.example/v1/", "m") // a host is enough
	if m, err := s.Create(t.Context(), ada, d, false); err != nil || m.URL != "https://c.example/v1" {
		t.Errorf("%+v %v", m, err)
	}
}

package packages_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"agentsite/internal/fault"
	"agentsite/internal/hosting"
	"agentsite/internal/ident"
	"agentsite/internal/packages"
	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

// stock is a Store with packages, and the modules of accounts with their bytes.
type stock struct {
	memory
	modules  []hosting.Module
	packages []packages.Package
	notices  []packages.Notice
	nameErr  error
	changing func() // during SetState
}

func (s *stock) Find(accountID, hash string) (hosting.Module, bool) {
	i := slices.IndexFunc(s.modules, func(m hosting.Module) bool { return m.AccountID == accountID && m.Hash == hash })
	if i < 0 {
		return hosting.Module{}, false
	}
	return s.modules[i], true
}

func (s *stock) HasModule(hash string, ok func(hosting.Module) bool) bool {
	return slices.ContainsFunc(s.modules, func(m hosting.Module) bool { return m.Hash == hash && ok(m) })
}

func (s *stock) ReadModule(context.Context, string) ([]byte, error) { return []byte("the module"), nil }

func (s *stock) NameSource(ctx context.Context, id, hash string, source hosting.Source) error {
	if s.nameErr != nil {
		return s.nameErr
	}
	return s.memory.NameSource(ctx, id, hash, source)
}

func (s *stock) AllPackages(context.Context) ([]packages.Package, error) { return s.packages, nil }
func (s *stock) Kills(context.Context) ([]packages.Kill, error)          { return nil, nil }
func (s *stock) Notices(context.Context) ([]packages.Notice, error)      { return s.notices, nil }
func (s *stock) SaveNotices(_ context.Context, put, removed []packages.Notice) error {
	for _, n := range slices.Concat(put, removed) {
		s.notices = slices.DeleteFunc(s.notices, func(have packages.Notice) bool {
			return have.PortalID == n.PortalID && have.Hash == n.Hash
		})
	}
	s.notices = append(s.notices, put...)
	return nil
}
func (s *stock) CountDownload(context.Context, string) error { return nil }
func (s *stock) SetState(context.Context, ident.Actor, packages.Package) error {
	s.changing()
	return nil
}
func (s *stock) AddPackage(_ context.Context, p packages.Package) error {
	s.packages = append(s.packages, p)
	return nil
}

// moduleHash is the hash of the module in a stock.
var moduleHash = record.Hash(sha256.Sum256([]byte("the module")))

// onePackage is a record of a package with that module.
func onePackage(from *recordtest.Portal) *record.Agent {
	pack := from.Agent("one")
	pack.Kind, pack.Name = record.KindPackage, "one"
	pack.Package = &record.Package{Version: "1.0.0", Licence: "MIT", Entry: "run", Module: moduleHash, Size: 10}
	return pack
}

func newService(mem *stock, net packages.Fetcher, changed func()) *packages.Service {
	return packages.New(packages.Config{Store: mem, Modules: mem, Fetcher: net, Host: "me.example", Self: "p1me",
		Bounds: packages.Limits{MemoryMiB: 64, Seconds: 30}, Changed: changed})
}

// A portal that publishes the hash of a private program does not get it, and has it sent to no account.
func TestModules_OfPrivateProgramsAreNotShared(t *testing.T) {
	t.Parallel()
	evil := recordtest.NewPortal("evil")
	own := func(state packages.State) []packages.Package {
		return []packages.Package{{Manifest: packages.Manifest{Name: "mine", Version: "1.0.0"}, ID: "01", AccountID: "ada",
			Module: moduleHash.Hex(), State: state}}
	}
	for _, x := range []struct {
		name   string
		source hosting.Source
		own    []packages.Package
		shared bool
	}{
		{"private", hosting.Source{}, nil, false},
		{"of that package", hosting.Source{Name: "one", Version: "0.9.0", Portal: string(evil.ID)}, nil, true},
		{"of another package of the portal", hosting.Source{Name: "two", Version: "1.0.0", Portal: string(evil.ID)}, nil,
			false},
		{"of such a package of another portal", hosting.Source{Name: "one", Version: "1.0.0", Portal: "p1other"}, nil, false},
		{"published here", hosting.Source{}, own(packages.Published), true},
		{"withdrawn here", hosting.Source{}, own(packages.Withdrawn), false},
	} {
		mem := &stock{packages: x.own,
			modules: []hosting.Module{{Hash: moduleHash.Hex(), AccountID: "ada", Source: x.source}}}
		net := &portals{}
		s := newService(mem, net, func() {})
		if err := s.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.TakeRecord("evil.example", true, onePackage(evil))
		bob := ident.Actor{Kind: ident.Operator, ID: "bob"}
		_, _, read := s.ReadModule(t.Context(), bob, packages.Ref{Name: "one", Portal: "evil.example"})
		_, sent := s.ModuleFor(t.Context(), moduleHash.Hex())
		_, installed := s.Install(t.Context(), bob, "one@evil.example", nil)
		if x.shared && (read != nil || sent != nil || installed != nil || len(net.asked) > 0) {
			t.Errorf("%s: %v, %v, %v, asked %v", x.name, read, sent, installed, net.asked)
		}
		if !x.shared && (!fault.Is(read, fault.NotFound) || !fault.Is(sent, fault.NotFound) ||
			!fault.Is(installed, fault.Unavailable) || len(net.asked) != 1) {
			t.Errorf("%s: %v, %v, %v, asked %v", x.name, read, sent, installed, net.asked)
		}
	}
}

// A version that the store has is published, whatever fails afterwards, and is noticed by a later reading, too.
func TestPublish_IsWholeOnceStored(t *testing.T) {
	t.Parallel()
	changes := 0
	mem := &stock{modules: []hosting.Module{{Hash: moduleHash.Hex(), AccountID: "ada"}}, nameErr: errors.New("full")}
	s := newService(mem, nil, func() { changes++ })
	ada := ident.Actor{Kind: ident.Operator, ID: "ada", Name: "ada"}
	draft := packages.Draft{Module: moduleHash.Hex(), Manifest: packages.Manifest{Name: "one", Version: "1.0.0",
		Summary: "Does one thing.", Licence: "MIT"}}
	if _, err := s.Publish(t.Context(), ada, draft); err == nil {
		t.Error("the failure is not reported")
	}
	if len(mem.packages) != 1 || len(s.Records()) != 1 || changes != 1 {
		t.Errorf("%d stored, %d published, %d changes", len(mem.packages), len(s.Records()), changes)
	}
	changes = 0
	for i, state := range []packages.State{packages.Published, packages.Deprecated, packages.Deprecated} {
		mem.packages[0].State = state
		if err := s.Load(t.Context()); err != nil || changes != min(i, 1) {
			t.Errorf("reading %d: %d changes, %v", i, changes, err)
		}
	}
}

// program is the program of an agent.
type program struct{ module string }

func (p *program) ProgramOf(context.Context, string) (packages.Program, error) {
	return packages.Program{Name: "runner", OwnerID: "ada", Module: p.module}, nil
}

// An agent that changed to a program of no package runs none any more.
func TestRunOf_ForgetsAnEarlierPackage(t *testing.T) {
	t.Parallel()
	other := record.Hash(sha256.Sum256([]byte("other")))
	mem, agent := &stock{modules: []hosting.Module{
		{Hash: moduleHash.Hex(), AccountID: "ada", Source: hosting.Source{Name: "one", Version: "1.0.0", Portal: "p1me"}},
		{Hash: other.Hex(), AccountID: "ada"}}}, &program{moduleHash.Hex()}
	s := packages.New(packages.Config{Store: mem, Modules: mem, Programs: agent, Self: "p1me", Changed: func() {}})
	one := &packages.Package{Manifest: packages.Manifest{Name: "one"}, PortalID: "p1me"}
	if r := s.RunOf(t.Context(), "1"); r == nil || len(s.Runs(one)) != 1 {
		t.Fatalf("it runs %+v, %+v", r, s.Runs(one))
	}
	agent.module = other.Hex()
	if r := s.RunOf(t.Context(), "1"); r != nil || len(s.Runs(one)) != 0 {
		t.Errorf("it runs %+v, %+v", r, s.Runs(one))
	}
}

// A download during a change of the state is counted.
func TestDownloads_DuringAChangeAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := &stock{modules: []hosting.Module{{Hash: moduleHash.Hex(), AccountID: "ada"}},
			packages: []packages.Package{{Manifest: packages.Manifest{Name: "one", Version: "1.0.0"}, ID: "01",
				AccountID: "ada", Module: moduleHash.Hex(), State: packages.Published}}}
		s := newService(mem, nil, func() {})
		if err := s.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		ada := ident.Actor{Kind: ident.Operator, ID: "ada"}
		mem.changing = func() {
			go func() {
				if _, err := s.ModuleFor(t.Context(), moduleHash.Hex()); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		if _, err := s.SetState(t.Context(), ada, "one", "1.0.0", packages.Deprecated, "old"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if p, err := s.Find(ada, packages.Ref{Name: "one"}); err != nil || p.Downloads != 1 || p.State != packages.Deprecated {
			t.Errorf("%+v, %v", p, err)
		}
	})
}

// A host that several portals claim stands for the verified one, and for none if no portal is verified.
func TestFind_OfAHostThatSeveralClaim(t *testing.T) {
	t.Parallel()
	a, b := recordtest.NewPortal("a"), recordtest.NewPortal("b")
	actor, ref := ident.Actor{Kind: ident.Operator, ID: "ada"}, packages.Ref{Name: "one", Portal: "a.example"}
	for _, x := range []struct {
		a, b bool
		want string
	}{{true, false, string(a.ID)}, {false, true, string(b.ID)}, {false, false, ""}} {
		s := newService(&stock{}, nil, func() {})
		s.TakeRecord("a.example", x.a, onePackage(a))
		s.TakeRecord("a.example", x.b, onePackage(b))
		p, err := s.Find(actor, ref)
		if x.want == "" && !fault.Is(err, fault.Conflict) || x.want != "" && (err != nil || p.PortalID != x.want) {
			t.Errorf("%v, %v: %s, %v", x.a, x.b, p.PortalID, err)
		}
	}
}

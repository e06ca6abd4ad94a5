package packages_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/hosting"
	"agentsite/internal/ident"
	"agentsite/internal/packages"
	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

// memory is a Store without packages, and the modules of one account.
type memory struct {
	packages.Store
	uploaded []string
	source   hosting.Source
}

func (*memory) MayUpload(context.Context, ident.Actor) error { return nil }
func (*memory) Find(string, string) (m hosting.Module, ok bool) {
	return m, false
}
func (*memory) HasModule(string, func(hosting.Module) bool) bool { return false }
func (m *memory) Upload(_ context.Context, _ ident.Actor, _ string, data []byte) (hosting.Module, error) {
	m.uploaded = append(m.uploaded, string(data))
	return hosting.Module{}, nil
}
func (*memory) ReadModule(context.Context, string) ([]byte, error) {
	return nil, fault.New(fault.NotFound, "absent")
}
func (m *memory) NameSource(_ context.Context, _, _ string, source hosting.Source) error {
	m.source = source
	return nil
}

// portals answer for other portals.
type portals struct {
	asked  []record.PortalID
	answer map[record.PortalID]string
}

func (p *portals) FetchModule(_ context.Context, id record.PortalID, _ string, _ int64) ([]byte, error) {
	p.asked = append(p.asked, id)
	if text, ok := p.answer[id]; ok {
		return []byte(text), nil
	}
	return nil, errors.New("unreachable")
}

// A module is fetched from the author's portal, then from those that run it, and only the signed one is kept.
func TestInstall_KeepsOnlyTheSignedModule(t *testing.T) {
	t.Parallel()
	author, other, third := recordtest.NewPortal("a"), recordtest.NewPortal("b"), recordtest.NewPortal("c")
	hash := record.Hash(sha256.Sum256([]byte("the module")))
	pack := author.Agent("one")
	pack.Kind, pack.Name = record.KindPackage, "one"
	pack.Package = &record.Package{Version: "1.0.0", Licence: "MIT", Entry: "run", Module: hash, Size: 10,
		Grants: []record.PackageGrant{{Name: "find", Why: "x"}, {Name: "host:api.example.org", Why: "y"}}}
	for _, x := range []struct {
		answer map[record.PortalID]string
		asked  []record.PortalID
		ok     bool
	}{
		{map[record.PortalID]string{author.ID: "the module"}, []record.PortalID{author.ID}, true},
		{map[record.PortalID]string{author.ID: "other code", third.ID: "the module"},
			[]record.PortalID{author.ID, other.ID, third.ID}, true},
		{map[record.PortalID]string{author.ID: "other code", other.ID: "", third.ID: "the module and more"},
			[]record.PortalID{author.ID, other.ID, third.ID}, false},
	} {
		mem, net := &memory{}, &portals{answer: x.answer}
		s := packages.New(packages.Config{Store: mem, Modules: mem, Fetcher: net, Host: "me.example", Self: "p1me",
			Bounds: packages.Limits{MemoryMiB: 64, Seconds: 30}, Changed: func() {}})
		s.TakeRecord("a.example", true, pack)
		for _, p := range []*recordtest.Portal{other, third} {
			a := p.Agent("runs")
			a.Runs = &record.PackageRun{Name: "one", Version: "1.0.0", Portal: author.ID, Module: hash}
			s.TakeRecord(p.Name+".example", true, a)
		}
		actor := ident.Actor{Kind: ident.Operator, ID: "rob"}
		got, err := s.Install(t.Context(), actor, "one@a.example", &[]string{"host:api.example.org"})
		if x.ok != (err == nil) || !slices.Equal(net.asked, x.asked) {
			t.Errorf("%v: asked %v, %v", x.answer, net.asked, err)
		}
		if !x.ok {
			if len(mem.uploaded) > 0 || !fault.Is(err, fault.Unavailable) {
				t.Errorf("kept %q, %v", mem.uploaded, err)
			}
			continue
		}
		if len(mem.uploaded) != 1 || mem.uploaded[0] != "the module" || mem.source.Portal != string(author.ID) ||
			got.Module != hex.EncodeToString(hash[:]) || len(got.Tools) != 0 || !slices.Equal(got.Hosts, []string{"api.example.org"}) {
			t.Errorf("%v: %+v, %+v", x.answer, mem, got)
		}
		// The portal is not shown any more, with its packages.
		s.DropPortal(author.ID)
		if _, err := s.Install(t.Context(), actor, "one@a.example", &[]string{}); !fault.Is(err, fault.Invalid) {
			t.Errorf("of a portal that is gone: %v", err)
		}
	}
}

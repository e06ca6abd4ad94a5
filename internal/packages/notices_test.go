package packages_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/packages"
	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

// A kill notice of another portal stays when its record or its portal is gone, and after a restart. It ends programs
// that came from that portal, and is advice about the same module from elsewhere.
func TestNotices_OutliveTheirRecords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		author, other := recordtest.NewPortal("a"), recordtest.NewPortal("b")
		oper := ident.Actor{Kind: ident.Operator, ID: "rob"}
		mem := &stock{}
		check := func(s *packages.Service, when string) {
			t.Helper()
			list, err := s.Notices(oper)
			if err != nil || len(list) != 1 || list[0].Hash != moduleHash.Hex() || list[0].Portal != "a.example" ||
				list[0].Package != "one/1.0.0" || list[0].Reason != "It lies." || list[0].Binding {
				t.Errorf("%s: %+v, %v", when, list, err)
			}
			if err := s.CheckRun(moduleHash.Hex(), string(author.ID)); !fault.Is(err, fault.Forbidden) {
				t.Errorf("%s: a program of its package: %v", when, err)
			}
			for _, source := range []string{"", string(other.ID)} {
				if err := s.CheckRun(moduleHash.Hex(), source); err != nil {
					t.Errorf("%s: a program from %q: %v", when, source, err)
				}
			}
		}
		s := newService(mem, nil, func() {})
		if err := s.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		go s.Run(ctx)
		pack := onePackage(author)
		s.TakeRecord("a.example", true, pack)
		s.TakeRecord("b.example", true, onePackage(other))
		if list, _ := s.Notices(oper); len(list) != 0 {
			t.Errorf("before: %+v", list)
		}
		pack.Package.State, pack.Status, pack.StatusNote = record.PackageKilled, record.StatusDeprecated, "It lies."
		s.TakeRecord("a.example", true, pack)
		check(s, "with its record")
		s.DropRecords(author.ID, []string{pack.AgentID()})
		check(s, "without its record")
		s.DropPortal(author.ID)
		check(s, "without its portal")
		synctest.Wait()
		stop()

		s = newService(mem, nil, func() {})
		for range 2 { // it is also called every hour
			if err := s.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		check(s, "after a restart")
		s.TakeRecord("a.example", true, pack)
		check(s, "with its record again")
	})
}

// failing is a stock that does not save notices at first.
type failing struct {
	*stock
	failures int
	saved    chan struct{} // closed when notices are saved
}

func (f *failing) SaveNotices(ctx context.Context, put, removed []packages.Notice) error {
	if f.failures > 0 {
		f.failures--
		return errors.New("the disk is full")
	}
	defer close(f.saved)
	return f.stock.SaveNotices(ctx, put, removed)
}

// Notices that could not be saved are saved later.
func TestNotices_AreSavedAfterFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		author, ended := recordtest.NewPortal("a"), make(chan error)
		mem := &failing{stock: &stock{}, failures: 2, saved: make(chan struct{})}
		s := packages.New(packages.Config{Store: mem, Modules: mem, Self: "p1me", Changed: func() {},
			Log: slog.New(slog.DiscardHandler)})
		ctx, stop := context.WithCancel(t.Context())
		go func() { ended <- s.Run(ctx) }()
		pack := onePackage(author)
		pack.Package.State, pack.Status, pack.StatusNote = record.PackageKilled, record.StatusDeprecated, "It lies."
		s.TakeRecord("a.example", true, pack)
		<-mem.saved
		stop()
		if err := <-ended; err != nil || len(mem.notices) != 1 || mem.notices[0].PortalID != string(author.ID) {
			t.Errorf("%+v, %v", mem.notices, err)
		}
	})
}

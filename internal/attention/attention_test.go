package attention_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/attention"
	"agentsite/internal/clock"
	"agentsite/internal/diskuse"
	"agentsite/internal/doctor"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/figures"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/scheduler"
)

// portal is all sources of items, in memory.
type portal struct {
	mu       sync.Mutex // guards the fields below
	findings []doctor.Finding
	examined int
	quick    bool
	reports  int
	invites  []account.Credential
	peers    []federation.Peer
	queue    scheduler.Snapshot
	errors   []int64 // by day, the last is today
}

func (p *portal) Examine(_ context.Context, q doctor.Question) (doctor.Report, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.examined, p.quick = p.examined+1, q.Quick
	return doctor.Report{Findings: p.findings}, nil
}

func (p *portal) List(context.Context, ident.Actor, bool) ([]hub.Report, error) {
	return make([]hub.Report, p.reports), nil
}

func (p *portal) Invitations(context.Context, ident.Actor) ([]account.Credential, error) {
	return p.invites, nil
}

func (p *portal) Queue(context.Context, ident.Actor) (scheduler.Snapshot, error) { return p.queue, nil }

func (p *portal) SaveFigures(context.Context, int64, map[string]int64, int64) error { return nil }

func (p *portal) Figures(context.Context, int64) (out []figures.Figure, err error) {
	today := figures.DayOf(clock.Now())
	for i, n := range p.errors {
		out = append(out, figures.Figure{Day: today - int64(len(p.errors)-1-i), Name: figures.Errors, Value: n})
	}
	return out, nil
}

func (p *portal) Stats(context.Context) (map[string]int64, error)          { return nil, nil }
func (p *portal) DiskUse(context.Context) (list []diskuse.Kind, err error) { return list, nil }

type portals struct{ p *portal }

func (l portals) List(context.Context, ident.Actor) ([]federation.Peer, error) { return l.p.peers, nil }

func newService(p *portal) *attention.Service {
	return attention.New(attention.Config{Examiner: p, Complaints: p, Accounts: p, Portals: portals{p}, Tasks: p,
		Figures: figures.New(p, p, slog.New(slog.DiscardHandler))})
}

var operator = ident.Actor{Kind: ident.Operator, ID: "op"}

func list(t *testing.T, s *attention.Service) []attention.Item {
	t.Helper()
	items, err := s.List(t.Context(), operator)
	if err != nil {
		t.Fatal(err)
	}
	return items
}

func TestList_NamesEachMatterWithItsPage(t *testing.T) {
	t.Parallel()
	p := &portal{findings: []doctor.Finding{{Check: doctor.Data, Level: doctor.OK, Text: "fine"},
		{Check: doctor.Data, Level: doctor.Note, Text: "little disk", Do: "make room"},
		{Check: doctor.Peers, Level: doctor.Note, Text: "from the doctor, older than the list"},
		{Check: doctor.Agents, Level: doctor.Fault, Text: "llama is dead"},
		{Check: doctor.Agents, Level: doctor.Note, Text: "6 agents are silent", Page: "/agents?live=unreachable"}}}
	s := newService(p)
	due := func(area attention.Area, href, text string) {
		t.Helper()
		for _, i := range list(t, s) {
			if i.Area == area && i.Href == href && strings.Contains(i.Text, text) {
				return
			}
		}
		t.Errorf("no item %s of %s with the page %s in %+v", text, area, href, list(t, s))
	}
	items := list(t, s)
	if len(items) != 3 || items[0].Note || !items[1].Note || !items[2].Note || items[1].Do != "make room" {
		t.Errorf("%+v", items)
	}
	due(attention.Overview, "/admin/agents", "llama is dead")
	due(attention.Overview, "/agents?live=unreachable", "6 agents are silent")
	p.reports = 2
	due(attention.Reports, "/admin/reports", "2 reports")
	p.peers = []federation.Peer{{URL: "https://late.example", State: federation.Pending, Reason: "new"},
		{URL: "https://shut.example", State: federation.Active, Bars: federation.ReasonDenied},
		{URL: "https://fine.example", State: federation.Active}}
	due(attention.Peers, "/admin/peers?state=pending", "late.example")
	due(attention.Peers, "/admin/peers", "1 portal refuses")
	p.queue.Classes = []scheduler.ClassState{{Lately: 3}}
	due(attention.Queue, "/admin/queue", "3 tasks were refused")
	p.errors = []int64{10, 10, 19}
	before := len(list(t, s))
	p.errors = []int64{10, 10, 21}
	if n := len(list(t, s)); n != before+1 {
		t.Errorf("%d items with twice the failures of a day, %d before", n, before)
	}
	due(attention.Queue, "/admin/queue", "21 tasks failed today")
	counts := attention.Count(list(t, s))
	if counts[attention.Peers] != 2 || counts[attention.Queue] != 2 || counts[attention.Overview] != 1 || counts[attention.Reports] != 1 {
		t.Errorf("counts %v", counts)
	}
	p.invites = []account.Credential{{ExpiresAt: clock.Now().Add(time.Hour)}, {ExpiresAt: clock.Now().Add(100 * time.Hour)}}
	due(attention.Invites, "/admin/invites", "1 invitation expires")
}

func TestList_ExaminesOnceAMinuteAndAfterAChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &portal{}
		s := newService(p)
		for range 3 {
			if items := list(t, s); len(items) != 0 {
				t.Errorf("%+v", items)
			}
		}
		if p.examined != 1 || !p.quick {
			t.Errorf("examined %d times, quick %t", p.examined, p.quick)
		}
		s.Renew()
		list(t, s)
		time.Sleep(time.Minute)
		list(t, s)
		if p.examined != 3 {
			t.Errorf("examined %d times", p.examined)
		}
		if _, err := s.ExamineAll(t.Context(), operator); err != nil || p.quick || p.examined != 4 {
			t.Errorf("%v, quick %t, %d times", err, p.quick, p.examined)
		}
	})
}

func TestList_RefusesOthers(t *testing.T) {
	t.Parallel()
	s := newService(&portal{})
	for actor, want := range map[string]fault.Kind{"": fault.Unauthenticated, "ann": fault.Forbidden} {
		a := ident.Actor{ID: actor}
		if actor != "" {
			a.Kind = ident.Person
		}
		_, err := s.List(t.Context(), a)
		_, whole := s.ExamineAll(t.Context(), a)
		if !fault.Is(err, want) || !fault.Is(whole, want) {
			t.Errorf("%q: %v, %v", actor, err, whole)
		}
	}
}

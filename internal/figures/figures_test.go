package figures_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentsite/internal/diskuse"
	"agentsite/internal/fault"
	"agentsite/internal/figures"
	"agentsite/internal/ident"
)

// portal is a Store and a Counter in memory.
type portal struct {
	mu       sync.Mutex // guards the fields below
	rows     map[figures.Figure]bool
	messages int64
	measured int
	fail     bool
}

func (p *portal) SaveFigures(_ context.Context, day int64, values map[string]int64, oldest int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail {
		return errors.New("no database")
	}
	maps.DeleteFunc(p.rows, func(f figures.Figure, _ bool) bool {
		_, replaced := values[f.Name]
		return f.Day < oldest || f.Day == day && replaced
	})
	for name, value := range values {
		p.rows[figures.Figure{Day: day, Name: name, Value: value}] = true
	}
	return nil
}

func (p *portal) Figures(_ context.Context, from int64) (out []figures.Figure, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for f := range p.rows {
		if f.Day >= from {
			out = append(out, f)
		}
	}
	return out, nil
}

func (p *portal) Stats(context.Context) (map[string]int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return map[string]int64{"accounts": 2, "agents": 3, "messages": p.messages}, nil
}

func (p *portal) DiskUse(context.Context) ([]diskuse.Kind, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.measured++
	return []diskuse.Kind{{Bytes: 100}, {Bytes: 20}}, nil
}

// set changes the number of messages and whether saving fails.
func (p *portal) set(messages int64, fail bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages, p.fail = messages, fail
}

func (p *portal) days() []int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	days := map[int64]bool{}
	for f := range p.rows {
		days[f.Day] = true
	}
	return slices.Sorted(maps.Keys(days))
}

func series(t *testing.T, s *figures.Service, days int, name string) figures.Series {
	t.Helper()
	r, err := s.Report(t.Context(), operator, days)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range r.Series {
		if one.Name == name {
			return one
		}
	}
	t.Fatalf("no series %s", name)
	return figures.Series{}
}

var operator = ident.Actor{Kind: ident.Operator, ID: "op"}

func TestRun_KeepsTheLastSampleOfEachDay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &portal{rows: map[figures.Figure]bool{}, messages: 5}
		s := figures.New(p, p, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		synctest.Wait()
		first := p.days()
		if len(first) != 1 {
			t.Fatalf("days %v after the start", first)
		}
		p.set(8, true) // a failed sample loses an hour and no more
		time.Sleep(90 * time.Minute)
		p.set(9, false)
		time.Sleep(time.Hour)
		time.Sleep(24 * time.Hour)
		p.set(20, false)
		got := series(t, s, 3, figures.Messages)
		if want := (figures.Series{Name: "messages", Values: []int64{0, 9, 20}, Known: []bool{false, true, true}}); !cmp.Equal(got, want) {
			t.Error(cmp.Diff(want, got))
		}
		if got := series(t, s, 2, figures.Errors); !cmp.Equal(got.Known, []bool{true, true}) || got.Last() != 0 {
			t.Errorf("errors %+v", got)
		}
		if err := p.SaveFigures(ctx, first[0], map[string]int64{figures.Errors: 4}, 0); err != nil {
			t.Fatal(err)
		}
		if got := series(t, s, 2, figures.Errors); got.Values[0] != 4 {
			t.Errorf("errors %+v", got)
		}
		time.Sleep(figures.MaxDays * 24 * time.Hour)
		days := p.days()
		if n := len(days); n != figures.MaxDays || days[0] == first[0] || days[n-1]-days[0] != figures.MaxDays-1 {
			t.Errorf("%d days are kept, from %d to %d", n, days[0], days[n-1])
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestReport_MeasuresTheDiskOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &portal{rows: map[figures.Figure]bool{}}
		s := figures.New(p, p, slog.New(slog.DiscardHandler))
		for range 5 {
			if got := series(t, s, 1, figures.Disk); got.Last() != 120 {
				t.Errorf("disk %+v", got)
			}
		}
		if p.measured != 1 {
			t.Errorf("measured %d times", p.measured)
		}
		time.Sleep(time.Minute)
		series(t, s, 1, figures.Disk)
		if p.measured != 2 {
			t.Errorf("measured %d times after a minute", p.measured)
		}
	})
}

func TestReport_RefusesOthersAndOtherDays(t *testing.T) {
	t.Parallel()
	p := &portal{rows: map[figures.Figure]bool{}}
	s := figures.New(p, p, slog.New(slog.DiscardHandler))
	for _, c := range []struct {
		actor ident.Actor
		days  int
		want  fault.Kind
	}{
		{ident.Actor{}, 1, fault.Unauthenticated},
		{ident.Actor{Kind: ident.Person, ID: "ann"}, 1, fault.Forbidden},
		{ident.Actor{Kind: ident.Operator, ID: "op", Narrowed: true}, 1, fault.Forbidden}, // a token without the scope
		{operator, 0, fault.Invalid},
		{operator, figures.MaxDays + 1, fault.Invalid},
	} {
		if _, err := s.Report(t.Context(), c.actor, c.days); !fault.Is(err, c.want) {
			t.Errorf("%+v, %d days: %v", c.actor, c.days, err)
		}
	}
}

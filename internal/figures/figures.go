// Package figures keeps one number a day of each thing that an operator watches: people, agents, messages, failed tasks
// and stored bytes. A sample of each hour replaces the one before on the same day, so that a crash loses no more than an
// hour. The package knows neither the database nor the pages that plot the numbers.
package figures

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/diskuse"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Names of the figures. All are totals at the end of a day, except Errors, which is the number of tasks that failed on
// the day; the store counts them when tasks end.
const (
	People   = "people"
	Agents   = "agents"
	Messages = "messages"
	Errors   = "errors"
	Disk     = "disk" // bytes
)

// Names returns the names of all figures, in the order of the page.
func Names() []string { return []string{People, Messages, Agents, Errors, Disk} }

const (
	// MaxDays is the number of days that are kept, and that a report has at most.
	MaxDays = 366
	// DefaultDays is the number of days of a report that names none.
	DefaultDays = 30
	// sampleEvery is the pause between two samples.
	sampleEvery = time.Hour
	// diskFor is the time for which the bytes on the disk are not measured anew: it reads each entry of the data folder.
	diskFor = time.Minute
	dayLong = 24 * time.Hour
)

// Figure is a number of one day; Day is the number of days since 1970, UTC.
type Figure struct {
	Day   int64
	Name  string
	Value int64
}

// Store keeps figures.
type Store interface {
	// SaveFigures replaces the figures of a day by name, and deletes the figures of days before oldest.
	SaveFigures(ctx context.Context, day int64, values map[string]int64, oldest int64) error
	// Figures returns the figures from a day on, ordered by day and name.
	Figures(ctx context.Context, from int64) ([]Figure, error)
}

// Counter counts the present state of the portal.
type Counter interface {
	// Stats returns counts with the keys accounts, agents and messages.
	Stats(ctx context.Context) (map[string]int64, error)
	// DiskUse returns the stored bytes by the kind of data.
	DiskUse(ctx context.Context) ([]diskuse.Kind, error)
}

// Service samples figures and reports them. Create it with New.
type Service struct {
	store   Store
	counter Counter
	log     *slog.Logger

	mu   sync.Mutex // held while the disk is measured, so that concurrent callers wait for one measurement
	at   time.Time
	disk int64
}

// New returns a service; Run makes it sample.
func New(store Store, counter Counter, log *slog.Logger) *Service {
	return &Service{store: store, counter: counter, log: log}
}

// Run samples at once and then every hour, until ctx is canceled.
func (s *Service) Run(ctx context.Context) error {
	t := time.NewTicker(sampleEvery)
	defer t.Stop()
	for {
		if err := s.sample(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("sample the figures of the day", "error", err)
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *Service) sample(ctx context.Context) error {
	day := DayOf(clock.Now())
	values, err := s.count(ctx)
	if err != nil {
		return err
	}
	return s.store.SaveFigures(ctx, day, values, day-MaxDays+1)
}

// count returns the present figures, without Errors.
func (s *Service) count(ctx context.Context) (map[string]int64, error) {
	n, err := s.counter.Stats(ctx)
	if err != nil {
		return nil, err
	}
	disk, err := s.measureDisk(ctx)
	return map[string]int64{People: n["accounts"], Agents: n["agents"], Messages: n["messages"], Disk: disk}, err
}

// measureDisk returns the stored bytes, at most diskFor old.
func (s *Service) measureDisk(ctx context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.at.IsZero() && time.Since(s.at) < diskFor {
		return s.disk, nil
	}
	kinds, err := s.counter.DiskUse(ctx)
	if err != nil {
		return 0, err
	}
	s.disk, s.at = 0, time.Now()
	for _, k := range kinds {
		s.disk += k.Bytes
	}
	return s.disk, nil
}

// Series is one figure by day. Values has a number for each day of the report, the oldest first; Known is false for days
// on which the portal did not run.
type Series struct {
	Name   string
	Values []int64
	Known  []bool
}

// Last returns the value of the last day.
func (s Series) Last() int64 { return s.Values[len(s.Values)-1] }

// Report is the figures of the last days. Today is the last of them; its values are counted at the request, and Disk is
// at most a minute old.
type Report struct {
	From, To time.Time // the first and the last day, at midnight UTC
	Series   []Series  // in the order of Names
}

// Report returns the figures of the last days, 1 to MaxDays. Only operators may call it; another number of days is an
// Invalid fault.
func (s *Service) Report(ctx context.Context, actor ident.Actor, days int) (Report, error) {
	switch {
	case !actor.IsPerson():
		return Report{}, fault.New(fault.Unauthenticated, "Log in as the operator.")
	case !actor.IsOperator() || !actor.May(ident.Admin):
		return Report{}, fault.New(fault.Forbidden, "Only the operator of this portal may see that.")
	case days < 1 || days > MaxDays:
		return Report{}, fault.Field("days", "use 1 to 366")
	}
	today := DayOf(clock.Now())
	first := today - int64(days) + 1
	list, err := s.store.Figures(ctx, first)
	if err != nil {
		return Report{}, err
	}
	now, err := s.count(ctx)
	if err != nil {
		return Report{}, err
	}
	for name, value := range now {
		list = append(list, Figure{today, name, value})
	}
	return newReport(list, first, days), nil
}

// newReport orders figures by name and day; of several of one day the last counts. A day with any figure has no errors
// if none is stored for it.
func newReport(list []Figure, first int64, days int) Report {
	r := Report{From: TimeOf(first), To: TimeOf(first + int64(days) - 1)}
	at := make(map[string]int)
	for i, name := range Names() {
		at[name] = i
		r.Series = append(r.Series, Series{Name: name, Values: make([]int64, days), Known: make([]bool, days)})
	}
	for _, f := range list {
		i, ok := at[f.Name]
		if day := f.Day - first; ok && day >= 0 && day < int64(days) {
			r.Series[i].Values[day], r.Series[i].Known[day] = f.Value, true
			r.Series[at[Errors]].Known[day] = true
		}
	}
	return r
}

// DayOf returns the number of days from 1970 to t, UTC.
func DayOf(t time.Time) int64 { return t.Unix() / int64(dayLong/time.Second) }

// TimeOf returns the midnight UTC with which a day begins.
func TimeOf(day int64) time.Time { return time.Unix(day*int64(dayLong/time.Second), 0).UTC() }

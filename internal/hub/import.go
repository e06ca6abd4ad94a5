package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sync/errgroup"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Imported is the result of an import.
type Imported struct {
	Agents int // registered
	// Skipped counts drafts that could not be; Errors says why, for the first
	// hundred.
	Skipped int
	Errors  []string
}

const (
	importBatch     = 1000
	maxImportErrors = 100
)

// Import registers many agents in the operator's name, as for a move from another directory. next
// returns io.EOF after the last draft. Each draft is checked as any registration, but without a
// request to its address, which is probed when it is due. Drafts that cannot be registered are
// skipped and named. Agents registered before an error of next stay.
func (s *Service) Import(ctx context.Context, actor ident.Actor, next func() (Draft, error)) (Imported, error) {
	if err := RequireOperator(actor); err != nil {
		return Imported{}, err
	}
	if err := RequireWriter(actor); err != nil {
		return Imported{}, err
	}
	var (
		mu   sync.Mutex // guards done
		done Imported
	)
	skip := func(n int, name string, err error) {
		mu.Lock()
		defer mu.Unlock()
		done.Skipped++
		if len(done.Errors) < maxImportErrors {
			done.Errors = append(done.Errors, fmt.Sprintf("%d %.60q: %s", n, name, fault.As(err).Safe))
		}
	}
	keep := func(batch []Agent, lines []int) error {
		err := s.store.CreateAgents(ctx, batch)
		if err != nil && !fault.Is(err, fault.Conflict) {
			return err
		}
		stored := batch
		if err != nil { // one of them was taken: all over, one by one
			stored = nil
			for i, a := range batch {
				if one := s.store.CreateAgent(ctx, a, nil); one != nil {
					skip(lines[i], a.Name, one)
					continue
				}
				stored = append(stored, a)
			}
		}
		s.listAll(stored)
		mu.Lock()
		done.Agents += len(stored)
		mu.Unlock()
		return nil
	}
	// While one batch is stored, the next is read and checked.
	batches := errgroup.Group{}
	batches.SetLimit(2)
	batch := make([]Agent, 0, importBatch)
	lines := make([]int, 0, importBatch)
	flush := func() {
		if len(batch) > 0 {
			full, at := batch, lines
			batches.Go(func() error { return keep(full, at) })
			batch, lines = make([]Agent, 0, importBatch), make([]int, 0, importBatch)
		}
	}
	for n := 1; ; n++ {
		d, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			flush()
			err = errors.Join(err, batches.Wait())
			return done, err
		}
		now := clock.Now()
		a := Agent{ID: ident.NewID(), OwnerID: actor.ID, OwnerName: actor.Name, Version: 1, CreatedAt: now,
			UpdatedAt: now,
			Liveness:  Liveness{State: Unknown, Reason: "Not checked yet."}}
		d.Secret = nil
		if err := d.apply(&a, s.draftRules()); err != nil {
			name := ""
			if d.Name != nil {
				name = *d.Name
			}
			skip(n, name, err)
			continue
		}
		a.Publisher = "" // no proof was checked
		batch, lines = append(batch, a), append(lines, n)
		if len(batch) == importBatch {
			flush()
		}
		if ctx.Err() != nil {
			break
		}
	}
	flush()
	err := batches.Wait()
	return done, err
}

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

// Imported counts the outcomes of an import.
type Imported struct {
	Agents int
	// Skipped counts drafts that were not registered; Errors has the reasons for the first maxImportErrors of them.
	Skipped int
	Errors  []string
}

const (
	importBatch     = 1000
	maxImportErrors = 100
)

// Import registers many agents with the operator as owner, for a move from another directory. next returns io.EOF
// after the last draft. Drafts are checked like other registrations, but their addresses are probed later. Invalid
// drafts and taken names are skipped and reported. If next fails, agents registered before stay.
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
		if err != nil { // A name of the batch is taken: store the agents one by one to find it.
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
	// One batch is stored while the next is read and checked.
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
		a.Publisher = "" // Import does not check proofs, so no domain is shown as publisher.
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

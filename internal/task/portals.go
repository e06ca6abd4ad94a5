package task

import (
	"context"
	"errors"
)

// Portals finds the work between this portal and others that is going on.
type Portals interface {
	// ActivePortals returns the ids of the portals for whose people something is
	// worked on or waits here, and of those whose agents work for people here.
	ActivePortals(ctx context.Context) (asking, asked []string, err error)
	// TasksFor returns work for the people of a portal, TasksAt work of its
	// agents for people here; at most MaxStopped.
	TasksFor(ctx context.Context, portalID string) ([]Task, error)
	TasksAt(ctx context.Context, portalID string) ([]Task, error)
}

// MaxStopped is how many tasks of one portal are stopped at once.
const MaxStopped = 1000

// StopPortals ends at once the work between this portal and others that may
// not be: calls and out say of a portal whether its people may use agents here,
// and people here agents there. It returns how many tasks it stopped; with
// MaxStopped or more there may be others.
func (s *Service) StopPortals(ctx context.Context, all Portals, calls, out func(portalID string) bool) (int, error) {
	asking, asked, err := all.ActivePortals(ctx)
	if err != nil {
		return 0, err
	}
	stopped := 0
	var errs []error
	stop := func(list []Task, err error, reason string) {
		errs = append(errs, err)
		for _, t := range list {
			if err := s.stop(ctx, t, reason); err != nil {
				errs = append(errs, err)
				continue
			}
			stopped++
		}
	}
	for _, id := range asking {
		if !calls(id) {
			list, err := all.TasksFor(ctx, id)
			stop(list, err, "The portal that asked for this is shut out here.")
		}
	}
	for _, id := range asked {
		if !out(id) {
			list, err := all.TasksAt(ctx, id)
			stop(list, err, "This portal does not use agents of that one any more.")
		}
	}
	return stopped, errors.Join(errs...)
}

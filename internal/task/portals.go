package task

import (
	"context"
	"errors"
)

// Portals finds the active tasks between this portal and others.
type Portals interface {
	// ActivePortals returns two lists of portal ids: portals with people that have tasks at agents
	// here, and portals with agents that have tasks of people here. Tasks in a final state do not
	// count.
	ActivePortals(ctx context.Context) (asking, asked []string, err error)
	// TasksFor returns the active tasks here of a portal's people. TasksAt returns those of people
	// here at the portal's agents. Both return at most MaxStopped.
	TasksFor(ctx context.Context, portalID string) ([]Task, error)
	TasksAt(ctx context.Context, portalID string) ([]Task, error)
}

// MaxStopped bounds the tasks of one portal that StopPortals stops in one call.
const MaxStopped = 1000

// StopPortals stops the tasks between this portal and others that the policy no longer allows.
// calls reports whether the people of a portal may use agents here, out whether people here may use
// agents there. It returns the number of stopped tasks. If that is MaxStopped or more, call it
// again, because more may be left. Errors do not stop the others.
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
			if err := s.stopTask(ctx, t, reason); err != nil {
				errs = append(errs, err)
				continue
			}
			stopped++
		}
	}
	for _, id := range asking {
		if !calls(id) {
			list, err := all.TasksFor(ctx, id)
			stop(list, err, "The portal that requested this is blocked here.")
		}
	}
	for _, id := range asked {
		if !out(id) {
			list, err := all.TasksAt(ctx, id)
			stop(list, err, "This portal no longer uses agents of that one.")
		}
	}
	return stopped, errors.Join(errs...)
}

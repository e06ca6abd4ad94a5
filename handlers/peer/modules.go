package peer

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
)

// ModuleSource has the modules of packages. packages.Service implements it.
type ModuleSource interface {
	// ModuleFor returns a module of a package, or a NotFound fault.
	ModuleFor(ctx context.Context, hash string) ([]byte, error)
}

// Limits of each portal on modules, which have up to 16 MiB.
const (
	moduleEvery  = 2 * time.Second
	moduleBurst  = 20
	moduleAtOnce = 2
)

// Modules adds the route by which other portals fetch the modules of packages.
func Modules(d Handles, source ModuleSource) {
	d.Handle(http.MethodGet, "/modules/{hash}", func(ctx context.Context, _ guard.Asker, r *http.Request,
		_ []byte) (any, error) {
		data, err := source.ModuleFor(ctx, chi.URLParam(r, "hash"))
		if fault.Is(err, fault.NotFound) {
			return nil, federation.Refuse(federation.ReasonAbsent, "This portal has no package with this module.")
		}
		return Binary(data), err
	}, Limits{Every: moduleEvery, Burst: moduleBurst, AtOnce: moduleAtOnce})
}

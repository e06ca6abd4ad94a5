package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"agentsite/agentruntime"
	"agentsite/agentruntime/model"
	"agentsite/internal/a2a"
	"agentsite/internal/fault"
	"agentsite/internal/models"
)

const (
	// modelAskTime is the deadline for the answer of a model's server, because an operator waits for it.
	modelAskTime = 10 * time.Second
	// maxModelsNamed bounds the models that an error names.
	maxModelsNamed = 5
)

// modelServers implements admin.ModelServers.
type modelServers struct{ portal *Portal }

// AskModel implements admin.ModelServers. It lists the models of the server, which makes none of them work.
func (s modelServers) AskModel(ctx context.Context, server models.Server, name string) error {
	ctx, cancel := context.WithTimeout(ctx, modelAskTime)
	defer cancel()
	c, err := model.New(agentruntime.Wiretap{Next: s.portal.model.RoundTripper()}, server)
	if err != nil {
		return err
	}
	ids, err := c.Models(ctx)
	switch {
	case errors.Is(err, model.ErrKey):
		return fault.Field("key", fault.As(err).Safe)
	case err != nil:
		return fault.Field("url", fault.As(err).Safe)
	case slices.Contains(ids, name), slices.Contains(ids, name+":latest"): // Ollama completes names without a tag
		return nil
	case len(ids) == 0:
		return fault.Field("model", "the server has no models yet; download this one there first")
	}
	if len(ids) > maxModelsNamed {
		ids = append(ids[:maxModelsNamed:maxModelsNamed], "…")
	}
	return fault.Field("model", "the server does not list it, but "+a2a.Line(strings.Join(ids, ", "), 300))
}

package api

import (
	"context"
	"net/http"

	"agentsite/handlers/request"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/packages"
)

// Packages puts packages among the programs of accounts. packages.Service implements it.
type Packages interface {
	Install(ctx context.Context, actor ident.Actor, ref string, given *[]string) (packages.Installed, error)
}

// agentBody is the body of an agent. Package is a package to run, name[@portal][/version], and Grants those of its
// grants that are given to it; they set the kind and a part of the settings.
type agentBody struct {
	DraftJSON
	Package *string   `json:"package"`
	Grants  *[]string `json:"grants"`
}

// readAgent decodes a body, and puts the package that it names among the programs of the actor. Only accounts may send
// bodies large enough for a picture, because only accounts may own agents.
func (d *agentAPI) readAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) (DraftJSON, error) {
	most := int64(request.MaxJSON)
	if actor.IsPerson() {
		most += (hub.MaxIconBytes + 2) / 3 * 4
	}
	var in agentBody
	if err := request.DecodeFields(w, r, most, &in, true); err != nil {
		return in.DraftJSON, err
	}
	switch {
	case in.Package == nil && in.Grants != nil:
		return in.DraftJSON, fault.Field("grants", "are those of a package; name it")
	case in.Package == nil:
		return in.DraftJSON, nil
	case in.Kind != nil && *in.Kind != hub.Wasm:
		return in.DraftJSON, fault.Field("kind", "a package is of the kind wasm")
	}
	got, err := d.packages.Install(r.Context(), actor, *in.Package, in.Grants)
	if err != nil {
		return in.DraftJSON, err
	}
	kind := hub.Wasm
	if in.Kind = &kind; in.Description == nil {
		in.Description = &got.Package.Summary
	}
	in.Config, err = got.Config(in.Config)
	return in.DraftJSON, err
}

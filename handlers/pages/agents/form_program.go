package agents

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"

	"agentsite/handlers/pages"
	"agentsite/internal/grant"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// programTools returns the choice of tools for a hosted program.
func programTools(chosen []string) []templates.Option {
	return []templates.Option{
		{Value: grant.Find, Label: "Find agents", Hint: "It may search for agents, here and on other portals.",
			Selected: slices.Contains(chosen, grant.Find)},
		{Value: grant.Ask, Label: "Ask other agents",
			Hint:     "It may give them work, once the person it talks to allows it.",
			Selected: slices.Contains(chosen, grant.Ask)},
		{Value: grant.Memory, Label: "Remember people", Hint: rememberHint,
			Selected: slices.Contains(chosen, grant.Memory)},
		{Value: grant.Library, Label: "Use people's files", Hint: libraryHint,
			Selected: slices.Contains(chosen, grant.Library)},
	}
}

// programRoom returns the bytes that a form may have for a program: none for a person without the right to upload one.
func (d *Form) programRoom(r *http.Request, actor ident.Actor) int64 {
	if d.hosting.MayUpload(r.Context(), actor) != nil {
		return 0
	}
	return int64(d.hosting.MaxModule())
}

// storeProgram stores the module of a form and puts its hash into the sheet. A module that is refused is an error of
// its field.
func (d *Form) storeProgram(w http.ResponseWriter, r *http.Request, actor ident.Actor, s *sheet) error {
	if r.MultipartForm == nil || hub.Kind(s.view.Kind) != hub.Wasm {
		return nil
	}
	list := r.MultipartForm.File["module_file"]
	if len(list) == 0 || list[0].Size == 0 {
		return nil
	}
	f, err := list[0].Open() // the file is in memory, so there is nothing to close
	if err != nil {
		return err
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	m, err := d.hosting.Upload(r.Context(), actor, list[0].Filename, data)
	if err == nil {
		s.view.Module = m.Hash
		return nil
	}
	messages, _, ok := pages.FieldErrors(w, err)
	if !ok {
		return err
	}
	// The name is that of the service's own error about the missing hash, which this one replaces.
	const field = "config.module"
	if s.bad[field] = messages["module"]; s.bad[field] == "" {
		s.bad[field] = messages[""]
	}
	return nil
}

// maxPlaces is the number of agents that run the same package on the page of one of them.
const maxPlaces = 20

// setPackage adds the package that an agent runs, and the agents that run it, as far as the actor may see them.
func (d *Profile) setPackage(ctx context.Context, actor ident.Actor, a hub.Agent, v *templates.AgentView) {
	v.Package, v.PackageVersion = d.packageOf(a)
	if v.Package == "" {
		return
	}
	ref, err := d.packages.ParseRef(v.Package + "/" + v.PackageVersion)
	if err != nil {
		return
	}
	p, err := d.packages.Find(actor, ref)
	if err != nil {
		return // its portal is gone
	}
	runs := d.packages.Runs(&p)
	for _, run := range runs[:min(len(runs), 2*maxPlaces)] { // some are gone
		agent, err := d.hub.Get(ctx, actor, run.Agent) // asks no other portal, so that the page is fast
		if err != nil || !agent.Listable() {
			continue // it is gone, or in no list
		}
		place := templates.PackagePlace{Handle: agent.Handle(), Version: run.Package.Version,
			State: string(agent.Liveness.State)}
		if agent.Liveness.Latency > 0 {
			place.Latency = pages.FormatLatency(agent.Liveness.Latency)
		}
		if v.Places = append(v.Places, place); len(v.Places) == maxPlaces {
			return
		}
	}
}

// packageOf returns the handle and the version of the package that an agent runs, "" for none.
func (d *Profile) packageOf(a hub.Agent) (handle, version string) {
	if d.packages == nil || a.Kind != hub.Wasm {
		return "", ""
	}
	if a.Elsewhere() {
		return d.packages.PackageOf("", "", a.ID)
	}
	var conf hub.WasmConfig
	if json.Unmarshal(a.Config, &conf) != nil {
		return "", ""
	}
	return d.packages.PackageOf(a.OwnerID, conf.Module, "")
}

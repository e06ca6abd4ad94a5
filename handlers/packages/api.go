// Package packages has the API routes and the pages of packages, and of the rules of hosting them.
package packages

import (
	"context"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/packages"
)

// Agents looks agents up; hub.Service implements it.
type Agents interface {
	Anywhere(ctx context.Context, actor ident.Actor, name string) (hub.Agent, error)
}

// API answers the routes. Create it with New.
type API struct {
	service  *packages.Service
	agents   Agents
	sessions *request.Sessions
	host     string // of this portal
}

// New returns the routes over the service.
func New(service *packages.Service, agents Agents, sessions *request.Sessions, host string) *API {
	return &API{service, agents, sessions, host}
}

// Routes declares the routes below /api/v1.
func (a *API) Routes(r chi.Router) {
	r.Get("/packages", a.sessions.Listing(a.listPackages))
	r.Post("/packages", a.sessions.API(a.publishPackage))
	r.Get("/packages/{name}", a.sessions.Listing(a.showPackage))
	r.Get("/packages/{name}/{version}", a.sessions.Listing(a.showPackage))
	r.Get("/packages/{name}/{version}/module", a.sessions.Listing(a.sendModule))
	r.Post("/packages/{name}/{version}/deprecate", a.sessions.API(a.setState(packages.Deprecated)))
	r.Post("/packages/{name}/{version}/withdraw", a.sessions.API(a.setState(packages.Withdrawn)))
	r.Post("/packages/{name}/{version}/kill", a.sessions.API(a.setState(packages.Killed)))
	r.Get("/hosting/kills", a.sessions.API(a.listKills))
	r.Put("/hosting/kills/{hash}", a.sessions.API(a.putKill))
	r.Delete("/hosting/kills/{hash}", a.sessions.API(a.deleteKill))
}

// PackageJSON is a version of a package. Versions and Runs are set in the answer for one package only.
type PackageJSON struct {
	Handle    string           `json:"handle"`
	Name      string           `json:"name"`
	Portal    string           `json:"portal"`
	Version   string           `json:"version"`
	Summary   string           `json:"summary"`
	Licence   string           `json:"licence"`
	Entry     string           `json:"entry"`
	Grants    []packages.Grant `json:"grants"`
	Limits    packages.Limits  `json:"limits"`
	Languages []string         `json:"languages"`
	Author    string           `json:"author"`
	Module    string           `json:"module"`
	Size      int64            `json:"size"`
	Readme    string           `json:"readme"`
	State     packages.State   `json:"state"`
	Note      string           `json:"note"`
	Verified  bool             `json:"verified"`
	Downloads int64            `json:"downloads"`
	CreatedAt string           `json:"created_at"`
	UpdatedAt string           `json:"updated_at"`
	Versions  []VersionJSON    `json:"versions,omitempty"`
	Runs      []RunJSON        `json:"runs,omitempty"`
}

// VersionJSON is one of the versions of a package.
type VersionJSON struct {
	Version   string         `json:"version"`
	State     packages.State `json:"state"`
	Note      string         `json:"note"`
	Module    string         `json:"module"`
	CreatedAt string         `json:"created_at"`
}

// RunJSON is an agent that runs a package.
type RunJSON struct {
	Agent    string   `json:"agent"`
	Version  string   `json:"version"`
	Liveness hub.Live `json:"liveness"`
}

func (a *API) toJSON(p *packages.Package) PackageJSON {
	out := PackageJSON{Handle: p.Handle(), Name: p.Name, Portal: p.Portal, Version: p.Version, Summary: p.Summary,
		Licence: p.Licence, Entry: p.Entry, Grants: p.Grants, Limits: p.Limits, Languages: p.Languages, Author: p.Author,
		Module: p.Module, Size: p.Size, Readme: p.Readme, State: p.State, Note: p.Note, Verified: p.Verified,
		Downloads: p.Downloads, CreatedAt: respond.FormatTime(p.CreatedAt), UpdatedAt: respond.FormatTime(p.UpdatedAt)}
	if out.Portal == "" {
		out.Portal = a.host
	}
	if out.Grants == nil {
		out.Grants = []packages.Grant{}
	}
	if out.Languages == nil {
		out.Languages = []string{}
	}
	return out
}

func (a *API) listPackages(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	limit, err := request.QueryInt(r, "limit", 0)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	list, next, err := a.service.List(actor, packages.Query{Text: q.Get("q"), After: q.Get("cursor"), Limit: int(limit)})
	if err != nil {
		return err
	}
	out := make([]PackageJSON, len(list))
	for i := range list {
		out[i] = a.toJSON(&list[i])
	}
	respond.JSON(w, http.StatusOK, map[string]any{"packages": out, "next_cursor": next})
	return nil
}

// PublishBody is a manifest with the hash of an uploaded module.
type PublishBody struct {
	Name      string           `json:"name"`
	Version   string           `json:"version"`
	Summary   string           `json:"summary"`
	Licence   string           `json:"licence"`
	Entry     string           `json:"entry"`
	Grants    []packages.Grant `json:"grants"`
	Limits    packages.Limits  `json:"limits"`
	Languages []string         `json:"languages"`
	Module    string           `json:"module"`
	Readme    string           `json:"readme"`
}

func (a *API) publishPackage(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in PublishBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	p, err := a.service.Publish(r.Context(), actor, packages.Draft{Manifest: packages.Manifest{Name: in.Name,
		Version: in.Version, Summary: in.Summary, Licence: in.Licence, Entry: in.Entry, Grants: in.Grants,
		Limits: in.Limits, Languages: in.Languages}, Module: in.Module, Readme: in.Readme})
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/v1/packages/"+p.Name+"/"+p.Version)
	respond.JSON(w, http.StatusCreated, a.toJSON(&p))
	return nil
}

// refOf returns the package that the path names. The version "latest" is the newest that may be hosted.
func refOf(s *packages.Service, r *http.Request) (packages.Ref, error) {
	text := request.PathName(r)
	if v := request.PathParam(r, "version"); v != "" && v != packages.Latest {
		text += "/" + v
	}
	ref, err := s.ParseRef(text)
	if err != nil {
		return ref, fault.New(fault.NotFound, "There is no package %.80q here.", text)
	}
	return ref, nil
}

// maxRuns bounds the agents that are shown to run a package.
const maxRuns = 50

func (a *API) showPackage(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	ref, err := refOf(a.service, r)
	if err != nil {
		return err
	}
	p, err := a.service.Find(actor, ref)
	if err != nil {
		return err
	}
	out := a.toJSON(&p)
	ref.Version = ""
	list, err := a.service.Versions(actor, ref)
	if err != nil {
		return err
	}
	for _, v := range list {
		out.Versions = append(out.Versions, VersionJSON{v.Version, v.State, v.Note, v.Module,
			respond.FormatTime(v.CreatedAt)})
	}
	for _, run := range runsOf(r.Context(), a.service, a.agents, actor, &p) {
		out.Runs = append(out.Runs, RunJSON{run.agent.Handle(), run.version, run.agent.Liveness.State})
	}
	respond.JSON(w, http.StatusOK, out)
	return nil
}

// place is an agent that runs a package and that the actor may see.
type place struct {
	agent   hub.Agent
	version string
}

// runsOf returns the agents that run a package, as far as the actor may see them.
func runsOf(ctx context.Context, s *packages.Service, agents Agents, actor ident.Actor,
	p *packages.Package) (out []place) {
	runs := s.Runs(p)
	for _, run := range runs[:min(len(runs), 2*maxRuns)] { // some are gone
		agent, err := agents.Anywhere(ctx, actor, run.Agent)
		if err != nil || !agent.Listable() {
			continue // it is gone, or in no list
		}
		if out = append(out, place{agent, run.Package.Version}); len(out) == maxRuns {
			break
		}
	}
	return out
}

func (a *API) sendModule(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	ref, err := refOf(a.service, r)
	if err != nil {
		return err
	}
	p, data, err := a.service.ReadModule(r.Context(), actor, ref)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/wasm")
	h.Set("Content-Length", strconv.Itoa(len(data)))
	h.Set("Content-Disposition", `attachment; filename="`+p.Name+"-"+p.Version+`.wasm"`)
	h.Set("Agentsite-Module", p.Module)
	_, _ = w.Write(data) // an error means that the caller is gone
	return nil
}

// StateBody has the note on a state. It may be empty, except for a kill.
type StateBody struct {
	Note string `json:"note"`
}

func (a *API) setState(to packages.State) request.Handler {
	return func(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
		var in StateBody
		if err := request.DecodeBody(w, r, &in); err != nil {
			return err
		}
		p, err := a.service.SetState(r.Context(), actor, request.PathName(r), request.PathParam(r, "version"), to, in.Note)
		if err != nil {
			return err
		}
		respond.JSON(w, http.StatusOK, a.toJSON(&p))
		return nil
	}
}

// KillJSON is a kill notice. Binding is false for the advice of another portal.
type KillJSON struct {
	Hash      string `json:"hash"`
	Reason    string `json:"reason"`
	Portal    string `json:"portal"`
	Package   string `json:"package,omitempty"`
	Binding   bool   `json:"binding"`
	CreatedAt string `json:"created_at"`
}

func (a *API) listKills(w http.ResponseWriter, _ *http.Request, actor ident.Actor) error {
	list, err := a.service.Notices(actor)
	if err != nil {
		return err
	}
	out := make([]KillJSON, len(list))
	for i, n := range list {
		out[i] = a.killJSON(n)
	}
	respond.JSON(w, http.StatusOK, map[string]any{"kills": out, "next_cursor": ""})
	return nil
}

func (a *API) killJSON(n packages.Notice) KillJSON {
	if n.Portal == "" {
		n.Portal = a.host
	}
	return KillJSON{n.Hash, n.Reason, n.Portal, n.Package, n.Binding, respond.FormatTime(n.CreatedAt)}
}

// KillBody is the reason of a kill notice.
type KillBody struct {
	Reason string `json:"reason"`
}

func (a *API) putKill(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in KillBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	k, err := a.service.PutKill(r.Context(), actor, request.PathParam(r, "hash"), in.Reason)
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, a.killJSON(packages.Notice{Kill: k, Binding: true}))
	return nil
}

func (a *API) deleteKill(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	err := a.service.DeleteKill(r.Context(), actor, request.PathParam(r, "hash"))
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

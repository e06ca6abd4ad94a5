package registry

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/registry"
)

// publishVersion stores a version of a server. A published version can never be changed, only its status.
func (d *Handler) publishVersion(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	raw, err := readDocument(w, r)
	if err != nil {
		return err
	}
	// Checked before the document, because a caller without a token cannot use errors about it.
	if actor.Kind == ident.Guest {
		return fault.New(fault.Unauthenticated,
			"Log in first: mcp-publisher login http or dns proves a domain, and an API token of an account with the scope %s may publish too.", ident.AgentsWrite)
	}
	var s serverJSON
	if err := decodeStrict(raw, &s); err != nil {
		return err
	}
	if f := d.checkServer(&s); !f.Valid {
		return f.asError()
	}
	_, short, _ := strings.Cut(s.Name, "/")
	release := registry.Release{Name: s.Name, Version: s.Version, Title: cmp.Or(strings.TrimSpace(s.Title), short),
		Description: s.Description, Endpoint: s.endpoint(), Document: raw}
	for _, t := range s.Remotes {
		if !slices.Contains(release.Remotes, t.URL) {
			release.Remotes = append(release.Remotes, t.URL)
		}
	}
	published, err := d.Directory.PublishRelease(r.Context(), actor, release)
	if err != nil && !fault.Is(err, fault.Unauthenticated) {
		return refuse(http.StatusBadRequest, "Failed to publish server", err)
	}
	if err != nil {
		return err
	}
	return respond.WriteJSON(w, http.StatusOK, d.releaseJSON(published))
}

// asError returns an error with all findings of severity error, by their path in server.json.
func (f findings) asError() error {
	e := &refusal{status: http.StatusUnprocessableEntity,
		detail: "Failed to publish server, invalid schema: call /validate for details"}
	fields := make(map[string]string)
	for _, i := range f.Issues {
		if i.Severity == "error" {
			e.parts = append(e.parts, problemPart{i.Message, "body." + i.Path})
			fields[i.Path] = i.Message
		}
	}
	e.cause = &fault.Error{Kind: fault.Invalid, Safe: e.detail, Fields: fields}
	return e
}

type statusJSON struct {
	Status  string  `json:"status"`
	Message *string `json:"statusMessage"`
}

// setOneStatus changes the status of one version: active, deprecated or deleted.
func (d *Handler) setOneStatus(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.setStatus(w, r, actor, request.PathParam(r, "version"))
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return fault.New(fault.NotFound, "Server version not found")
	}
	return respond.WriteJSON(w, http.StatusOK, d.releaseJSON(list[0]))
}

// statusOfAll changes the status of every version of a server at once.
func (d *Handler) statusOfAll(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.setStatus(w, r, actor, "")
	if err != nil {
		return err
	}
	return respond.WriteJSON(w, http.StatusOK, struct {
		Updated int           `json:"updatedCount"`
		Servers []releaseJSON `json:"servers"`
	}{len(list), d.releasesJSON(list)})
}

func (d *Handler) setStatus(w http.ResponseWriter, r *http.Request, actor ident.Actor,
	version string) ([]registry.Release, error) {
	var in statusJSON
	if err := request.DecodeJSON(w, r, 16<<10, &in, true); err != nil {
		return nil, err
	}
	return d.Directory.SetReleaseStatus(r.Context(), actor, request.PathParam(r, "name"), version, in.Status,
		in.Message)
}

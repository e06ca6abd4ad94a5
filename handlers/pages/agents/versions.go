package agents

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/api"
	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/agentkind"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

func (d *Profile) agentVersions(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.hub.Get(r.Context(), actor, request.PathName(r))
	if err != nil {
		return err
	}
	before, err := request.QueryInt(r, "before", 0)
	if err != nil {
		return err
	}
	list, next, err := d.hub.Versions(r.Context(), actor, a.Name, int(before))
	if err != nil {
		return err
	}
	v := templates.VersionsView{Ref: a.Handle(), Title: a.Title}
	if next > 0 {
		v.MoreHref = "/agents/" + a.Name + "/versions?before=" + strconv.Itoa(next)
	}
	for i, old := range list {
		row := d.versionRow(a, old)
		if row.Note == "" && i+1 < len(list) {
			row.Note = changedWords(api.VisibleChanges(d.hub, actor, a, old, &list[i+1]))
		}
		v.Versions = append(v.Versions, row)
	}
	p := d.site.Frame(r, actor, "Versions of "+a.Title)
	if r.URL.Query().Get("done") == "rollback" {
		p.Flash = "It is as it was then. That is a new version, so nothing is lost."
	}
	return d.site.Render(w, r, http.StatusOK, templates.Versions(p, v))
}

func (d *Profile) versionRow(now, at hub.Agent) templates.VersionRow {
	row := templates.VersionRow{Number: pages.FormatNumber(int64(at.Version)), Href: versionHref(now.Name, at.Version),
		Title: at.Title, Description: d.markup.Line(at.Description),
		Note: at.Note, Author: at.Author, Visibility: string(at.Visibility), Time: pages.FormatMoment(at.UpdatedAt),
		Current: at.Version == now.Version}
	if at.Status.State != hub.Active {
		row.State = at.Status.State
	}
	if row.Note == "" && at.Version == 1 {
		row.Note = "Registered"
	}
	return row
}

// fieldsNamed is the number of changed fields that a row of the list of versions names.
const fieldsNamed = 4

// changedWords lists the changed fields of a version, for versions without a note.
func changedWords(list []hub.Change) string {
	if len(list) == 0 {
		return ""
	}
	var names []string
	for _, c := range list[:min(len(list), fieldsNamed)] {
		names = append(names, strings.ToLower(c.Field[:1])+c.Field[1:])
	}
	text := "Changed " + strings.Join(names, ", ")
	if more := len(list) - fieldsNamed; more > 0 {
		text += " and " + strconv.Itoa(more) + " more"
	}
	return text
}

func versionHref(name string, version int) string {
	return "/agents/" + name + "/versions/" + strconv.Itoa(version)
}

// agentVersion shows a version of an agent and its differences from the version before.
func (d *Profile) agentVersion(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	now, err := d.hub.Get(r.Context(), actor, request.PathName(r))
	if err != nil {
		return err
	}
	n, err := request.ParseVersion(chi.URLParam(r, "version"))
	if err != nil {
		return err
	}
	at, before, err := d.hub.VersionOf(r.Context(), actor, now.Name, n)
	if err != nil {
		return err
	}
	v := templates.VersionView{Ref: now.Handle(), VersionRow: d.versionRow(now, at),
		Kind: agentkind.Of(at.Kind).Label, Body: d.markup.Message(at.Description),
		Languages: languageNames(at.Languages), Takes: modeTexts(at.InputModes), Gives: modeTexts(at.OutputModes)}
	// an older publisher may have been verified for another owner, so it is not shown
	if at.Publisher == now.Publisher {
		v.Publisher = at.Publisher
	}
	for _, s := range at.Skills {
		v.Skills = append(v.Skills, templates.Skill{ID: s.ID, Name: s.Name, Description: s.Description, Tags: s.Tags,
			Examples: s.Examples})
	}
	if before != nil {
		v.Before, v.BeforeHref = pages.FormatNumber(int64(before.Version)), versionHref(now.Name, before.Version)
		v.Changes = diffView(api.VisibleChanges(d.hub, actor, now, at, before))
	}
	if now.MayEdit(actor) {
		v.Endpoint = at.Endpoint
		if at.Version != now.Version {
			v.Base = strconv.Itoa(now.Version)
		}
		v.Plain = strconv.Itoa(at.Version)
	}
	return d.site.Render(w, r, http.StatusOK,
		templates.Version(d.site.Frame(r, actor, "Version "+v.Number+" of "+now.Title), v))
}

// rollbackAgent publishes an earlier version again as the newest one, so that no version is lost.
func (d *Profile) rollbackAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	version, err := strconv.Atoi(in.Get("version"))
	if err != nil {
		version = -1 // an invalid number, which matches no version
	}
	base, err := strconv.Atoi(in.Get("base"))
	if err != nil {
		base = 0
	}
	a, err := d.hub.Rollback(r.Context(), actor, request.PathName(r), version, base)
	if err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/agents/"+a.Name+"/versions?done=rollback")
}

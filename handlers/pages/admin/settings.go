package admin

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/internal/adjust"
	"agentsite/internal/ident"
	"agentsite/internal/models"
	"agentsite/templates"
)

// settingTexts are the labels and hints of settings.
var settingTexts = map[string]templates.SettingRow{
	adjust.Name: {Label: "Name",
		Hint: "Stands on all pages; the host if it is empty. Other portals see a change within an hour."},
	adjust.Contact: {Label: "Contact", Lines: 2, Placeholder: "ops@example.org",
		Hint: "How people reach you. Stands on the page About."},
	adjust.Rules:    {Label: "Rules", Lines: 3, Hint: "What is allowed here, in Markdown. Stands on the page About."},
	adjust.Accounts: {Label: "Who may sign up", Hint: "People who have an account keep it."},
	adjust.Guests:   {Label: "Visitors without an account", Hint: "Whether they may talk to public agents, within limits."},
	adjust.Limits: {Label: "Limits", Lines: 2, Placeholder: "running-per-agent=16, account=2G",
		Hint: "NAME=VALUE, separated by commas. The manual lists them under Limits."},
}

// declareSettings declares the routes of the settings and of a new operator's first page.
func (d *Pages) declareSettings(r chi.Router) {
	r.Get("/admin/settings", d.site.Page(operatorOnly(d.showSettings)))
	r.Post("/admin/settings", changing(d, d.saveSettings))
	r.Post("/admin/settings/undo", changing(d, d.undoSetting))
	r.Get("/admin/welcome", d.site.Page(operatorOnly(d.welcome)))
	r.Post("/admin/welcome", changing(d, d.saveWelcome))
}

func (d *Pages) showSettings(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.renderSettings(w, r, actor, http.StatusOK, nil, templates.AdminSettings{})
}

// renderSettings shows the settings. typed has the values of a form that was refused, by name.
func (d *Pages) renderSettings(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int,
	typed adjust.Values, v templates.AdminSettings) error {
	list, err := d.settings.List(r.Context(), actor)
	if err != nil {
		return err
	}
	for _, s := range list {
		row := settingTexts[s.Name]
		row.Name, row.Value, row.Given, row.Pending = s.Name, s.Value, s.Given, s.Pending
		row.Undo = s.Undo
		if !adjust.IsLive(s.Name) {
			row.Hint += " A change applies after a restart."
		}
		if !s.Changed.IsZero() {
			row.Changed = pages.FormatMoment(s.Changed)
		}
		if value, ok := typed[s.Name]; ok {
			row.Value = value
		}
		switch s.Name {
		case adjust.Name:
			row.Placeholder = d.portal.Host
		case adjust.Accounts:
			row.Options = templates.SelectOptions(row.Value, templates.SignUps()...)
		case adjust.Guests:
			row.Options = templates.SelectOptions(row.Value, [2]string{"on", "May talk to public agents"},
				[2]string{"off", "May only look around"})
		}
		v.Rows = append(v.Rows, row)
		v.Restart = v.Restart || s.Pending
	}
	if v.Model, v.ModelFixed, _, err = d.ownModel(r, actor); err != nil {
		return err
	}
	return d.showAdmin(w, r, actor, code, templates.AdminView{Tab: "settings", Settings: &v})
}

// ownModel describes the model that agents of the portal use if they name none, and the flag that fixes it; ok is false
// without such a model.
func (d *Pages) ownModel(r *http.Request, actor ident.Actor) (text, fixed string, ok bool, err error) {
	list, err := d.models.List(r.Context(), actor)
	if err != nil {
		return "", "", false, err
	}
	for _, m := range list {
		if m.IsPortal() && m.Name == models.Default {
			if text = m.Model + " at " + m.URL; m.Fixed {
				fixed = "--llm-url"
			}
			return text, fixed, true, nil
		}
	}
	return "none; agents made of instructions need one", "", false, nil
}

func (d *Pages) saveSettings(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	values := make(adjust.Values)
	for _, name := range adjust.Names() {
		if in.Has(name) {
			values[name] = in.Get(name)
		}
	}
	changed, err := d.settings.Change(r.Context(), actor, in.Get("confirm"), values)
	if err != nil {
		messages, code, ok := pages.FieldErrors(w, err)
		if !ok {
			return err
		}
		return d.renderSettings(w, r, actor, code, values, templates.AdminSettings{Errors: messages})
	}
	return d.renderSettings(w, r, actor, http.StatusOK, nil, templates.AdminSettings{Saved: settingLabels(changed)})
}

// settingLabels returns the labels of settings as a list in a sentence.
func settingLabels(names []string) string {
	for i, name := range names {
		names[i] = settingTexts[name].Label
	}
	return strings.Join(names, ", ")
}

func (d *Pages) undoSetting(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	name := in.Get("setting")
	if err := d.settings.Undo(r.Context(), actor, in.Get("confirm"), name); err != nil {
		messages, code, ok := pages.FieldErrors(w, err)
		if !ok {
			return err
		}
		return d.renderSettings(w, r, actor, code, nil, templates.AdminSettings{Errors: messages})
	}
	return d.renderSettings(w, r, actor, http.StatusOK, nil,
		templates.AdminSettings{Saved: settingLabels([]string{name})})
}

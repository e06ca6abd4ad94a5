package account

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/models"
	"agentsite/internal/usage"
	"agentsite/templates"
)

func (d *Pages) listModels(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if !actor.IsPerson() {
		return respond.SeeOther(w, r, "/login?next="+url.QueryEscape("/account/models"))
	}
	return d.showModels(w, r, actor, http.StatusOK, templates.ModelForm{})
}

// showModels renders the page. failed is a form that was refused, to show it as typed.
func (d *Pages) showModels(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int,
	failed templates.ModelForm) error {
	list, err := d.models.List(r.Context(), actor)
	if err != nil {
		return err
	}
	v := templates.ModelsView{New: templates.ModelForm{Provider: string(models.OpenAI)}, Operator: actor.IsOperator()}
	for _, m := range list {
		form := templates.ModelForm{ID: m.ID, Name: m.Name, Provider: string(m.Provider), URL: m.URL, Model: m.Model,
			Fallback: m.Fallback, Input: formatPrice(m.Price.Input), Output: formatPrice(m.Price.Output),
			Portal: m.IsPortal(), HasKey: m.HasKey}
		if m.ID != "" && m.ID == failed.ID {
			failed.HasKey, failed.Portal = m.HasKey, m.IsPortal()
			form = failed
		}
		row := templates.ModelRow{ModelForm: form, Default: m.IsPortal() && m.Name == models.Default,
			Editable: !m.Fixed && (!m.IsPortal() || actor.IsOperator())}
		if u, err := url.Parse(m.URL); err == nil {
			row.Host = u.Host
		}
		v.Models = append(v.Models, row)
	}
	if failed.ID == "" && len(failed.Errors) > 0 {
		v.New = failed
	}
	p := d.site.Frame(r, actor, "Models")
	if r.Method == http.MethodGet {
		p.Flash = map[string]string{"saved": "Saved.",
			"deleted": "Deleted. Agents that name it need another."}[r.URL.Query().Get("done")]
	}
	return d.site.Render(w, r, code, templates.Models(p, v))
}

func formatPrice(v float64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// saveModel creates a model or, with an id in the path, changes it.
func (d *Pages) saveModel(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	get := func(name string) *string {
		s := strings.TrimSpace(in.Get(name))
		return &s
	}
	provider := models.Provider(in.Get("provider"))
	draft := models.Draft{Name: get("name"), Provider: &provider, URL: get("url"), Model: get("model"),
		Fallback: get("fallback")}
	if key := get("key"); *key != "" || in.Get("no_key") != "" {
		draft.Key = key
	}
	form := templates.ModelForm{ID: request.PathParam(r, "id"), Name: *draft.Name, Provider: string(provider),
		URL: *draft.URL, Model: *draft.Model, Fallback: *draft.Fallback, Input: *get("input"), Output: *get("output"),
		Portal: in.Get("portal") != ""}
	var c fault.Check
	draft.Price = &usage.Price{Input: parsePrice(&c, form.Input), Output: parsePrice(&c, form.Output)}
	if err = c.Err(); err == nil && form.ID == "" {
		_, err = d.models.Create(r.Context(), actor, draft, form.Portal)
	} else if err == nil {
		_, err = d.models.Update(r.Context(), actor, form.ID, draft)
	}
	if err == nil {
		return respond.SeeOther(w, r, "/account/models?done=saved")
	}
	if fault.Is(err, fault.Conflict) {
		err = fault.Field("name", fault.As(err).Safe)
	}
	messages, code, ok := pages.FieldErrors(w, err)
	if !ok || !actor.IsPerson() {
		return err
	}
	form.Errors = messages
	return d.showModels(w, r, actor, code, form)
}

// parsePrice reads a price of a form; "" is 0.
func parsePrice(c *fault.Check, s string) float64 {
	if s == "" {
		return 0
	}
	v, err := strconv.ParseFloat(s, 64)
	c.Field(err == nil && v >= 0, "price", "use a number such as 0.15")
	return v
}

func (d *Pages) deleteModel(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.models.Delete(r.Context(), actor, request.PathParam(r, "id")); err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/account/models?done=deleted")
}

package admin

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"strings"

	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/adjust"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/models"
	"agentsite/templates"
)

// welcome shows the first page of a new operator.
func (d *Pages) welcome(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.renderWelcome(w, r, actor, http.StatusOK, nil, templates.AdminWelcome{})
}

func (d *Pages) renderWelcome(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int,
	typed adjust.Values, v templates.AdminWelcome) error {
	list, err := d.settings.List(r.Context(), actor)
	if err != nil {
		return err
	}
	for _, s := range list {
		value := s.Value
		if t, ok := typed[s.Name]; ok {
			value = t
		}
		switch s.Name {
		case adjust.Name:
			v.Name, v.NameGiven = value, s.Given
		case adjust.Contact:
			v.Contact, v.ContactGiven = value, s.Given
		case adjust.Accounts:
			v.Accounts, v.AccountsGiven = value, s.Given
		}
	}
	v.Host = d.portal.Host
	if _, _, v.HasModel, err = d.ownModel(r, actor); err != nil {
		return err
	}
	return d.site.Render(w, r, code, templates.AdminFirst(d.site.Frame(r, actor, "Set up your portal"), v))
}

// saveWelcome stores the filled fields of the first page once all of them are right. It asks the model's server and
// joins the other portal before it stores anything, so that a part that fails leaves nothing behind.
func (d *Pages) saveWelcome(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	values := make(adjust.Values)
	for _, name := range []string{adjust.Name, adjust.Contact, adjust.Accounts} {
		if in.Has(name) {
			values[name] = in.Get(name)
		}
	}
	v := templates.AdminWelcome{URL: strings.TrimSpace(in.Get("url")), ModelURL: strings.TrimSpace(in.Get("model_url")),
		ModelName: strings.TrimSpace(in.Get("model"))}
	draft, hasModel := modelDraft(v, strings.TrimSpace(in.Get("key")))
	checks := []func() error{func() error { return d.settings.CheckFresh(r.Context(), actor, values) }}
	if hasModel {
		checks = append(checks, func() error { return checkModel(r.Context(), d, actor, draft) })
	}
	code := http.StatusOK
	refuse := func(err error) bool {
		messages, status, ok := pages.FieldErrors(w, err)
		if ok && code == http.StatusOK {
			code, v.Errors = status, messages
		} else if ok {
			maps.Copy(v.Errors, messages)
		}
		return ok
	}
	for _, check := range checks {
		if err := check(); err != nil && !refuse(err) {
			return err
		}
	}
	if code == http.StatusOK {
		err := storeWelcome(r.Context(), d, actor, values, draft, v)
		if err == nil {
			return respond.SeeOther(w, r, "/admin")
		}
		if !refuse(err) {
			return err
		}
	}
	v.KeyTyped = draft.Key != nil
	return d.renderWelcome(w, r, actor, code, values, v)
}

// storeWelcome joins the other portal and stores the settings and the model, which were checked before. v.URL is
// empty without a portal, draft.URL nil without a model.
func storeWelcome(ctx context.Context, d *Pages, actor ident.Actor, values adjust.Values, draft models.Draft,
	v templates.AdminWelcome) error {
	if v.URL != "" {
		if _, _, err := d.peers.Add(ctx, actor, v.URL); err != nil {
			return err
		}
	}
	if _, err := d.settings.ChangeFresh(ctx, actor, values); err != nil || draft.URL == nil {
		return err
	}
	_, err := d.models.Create(ctx, actor, draft, true)
	return modelField(err)
}

// modelDraft returns the model of the first page, which agents of the portal use if they name none; ok is false without
// one.
func modelDraft(v templates.AdminWelcome, key string) (draft models.Draft, ok bool) {
	if v.ModelURL+v.ModelName+key == "" {
		return draft, false
	}
	name := models.Default
	draft = models.Draft{Name: &name, URL: &v.ModelURL, Model: &v.ModelName}
	if key != "" {
		draft.Key = &key
	}
	return draft, true
}

// checkModel returns an error if the model cannot be stored or its server does not have it.
func checkModel(ctx context.Context, d *Pages, actor ident.Actor, draft models.Draft) error {
	m, err := d.models.Check(actor, draft, true)
	if err == nil {
		server := models.Server{Provider: m.Provider, URL: m.URL}
		if draft.Key != nil {
			server.Key = *draft.Key
		}
		err = d.servers.AskModel(ctx, server, m.Model)
	}
	return modelField(err)
}

// modelField returns an error about a model for the form of the first page, whose fields url and name are those of the
// other portal and of this one.
func modelField(err error) error {
	f := fault.As(err)
	if err == nil || f.Fields["url"]+f.Fields["name"] == "" && len(f.Fields) > 0 {
		return err
	}
	out := *f
	out.Fields = map[string]string{"model_url": cmp.Or(f.Fields["url"], f.Fields["name"], f.Safe)}
	for _, field := range []string{"model", "key"} {
		if text := f.Fields[field]; text != "" {
			out.Fields[field] = text
		}
	}
	return &out
}

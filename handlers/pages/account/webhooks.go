package account

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/notify"
	"agentsite/templates"
)

// eventTexts are the label and the explanation of each webhook event in the form.
var eventTexts = map[notify.Type][2]string{
	notify.TaskEnded:       {"A task ended", "Work you asked an agent for is done, failed or was stopped"},
	notify.TaskAsks:        {"A task asks", "An agent waits for you"},
	notify.MessageSaid:     {"A message", "Others say something in a conversation of yours"},
	notify.AgentRegistered: {"Agent registered", "You have a new agent"},
	notify.AgentChanged:    {"Agent changed", "An agent of yours has a new version"},
	notify.AgentRemoved:    {"Agent removed", "An agent of yours was removed"},
	notify.AgentLiveness:   {"Agent up or down", "An agent of yours answers otherwise than before"},
	notify.AgentReported:   {"Agent reported", "An agent of this portal was reported"},
}

// usualEvents are the events that are preselected in the form for a new webhook.
var usualEvents = []string{string(notify.TaskEnded), string(notify.TaskAsks)}

// shownDeliveries is the number of delivery attempts that the page shows per webhook.
const shownDeliveries = 10

func (d *Pages) webhooks(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if !actor.IsPerson() {
		return respond.SeeOther(w, r, "/login?next="+url.QueryEscape("/account/webhooks"))
	}
	return d.showWebhooks(w, r, actor, http.StatusOK, templates.WebhooksView{}, usualEvents)
}

func (d *Pages) showWebhooks(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int,
	v templates.WebhooksView, chosen []string) error {
	rows, err := d.webhookRows(r, actor)
	if err != nil {
		return err
	}
	v.Webhooks = rows
	for _, t := range notify.Types {
		if t == notify.AgentReported && !actor.IsOperator() {
			continue
		}
		v.Events = append(v.Events, templates.Option{Value: string(t), Label: eventTexts[t][0], Hint: eventTexts[t][1],
			Selected: slices.Contains(chosen, string(t))})
	}
	p := d.site.Frame(r, actor, "Webhooks")
	if r.Method == http.MethodGet {
		p.Flash = map[string]string{"tested": "The test was sent. What came of it is the first of its deliveries.",
			"saved": "Saved.", "deleted": "The webhook is deleted."}[r.URL.Query().Get("done")]
	}
	return d.site.Render(w, r, code, templates.Webhooks(p, v))
}

func (d *Pages) webhookRows(r *http.Request, actor ident.Actor) (rows []templates.WebhookRow, err error) {
	list, err := d.hooks.Webhooks(r.Context(), actor)
	if err != nil {
		return nil, err
	}
	for _, h := range list {
		row, err := d.webhookRow(r, actor, h)
		if fault.Is(err, fault.NotFound) {
			continue // the webhook was deleted after the list was read
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (d *Pages) webhookRow(r *http.Request, actor ident.Actor, h notify.Hook) (templates.WebhookRow, error) {
	row := templates.WebhookRow{ID: h.ID, URL: h.URL, Label: h.Label, Active: h.State == notify.Active,
		Failed: h.State == notify.Failed, Failing: h.Failures > 0 && h.State == notify.Active,
		Reason: h.Reason, Waiting: h.Waiting, Missed: h.Missed, Next: pages.FormatMoment(h.NextAt)}
	for _, t := range h.Events {
		row.Events = append(row.Events, eventTexts[t][0])
	}
	list, err := d.hooks.Deliveries(r.Context(), actor, h.ID, shownDeliveries)
	if err != nil {
		return row, err
	}
	for _, a := range list {
		text := "taken, status " + strconv.Itoa(a.Status)
		if a.Error != "" {
			text = a.Error
		}
		row.Deliveries = append(row.Deliveries,
			templates.DeliveryRow{Type: string(a.Type), At: pages.FormatMoment(a.At), Taken: a.Error == "", Text: text,
				Took: fmt.Sprintf("%d ms", a.Took.Milliseconds())})
	}
	return row, nil
}

// addWebhook creates a webhook. The answer itself shows the secret, because a redirect could not show it
// later.
func (d *Pages) addWebhook(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	v := templates.WebhooksView{URL: strings.TrimSpace(in.Get("url")), Label: in.Get("label")}
	events := []notify.Type{}
	for _, s := range in["events"] {
		events = append(events, notify.Type(s))
	}
	h, secret, err := d.hooks.AddWebhook(r.Context(), actor,
		notify.Draft{URL: &v.URL, Label: &v.Label, Events: &events})
	if err != nil {
		messages, code, ok := pages.FieldErrors(w, err)
		if !ok || !actor.IsPerson() {
			return err
		}
		v.Errors = messages
		return d.showWebhooks(w, r, actor, code, v, in["events"])
	}
	return d.showWebhooks(w, r, actor, http.StatusOK, templates.WebhooksView{Secret: secret, SecretOf: h.URL},
		usualEvents)
}

func (d *Pages) testWebhook(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	id := chi.URLParam(r, "id")
	if _, err := d.hooks.SendTest(r.Context(), actor, id); err != nil {
		messages, code, ok := pages.FieldErrors(w, err)
		if !ok || !fault.Is(err, fault.RateLimited) {
			return err
		}
		return d.showWebhooks(w, r, actor, code, templates.WebhooksView{Errors: messages}, usualEvents)
	}
	return respond.SeeOther(w, r, "/account/webhooks?done=tested#"+url.PathEscape("hook-"+id))
}

func (d *Pages) switchWebhook(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	active := in.Get("active") == "yes"
	if _, err := d.hooks.SetWebhook(r.Context(), actor, chi.URLParam(r, "id"),
		notify.Draft{Active: &active}); err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/account/webhooks?done=saved")
}

func (d *Pages) deleteWebhook(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.hooks.DropWebhook(r.Context(), actor, chi.URLParam(r, "id")); err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/account/webhooks?done=deleted")
}

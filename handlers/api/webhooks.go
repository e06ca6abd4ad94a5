package api

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/ident"
	"agentsite/internal/notify"
)

type webhookJSON struct {
	ID           string        `json:"id"`
	URL          string        `json:"url"`
	Label        string        `json:"label"`
	Events       []notify.Type `json:"events"`
	State        notify.State  `json:"state"`
	Reason       string        `json:"reason,omitempty"`
	Waiting      int           `json:"waiting"`
	Missed       int           `json:"missed"`
	FailingSince string        `json:"failing_since,omitempty"`
	NextAt       string        `json:"next_at,omitempty"`
	CreatedAt    string        `json:"created_at"`
	UpdatedAt    string        `json:"updated_at"`
}

func newWebhookJSON(h notify.Hook) webhookJSON {
	j := webhookJSON{ID: h.ID, URL: h.URL, Label: h.Label, Events: h.Events, State: h.State, Reason: h.Reason,
		Waiting: h.Waiting, Missed: h.Missed,
		FailingSince: respond.FormatTime(h.FailingSince), CreatedAt: respond.FormatTime(h.CreatedAt),
		UpdatedAt: respond.FormatTime(h.UpdatedAt)}
	if h.Waiting > 0 && h.State == notify.Active {
		j.NextAt = respond.FormatTime(h.NextAt)
	}
	return j
}

// madeWebhookJSON is a new webhook with the secret that signs its requests. The secret is never shown
// again.
type madeWebhookJSON struct {
	webhookJSON
	Secret string `json:"secret"`
}

type webhookBody struct {
	URL    *string        `json:"url"`
	Label  *string        `json:"label"`
	Events *[]notify.Type `json:"events"`
	Active *bool          `json:"active"`
}

func (b webhookBody) draft() notify.Draft { return notify.Draft(b) }

type deliveryJSON struct {
	EventID    string      `json:"event_id"`
	Type       notify.Type `json:"type"`
	At         string      `json:"at"`
	Status     int         `json:"status"`
	DurationMS int64       `json:"duration_ms"`
	Error      string      `json:"error,omitempty"`
}

func newDeliveryJSON(a notify.Attempt) deliveryJSON {
	return deliveryJSON{a.EventID, a.Type, respond.FormatTime(a.At), a.Status, a.Took.Milliseconds(), a.Error}
}

func (d *accountAPI) apiWebhooks(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.hooks.Webhooks(r.Context(), actor)
	if err != nil {
		return err
	}
	out := make([]webhookJSON, len(list))
	for i, h := range list {
		out[i] = newWebhookJSON(h)
	}
	respond.JSON(w, http.StatusOK, map[string]any{"webhooks": out, "next_cursor": ""})
	return nil
}

// apiAddWebhook creates a webhook: {url, events, label?, active?}.
func (d *accountAPI) apiAddWebhook(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in webhookBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	h, secret, err := d.hooks.AddWebhook(r.Context(), actor, in.draft())
	if err != nil {
		return err
	}
	w.Header().Set("Location", d.portal.URL+"/api/v1/webhooks/"+h.ID)
	respond.JSON(w, http.StatusCreated, madeWebhookJSON{newWebhookJSON(h), secret})
	return nil
}

func (d *accountAPI) apiWebhook(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	h, err := d.hooks.Webhook(r.Context(), actor, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, newWebhookJSON(h))
	return nil
}

func (d *accountAPI) apiSetWebhook(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in webhookBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	h, err := d.hooks.SetWebhook(r.Context(), actor, chi.URLParam(r, "id"), in.draft())
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, newWebhookJSON(h))
	return nil
}

func (d *accountAPI) apiDropWebhook(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.hooks.DropWebhook(r.Context(), actor, chi.URLParam(r, "id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// apiTestWebhook sends a test event to a webhook and waits for the result. A refusal by the webhook's
// address is a result with status 200, not an error.
func (d *accountAPI) apiTestWebhook(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.hooks.SendTest(r.Context(), actor, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, newDeliveryJSON(a))
	return nil
}

func (d *accountAPI) apiDeliveries(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	limit, err := request.QueryInt(r, "limit", notify.MaxAttempts)
	if err != nil {
		return err
	}
	list, err := d.hooks.Deliveries(r.Context(), actor, chi.URLParam(r, "id"), int(limit))
	if err != nil {
		return err
	}
	out := make([]deliveryJSON, len(list))
	for i, a := range list {
		out[i] = newDeliveryJSON(a)
	}
	respond.JSON(w, http.StatusOK, map[string]any{"deliveries": out, "next_cursor": ""})
	return nil
}

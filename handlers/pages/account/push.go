package account

import (
	"net/http"

	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/ident"
	"agentsite/internal/webpush"
	"agentsite/static"
	"agentsite/templates"
)

// PushWorkerPath is the path of the script that shows notices while no page is open. Browsers keep it, so that it never
// changes.
const PushWorkerPath = "/push-worker.js"

// pushView fills in the switch of notices for browsers, if the portal has them. An error of a form stays.
func (d *Pages) pushView(r *http.Request, actor ident.Actor, v *templates.PushView) error {
	if d.pushes == nil {
		return nil
	}
	state, err := d.pushes.Get(r.Context(), actor)
	v.Key, v.Worker = d.pushes.PublicKey(), PushWorkerPath
	v.Here, v.Texts, v.Browsers = state.Here, state.Texts, state.Browsers
	return err
}

// startPush stores the subscription that the page's script made.
func (d *Pages) startPush(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.KnownForm(w, r, "endpoint", "p256dh", "auth", "texts")
	if err != nil {
		return err
	}
	err = d.pushes.Subscribe(r.Context(), actor, webpush.Draft{Endpoint: in.Get("endpoint"), P256dh: in.Get("p256dh"),
		Auth: in.Get("auth"), Texts: in.Get("texts") != ""})
	if err == nil {
		return respond.SeeOther(w, r, "/account?done=push#push")
	}
	messages, code, ok := pages.FieldErrors(w, err)
	if !ok || !actor.IsPerson() {
		return err
	}
	v := templates.AccountView{}
	for _, field := range []string{"endpoint", "p256dh", "auth"} {
		if messages[field] != "" {
			v.Push.Error = "The push service of this browser cannot be used: " + messages[field] + "."
			break
		}
	}
	return d.showAccount(w, r, actor, code, v, tokenForm{scopes: usualScopes, expires: usualExpiry})
}

// endPush ends the subscription of this browser, or of all.
func (d *Pages) endPush(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.KnownForm(w, r, "all")
	if err != nil {
		return err
	}
	if err := d.pushes.Unsubscribe(r.Context(), actor, in.Get("all") != ""); err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/account?done=push-ended#push")
}

func servePushWorker(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/javascript; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'")
	h.Set("Cache-Control", "no-cache")
	_, _ = w.Write(static.Script("push-worker.js")) // an error means that the client has disconnected
}

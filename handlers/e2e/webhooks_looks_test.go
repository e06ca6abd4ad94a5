package e2e

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"agentsite/internal/testing/apptest"
)

// TestLooks_Webhooks opens the page with nothing on it, and with one that is
// taken and one that is not.
func TestLooks_Webhooks(t *testing.T) {
	onlyDrawn(t)
	t.Parallel()
	root := needBrowser(t)
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	t.Cleanup(s.Close)
	a := visit(t, root, p, desk).as(ada)
	a.open("/account/webhooks")
	a.look("webhooks-empty")
	a.fill("#url", s.URL+"/hook") // nothing else has to be filled in
	a.press("main form.stack button")
	a.until("the secret", `document.querySelector(".new-secret code").innerText.startsWith("whsec_")`)
	a.look("webhooks-new")
	for i, u := range []string{s.URL + "/hook", "http://127.0.0.1:2/a-long-address-that-nobody-would-ever-type-by-hand/because-it-is-so-long"} {
		var h struct{ ID string }
		b := map[string]any{"url": u, "events": []string{"task.ended", "message.said", "agent.liveness"}}
		if i == 0 {
			b["label"] = "Chat bridge"
		}
		ada.Get(http.MethodPost, "/api/v1/webhooks", b, http.StatusCreated, &h)
		for range 2 {
			ada.Do(http.MethodPost, "/api/v1/webhooks/"+h.ID+"/test", nil)
		}
	}
	a.open("/account/webhooks")
	a.look("webhooks-list")
	a.click("li details summary")
	a.look("webhooks-open")
	a.open("/account")
	a.look("webhooks-account")
}

package agents

import (
	"net/http"
	"strconv"

	"agentsite/handlers/request"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// agentIcon answers with the picture of an agent. An address with the picture's hash always shows the
// same picture, so clients may cache it for ever.
func (d *Profile) agentIcon(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.hub.Get(r.Context(), actor, request.PathName(r))
	if err != nil {
		return err
	}
	if a.Icon == "" {
		return fault.New(fault.NotFound, "%s has no picture.", a.Name)
	}
	png, err := d.hub.Icons.Get(r.Context(), a.Icon)
	if err != nil {
		return err
	}
	who, age := "public", ", max-age=300"
	if a.Visibility == hub.Private || a.Status.State == hub.StatusDraft {
		who = "private"
	}
	if r.URL.Query().Get("v") == a.Icon {
		age = ", max-age=31536000, immutable"
	}
	h := w.Header()
	h.Set("Content-Type", "image/png")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", who+age)
	h.Set("Content-Length", strconv.Itoa(len(png)))
	w.WriteHeader(http.StatusOK)
	w.Write(png) // an error means that the client has disconnected
	return nil
}

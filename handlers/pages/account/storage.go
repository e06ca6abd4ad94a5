package account

import (
	"net/http"

	"agentsite/handlers/pages"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// storageView returns the stored bytes of the account.
func (d *Pages) storageView(r *http.Request, actor ident.Actor) (templates.StorageView, error) {
	u, err := d.storage.StorageOf(r.Context(), actor)
	return pages.StorageView(u), err
}

package api

import (
	"encoding/json"
	"net/http"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// recordJSON is the evidence that a portal lists an agent. Card, Head, Record and Proof have the form in
// which portals exchange them, see docs/design/records.md.
type recordJSON struct {
	Portal string          `json:"portal"` // host name of the portal
	Hash   string          `json:"hash"`
	Card   json.RawMessage `json:"card"`
	Head   json.RawMessage `json:"head"`
	Record json.RawMessage `json:"record"`
	// Proof is missing if this portal does not hold the other portal's whole log.
	Proof json.RawMessage `json:"proof,omitempty"`
}

// apiRecord answers with the signed evidence that an agent is listed, which a client can verify without
// trusting this portal. Requests are limited, because a proof is expensive.
func (d *agentAPI) apiRecord(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.hub.Listed(r.Context(), actor, request.PathName(r))
	if err != nil {
		return err
	}
	who := actor.ID
	if who == "" {
		who = request.ClientAddr(r)
	}
	if wait, ok := d.proofs.Allow(who); !ok {
		return fault.Limited(wait, "You asked for many proofs in a short time. Wait a moment.")
	}
	e, err := d.hub.Evidence(r.Context(), a, true)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Disposition", `attachment; filename="`+a.Name+`.record.json"`)
	respond.JSON(w, http.StatusOK, recordOf(d.source(&a).Portal, e))
	return nil
}

func recordOf(portal string, e hub.Evidence) recordJSON {
	return recordJSON{portal, e.Hash, e.Card, e.Head, e.Record, e.Proof}
}

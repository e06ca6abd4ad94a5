package ard

import (
	"net/http"
	"net/url"
	"strings"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// retrieveEntry answers with the entry of one identifier, §5.3.4. The identifier must match exactly,
// including letter case, and belong to this portal.
func (d *Handler) retrieveEntry(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	// The router decodes the parameter for some paths only, so it is taken from the escaped path.
	id, err := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), base+"/agents/"))
	if err != nil || len(id) > maxIdentifier || !identifier.MatchString(id) {
		return wrong("identifier", "must be urn:air:<publisher>:<namespace>:<name>, percent-encoded as one part of the path, as %s", d.urn(agentSpace, "guide"))
	}
	absent := fault.New(fault.NotFound, "This registry has no entry %s. Search for it with POST %s/search.", id,
		d.cfg.URL+base)
	found := d.registryEntry()
	if id != found.Identifier {
		card := cardType
		name, ours := strings.CutPrefix(id, d.urn(agentSpace, ""))
		if !ours {
			card = serverType
			name, ours = strings.CutPrefix(id, d.urn(serverSpace, ""))
		}
		if !ours || name == "" {
			return absent
		}
		a, err := d.cfg.Directory.Listed(r.Context(), actor, name)
		if fault.Is(err, fault.NotFound) {
			return absent
		}
		if err != nil {
			return err
		}
		if a.Elsewhere() {
			return absent // entries of other portals are in their own registry
		}
		if found = d.entryOf(&a, card); found.Identifier != id {
			return absent // the hub ignores letter case in names, but identifiers must match exactly
		}
	}
	body, err := encodeJSON(found)
	if err != nil {
		return err
	}
	sendCached(w, r, jsonType, freshSeconds, body)
	return nil
}

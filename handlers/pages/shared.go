package pages

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"agentsite/handlers/markup"
	"agentsite/handlers/respond"
	"agentsite/internal/ident"
)

// sharedBytes bounds the pages that are cached for guests.
const sharedBytes = 4 << 20

// shared caches pages that are the same for every visitor without a session, except for the nonce. It is for lists,
// which are the most expensive and most requested pages. A page is cached for one state of its contents and never
// longer.
type shared struct {
	pages *markup.Cache[string]
	// nonce is the placeholder in cached pages for the nonce of each answer. It is never sent to a client, so no
	// text of a user can contain it.
	nonce string
}

func newShared() shared {
	var raw [16]byte
	rand.Read(raw[:])
	// The first byte is rare in pages, which makes the search for the placeholder fast.
	return shared{markup.NewCache[string](sharedBytes), "~" + hex.EncodeToString(raw[:])}
}

// Anonymous reports whether the actor is a guest without a session, for whom pages contain no personal
// data and may be cached.
func Anonymous(actor ident.Actor) bool { return actor.Kind == ident.Guest && actor.ID == "" }

// SharedKey returns the cache key of a page in a state. The state must be read before the contents of the page, so
// that a change in between cannot store old contents under a new key.
func SharedKey(state uint64, address string) string {
	return strconv.FormatUint(state, 36) + " " + address
}

// RenderKept answers with the cached page for key and returns true, or returns false without one.
func (d *Site) RenderKept(w http.ResponseWriter, key string) bool {
	page, ok := d.shared.pages.Get(key)
	if ok {
		d.writeShared(w, page)
	}
	return ok
}

// RenderShared renders a page that is the same for all guests without a session, caches it under key and
// answers with it.
func (d *Site) RenderShared(w http.ResponseWriter, r *http.Request, key string, c templ.Component) error {
	buf := respond.NewBuffer()
	defer respond.FreeBuffer(buf)
	if err := c.Render(templ.WithNonce(r.Context(), d.shared.nonce), buf); err != nil {
		return err
	}
	page := buf.String()
	d.shared.pages.Put(key, page)
	d.writeShared(w, page)
	return nil
}

func (d *Site) writeShared(w http.ResponseWriter, page string) {
	nonce := respond.NewNonce()
	buf := respond.NewBuffer()
	defer respond.FreeBuffer(buf)
	for {
		before, after, found := strings.Cut(page, d.shared.nonce)
		buf.WriteString(before)
		if !found {
			break
		}
		buf.WriteString(nonce)
		page = after
	}
	respond.WritePage(w, http.StatusOK, nonce, buf)
}

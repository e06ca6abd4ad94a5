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

// sharedBytes bounds the pages kept for visitors.
const sharedBytes = 4 << 20

// shared keeps pages that are the same for every visitor who is nobody yet,
// all but their nonce. It is for lists, which cost the most and are asked for
// most; a page is kept for one state of what it shows and never longer.
type shared struct {
	pages *markup.Cache[string]
	// nonce stands in kept pages where each answer has its own. Nobody is ever
	// told it, so nothing that people wrote can hold it.
	nonce string
}

func newShared() shared {
	var raw [16]byte
	rand.Read(raw[:])
	// It begins with what pages hardly have, so that it is found quickly.
	return shared{markup.NewCache[string](sharedBytes), "~" + hex.EncodeToString(raw[:])}
}

// Anonymous reports whether pages show the actor nothing of their own.
func Anonymous(actor ident.Actor) bool { return actor.Kind == ident.Guest && actor.ID == "" }

// SharedKey names a page of a state; the state is read before what the page
// shows, so that a change meanwhile keeps nothing old under a new name.
func SharedKey(state uint64, address string) string {
	return strconv.FormatUint(state, 36) + " " + address
}

// RenderKept answers with a kept page, if there is one.
func (d *Site) RenderKept(w http.ResponseWriter, key string) bool {
	page, ok := d.shared.pages.Get(key)
	if ok {
		d.writeShared(w, page)
	}
	return ok
}

// RenderShared renders a page that is the same for all visitors, keeps it and
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

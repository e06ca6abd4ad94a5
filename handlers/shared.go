package handlers

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"agentsite/handlers/markup"
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

// anonymous reports whether pages show the actor nothing of their own.
func anonymous(actor ident.Actor) bool { return actor.Kind == ident.Guest && actor.ID == "" }

// sharedKey names a page of a state; the state is read before what the page
// shows, so that a change meanwhile keeps nothing old under a new name.
func sharedKey(state uint64, address string) string {
	return strconv.FormatUint(state, 36) + " " + address
}

// renderKept answers with a kept page, if there is one.
func (d *Door) renderKept(w http.ResponseWriter, key string) bool {
	page, ok := d.shared.pages.Get(key)
	if ok {
		d.writeShared(w, page)
	}
	return ok
}

// renderShared renders a page that is the same for all visitors, keeps it and
// answers with it.
func (d *Door) renderShared(w http.ResponseWriter, r *http.Request, key string, c templ.Component) error {
	buf := newBuffer()
	defer freeBuffer(buf)
	if err := c.Render(templ.WithNonce(r.Context(), d.shared.nonce), buf); err != nil {
		return err
	}
	page := buf.String()
	d.shared.pages.Put(key, page)
	d.writeShared(w, page)
	return nil
}

func (d *Door) writeShared(w http.ResponseWriter, page string) {
	nonce := newNonce()
	buf := newBuffer()
	defer freeBuffer(buf)
	for {
		before, after, found := strings.Cut(page, d.shared.nonce)
		buf.WriteString(before)
		if !found {
			break
		}
		buf.WriteString(nonce)
		page = after
	}
	writePage(w, http.StatusOK, nonce, buf)
}

// writePage answers with a rendered page.
func writePage(w http.ResponseWriter, code int, nonce string, page *bytes.Buffer) {
	writeWith(w, code, policy(nonce), page)
}

// writeWith answers with a rendered page that has a policy of its own.
func writeWith(w http.ResponseWriter, code int, policy string, page *bytes.Buffer) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "private, no-store")
	}
	h.Set("Content-Length", strconv.Itoa(page.Len()))
	w.WriteHeader(code)
	w.Write(page.Bytes()) // an error means that the reader went away
}

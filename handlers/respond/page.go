package respond

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"strconv"
)

// SetUnlisted sets headers for a page with a secret in its address: search engines do not list it, and
// browsers do not send it to other sites as Referer.
func SetUnlisted(w http.ResponseWriter) {
	w.Header().Set("X-Robots-Tag", "noindex, nofollow")
	w.Header().Set("Referrer-Policy", "no-referrer")
}

// SeeOther answers a posted form with a redirect, so that reloading the next page does not post again.
func SeeOther(w http.ResponseWriter, r *http.Request, path string) error {
	http.Redirect(w, r, path, http.StatusSeeOther)
	return nil
}

// PagePolicy is the content security policy of every page: only the portal's own scripts, by nonce; nothing from
// other sites; no framing.
func PagePolicy(nonce string) string {
	return "default-src 'none'; script-src 'nonce-" + nonce +
		"' 'strict-dynamic'; style-src 'self'; img-src 'self' data:; connect-src 'self'; worker-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; manifest-src 'self'; require-trusted-types-for 'script'; trusted-types agentsite"
}

func NewNonce() string {
	var raw [16]byte
	rand.Read(raw[:])
	return base64.RawStdEncoding.EncodeToString(raw[:])
}

// WritePage answers with a rendered page under PagePolicy.
func WritePage(w http.ResponseWriter, code int, nonce string, page *bytes.Buffer) {
	WritePageWith(w, code, PagePolicy(nonce), page)
}

// WritePageWith answers with a rendered page under another content security policy.
func WritePageWith(w http.ResponseWriter, code int, policy string, page *bytes.Buffer) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "private, no-store")
	}
	h.Set("Content-Length", strconv.Itoa(page.Len()))
	w.WriteHeader(code)
	w.Write(page.Bytes()) // an error means that the client has disconnected
}

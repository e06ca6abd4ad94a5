package respond

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"strconv"
)

// SetUnlisted keeps the secret address of an answer out of search engines and of the Referer that browsers send to
// other sites.
func SetUnlisted(w http.ResponseWriter) {
	w.Header().Set("X-Robots-Tag", "noindex, nofollow")
	w.Header().Set("Referrer-Policy", "no-referrer")
}

// SeeOther answers a form with a redirect to the next page.
func SeeOther(w http.ResponseWriter, r *http.Request, path string) error {
	http.Redirect(w, r, path, http.StatusSeeOther)
	return nil
}

// PagePolicy is the content security policy of every page: only the portal's own scripts, by nonce; nothing from
// other sites; no framing.
func PagePolicy(nonce string) string {
	return "default-src 'none'; script-src 'nonce-" + nonce +
		"' 'strict-dynamic'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; manifest-src 'self'; require-trusted-types-for 'script'; trusted-types agentsite"
}

func NewNonce() string {
	var raw [16]byte
	rand.Read(raw[:])
	return base64.RawStdEncoding.EncodeToString(raw[:])
}

// WritePage answers with a rendered page.
func WritePage(w http.ResponseWriter, code int, nonce string, page *bytes.Buffer) {
	WritePageWith(w, code, PagePolicy(nonce), page)
}

// WritePageWith answers with a rendered page with its own policy.
func WritePageWith(w http.ResponseWriter, code int, policy string, page *bytes.Buffer) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "private, no-store")
	}
	h.Set("Content-Length", strconv.Itoa(page.Len()))
	w.WriteHeader(code)
	w.Write(page.Bytes()) // an error means that the client is gone
}

package ard

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// Media types of the answers of this endpoint.
const (
	jsonType    = "application/json; charset=utf-8"
	catalogType = "application/ai-catalog+json"
)

// encodeJSON encodes v without escaping < and &, which descriptions contain often.
func encodeJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func sendBody(w http.ResponseWriter, status int, mediaType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}

// freshSeconds is the time for which clients may cache an entry or a list, and catalogSeconds a
// catalog.
const (
	freshSeconds   = 60
	catalogSeconds = 300
)

// sendCached answers with a body that may be cached, or with 304 if the caller has it. Only the
// caller may cache an answer to a request with credentials.
func sendCached(w http.ResponseWriter, r *http.Request, mediaType string, seconds int, body []byte) {
	h := w.Header()
	scope := "public"
	if r.Header.Get("Authorization") != "" {
		scope = "private"
	}
	sum := sha256.Sum256(body)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
	h.Set("Cache-Control", scope+", max-age="+strconv.Itoa(seconds))
	h.Set("ETag", tag)
	if hasTag(r.Header.Values("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	sendBody(w, http.StatusOK, mediaType, body)
}

// hasTag reports whether an If-None-Match header contains the tag or *. Weak tags count as equal, as in
// RFC 9110 §13.1.2.
func hasTag(header []string, tag string) bool {
	for _, line := range header {
		for one := range strings.SplitSeq(line, ",") {
			one = strings.TrimSpace(one)
			if one == "*" || strings.TrimPrefix(one, "W/") == tag {
				return true
			}
		}
	}
	return false
}

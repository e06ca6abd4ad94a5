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

// The media types of answers.
const (
	jsonType    = "application/json; charset=utf-8"
	catalogType = "application/ai-catalog+json"
)

// encode is v as JSON, with < and & as they are.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func send(w http.ResponseWriter, status int, mediaType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}

// freshSeconds is how long a copy of an entry or a list may be used unasked,
// and catalogSeconds of a catalog.
const (
	freshSeconds   = 60
	catalogSeconds = 300
)

// sendCached answers with a body that may be kept, or with 304 when the asker
// has it. What was asked for with credentials is kept by the asker only.
func sendCached(w http.ResponseWriter, r *http.Request, mediaType string, seconds int, body []byte) {
	h := w.Header()
	who := "public"
	if r.Header.Get("Authorization") != "" {
		who = "private"
	}
	sum := sha256.Sum256(body)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
	h.Set("Cache-Control", who+", max-age="+strconv.Itoa(seconds))
	h.Set("ETag", tag)
	if has(r.Header.Values("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	send(w, http.StatusOK, mediaType, body)
}

// has reports whether an If-None-Match names the tag; weak ones count, as
// RFC 9110 §13.1.2 says.
func has(header []string, tag string) bool {
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

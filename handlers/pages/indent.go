package pages

import (
	"bytes"
	"encoding/json"
)

// IndentJSON returns JSON with indentation, and other text unchanged.
func IndentJSON(body string) string {
	if !json.Valid([]byte(body)) {
		return body
	}
	var out bytes.Buffer
	if json.Indent(&out, []byte(body), "", "  ") != nil {
		return body
	}
	return out.String()
}

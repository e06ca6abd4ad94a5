package request

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// FormatCursor encodes a position in a list that is ordered by time and id, for ParseCursor. Clients must
// treat it as opaque.
func FormatCursor(p chat.Point) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(p.At.UnixMilli(), 10) + " " + p.ID))
}

func ParseCursor(s string) (chat.Point, error) {
	if s == "" {
		return chat.Point{}, nil
	}
	bad := fault.Field("cursor", "is not a cursor of this list")
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return chat.Point{}, bad
	}
	at, id, _ := strings.Cut(string(b), " ")
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil || !ident.ValidID(id) {
		return chat.Point{}, bad
	}
	return chat.Point{At: time.UnixMilli(ms), ID: id}, nil
}

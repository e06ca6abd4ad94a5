package respond

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

func JSON(w http.ResponseWriter, code int, v any) {
	buf := NewBuffer()
	defer FreeBuffer(buf)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		code = http.StatusInternalServerError
		buf.Reset()
		buf.WriteString(`{"error":{"kind":"internal","message":"The answer could not be encoded."}}`)
	}
	SendJSON(w, code, buf)
}

// SendJSON answers with the JSON in buf and the status code. The caller may reuse buf afterwards.
func SendJSON(w http.ResponseWriter, code int, buf *bytes.Buffer) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	h.Set("Content-Length", strconv.Itoa(buf.Len()))
	w.WriteHeader(code)
	w.Write(buf.Bytes())
}

// timeLayout is the format of times in the API: RFC 3339 in UTC with milliseconds.
const timeLayout = "2006-01-02T15:04:05.000Z"

// FormatTime formats a time for the API; the zero time is "". It does not use time.Format, because a page
// of search results contains sixty times and Format is fast only for its predefined layouts.
func FormatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.Format(timeLayout)
	}
	hour, minute, second := t.Clock()
	b := []byte(timeLayout)
	digits := func(from, to, n int) {
		for i := to - 1; i >= from; i-- {
			b[i] = byte('0' + n%10)
			n /= 10
		}
	}
	digits(0, 4, year)
	digits(5, 7, int(month))
	digits(8, 10, day)
	digits(11, 13, hour)
	digits(14, 16, minute)
	digits(17, 19, second)
	digits(20, 23, t.Nanosecond()/1e6)
	return string(b)
}

package cli

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

func runSearch(ctx context.Context, e env, fs *flags, args []string) error {
	c, err := newClient(ctx, fs)
	if err != nil {
		return err
	}
	v := url.Values{"q": {strings.Join(args, " ")}, "limit": {strconv.Itoa(fs.limit)}}
	narrowed := false
	for name, values := range fs.filters {
		if len(*values) > 0 {
			v[name], narrowed = *values, true
		}
	}
	if fs.sort != "" {
		v.Set("sort", fs.sort)
	}
	if fs.here {
		v.Set("scope", "portal")
		narrowed = true
	}
	if len(args) == 0 && !narrowed {
		return usagef("usage: agentsite search [QUERY]; give a query, or narrow the list with flags: `agentsite " +
			"search --help`")
	}
	if fs.json {
		resp, err := c.sendJSON(ctx, http.MethodGet, "/api/v1/search?"+v.Encode(), nil)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(e.stdout, io.LimitReader(resp.Body, maxAnswer))
		return err
	}
	return searchEach(ctx, e, c, "/api/v1/search?"+v.Encode())
}

// cleanText removes control characters except line breaks and tabs, so that text from other people
// cannot control the terminal.
func cleanText(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, s)
}

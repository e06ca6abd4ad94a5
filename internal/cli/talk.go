package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
)

func runSearch(ctx context.Context, e env, fs *flags, args []string) error {
	c, err := newClient(fs)
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
		return usagef("usage: agentsite search [QUERY]; say what to search for, or narrow the list with flags: `agentsite search --help`")
	}
	if fs.json {
		resp, err := c.request(ctx, http.MethodGet, "/api/v1/search?"+v.Encode(), nil)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(e.stdout, io.LimitReader(resp.Body, maxAnswer))
		return err
	}
	var page struct {
		Results []struct {
			Agent struct {
				Handle      string `json:"handle"`
				Title       string `json:"title"`
				Description string `json:"description"`
				Kind        string `json:"kind"`
			} `json:"agent"`
			Why []struct {
				Word, Found, How, Field string
			} `json:"why"`
			Liveness struct {
				State string `json:"state"`
			} `json:"liveness"`
			Verified bool `json:"verified"`
		} `json:"results"`
		Portals struct {
			Known, Answered int
			Silent          []string
			OldestHead      int64 `json:"oldest_head_age"`
		} `json:"portals"`
		Total       int      `json:"total"`
		Suggestions []string `json:"suggestions"`
	}
	if err := c.call(ctx, http.MethodGet, "/api/v1/search?"+v.Encode(), nil, &page); err != nil {
		return err
	}
	for _, r := range page.Results {
		about, _, _ := strings.Cut(r.Agent.Description, "\n")
		proved := ""
		if !r.Verified && strings.Contains(r.Agent.Handle, "@") {
			proved = ", portal not proved"
		}
		fmt.Fprintf(e.stdout, "%s  %s  [%s, %s%s]\n    %s\n", visible(r.Agent.Handle), visible(r.Agent.Title), visible(r.Agent.Kind), visible(r.Liveness.State), proved, visible(about))
		for _, w := range r.Why {
			if w.How == "typo" || w.How == "form" { // what is not plain to see
				fmt.Fprintf(e.stdout, "    %q read as %q, in its %s\n", visible(w.Word), visible(w.Found), visible(w.Field))
			}
		}
	}
	if len(page.Results) == 0 {
		fmt.Fprintln(e.stdout, "nothing found")
		if len(page.Suggestions) > 0 {
			fmt.Fprintf(e.stdout, "did you mean: %s\n", visible(strings.Join(page.Suggestions, ", ")))
		}
	} else if page.Total > len(page.Results) {
		fmt.Fprintf(e.stdout, "%d of %d; more with --limit\n", len(page.Results), page.Total)
	}
	if page.Portals.Known > 1 {
		line := fmt.Sprintf("%d of %d portals, oldest statement %s old", page.Portals.Answered, page.Portals.Known, time.Duration(page.Portals.OldestHead)*time.Second)
		if len(page.Portals.Silent) > 0 {
			line += "; silent: " + visible(strings.Join(page.Portals.Silent, ", "))
		}
		fmt.Fprintln(e.stdout, line)
	}
	return nil
}

// visible keeps text of strangers from steering the terminal.
func visible(s string) string {
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

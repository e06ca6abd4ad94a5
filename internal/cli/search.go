package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
)

// found is a portal's answer to a search: the whole answer, or the part that arrives when another portal
// has answered.
type found struct {
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
		Limited         bool  `json:"limited"`
	} `json:"portals"`
	Total       int      `json:"total"`
	Suggestions []string `json:"suggestions"`
}

// searchEach prints the portal's own results at once, then the results of other portals as they arrive,
// and at the end how many portals answered.
func searchEach(ctx context.Context, e env, c *client, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream, application/json;q=0.9")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.doRequest(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	unread := func(err error) error { return fmt.Errorf("read the answer of %s: %w", c.base, err) }
	body := io.LimitReader(resp.Body, maxAnswer)
	var first, last found
	shown := 0
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		if err := json.NewDecoder(body).Decode(&first); err != nil { // an older portal does not stream
			return unread(err)
		}
		last, shown = first, len(first.Results)
		printFound(e.stdout, first)
	} else {
		event, ended := "", false
		lines := bufio.NewScanner(body)
		lines.Buffer(make([]byte, 64<<10), maxAnswer)
		for !ended && lines.Scan() {
			if name, ok := bytes.CutPrefix(lines.Bytes(), []byte("event: ")); ok {
				event = string(name)
			}
			data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
			if !ok {
				continue
			}
			last = found{}
			if err := json.Unmarshal(data, &last); err != nil {
				return unread(err)
			}
			if event == "page" {
				first = last
			}
			printFound(e.stdout, last)
			shown += len(last.Results)
			event, ended = "", event == "end"
		}
		if !ended {
			return unread(errors.Join(lines.Err(), io.ErrUnexpectedEOF))
		}
	}
	if shown == 0 {
		fmt.Fprintln(e.stdout, "nothing found")
		if len(first.Suggestions) > 0 {
			fmt.Fprintf(e.stdout, "did you mean: %s\n", cleanText(strings.Join(first.Suggestions, ", ")))
		}
	} else if first.Total > len(first.Results) {
		fmt.Fprintf(e.stdout, "%d of %d; more with --limit\n", len(first.Results), first.Total)
	}
	if p := last.Portals; p.Known > 1 {
		line := fmt.Sprintf("%d of %d portals, oldest statement %s old", p.Answered, p.Known,
			time.Duration(p.OldestHead)*time.Second)
		if len(p.Silent) > 0 {
			line += "; no answer: " + cleanText(strings.Join(p.Silent, ", "))
		}
		if p.Limited {
			line += "; some were not asked"
		}
		fmt.Fprintln(e.stdout, line)
	}
	return nil
}

func printFound(w io.Writer, page found) {
	for _, r := range page.Results {
		about, _, _ := strings.Cut(r.Agent.Description, "\n")
		proved := ""
		if !r.Verified && strings.Contains(r.Agent.Handle, "@") {
			proved = ", portal not verified"
		}
		fmt.Fprintf(w, "%s  %s  [%s, %s%s]\n    %s\n", cleanText(r.Agent.Handle), cleanText(r.Agent.Title),
			cleanText(r.Agent.Kind), cleanText(r.Liveness.State), proved, cleanText(about))
		for _, y := range r.Why {
			if y.How == "typo" || y.How == "form" { // other matches are obvious to the reader
				fmt.Fprintf(w, "    %q read as %q, in its %s\n", cleanText(y.Word), cleanText(y.Found),
					cleanText(y.Field))
			}
		}
	}
}

package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"agentsite/internal/ident"
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
		} `json:"results"`
		Total       int      `json:"total"`
		Suggestions []string `json:"suggestions"`
	}
	if err := c.call(ctx, http.MethodGet, "/api/v1/search?"+v.Encode(), nil, &page); err != nil {
		return err
	}
	for _, r := range page.Results {
		about, _, _ := strings.Cut(r.Agent.Description, "\n")
		fmt.Fprintf(e.stdout, "%s  %s  [%s, %s]\n    %s\n", visible(r.Agent.Handle), visible(r.Agent.Title), visible(r.Agent.Kind), visible(r.Liveness.State), visible(about))
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

// talk is one conversation in the terminal.
type talk struct {
	c   *client
	e   env
	id  string
	seq int64 // of the last message seen
}

func runChat(ctx context.Context, e env, fs *flags, args []string) error {
	if err := need("chat", args, 1, 1<<10); err != nil {
		return err
	}
	c, err := newClient(fs)
	if err != nil {
		return err
	}
	var room struct {
		ID string `json:"id"`
	}
	if err := c.call(ctx, http.MethodPost, "/api/v1/conversations", map[string]any{"members": []string{args[0]}}, &room); err != nil {
		return err
	}
	t := &talk{c: c, e: e, id: room.ID}
	switch {
	case len(args) > 1:
		return t.say(ctx, strings.Join(args[1:], " "))
	case !isTerminal(e.stdin):
		b, err := io.ReadAll(io.LimitReader(e.stdin, 1<<20))
		if err != nil {
			return fmt.Errorf("read stdin: %w", err)
		}
		return t.say(ctx, strings.TrimSpace(string(b)))
	}
	fmt.Fprintf(e.stderr, "Talking to %s. Type a message; Ctrl-D ends.\n", args[0])
	lines := bufio.NewScanner(e.stdin)
	for {
		fmt.Fprint(e.stderr, "> ")
		if !lines.Scan() {
			fmt.Fprintln(e.stderr)
			return lines.Err()
		}
		if text := strings.TrimSpace(lines.Text()); text != "" {
			if err := t.say(ctx, text); err != nil && !errors.Is(err, errSilent) {
				return err
			}
		}
	}
}

// say sends one message and prints the answer as it comes. It fails when the
// answer did.
func (t *talk) say(ctx context.Context, text string) error {
	var sent struct {
		Seq   int64 `json:"seq"`
		Tasks []struct {
			ID string `json:"id"`
		} `json:"tasks"`
	}
	body := map[string]any{"client_id": ident.NewID(), "text": text}
	if err := t.c.call(ctx, http.MethodPost, "/api/v1/conversations/"+t.id+"/messages", body, &sent); err != nil {
		return err
	}
	t.seq = sent.Seq
	if len(sent.Tasks) == 0 {
		return errors.New("nobody was asked")
	}
	id := sent.Tasks[0].ID
	a, failed := answer{w: t.e.stdout}, ""
	err := t.c.follow(ctx, t.id, t.seq, func(u update) bool {
		switch u.Type {
		case "delta":
			if u.TaskID == id {
				a.delta(u.Offset, u.Text)
			}
		case "message":
			t.seq = u.Seq
			var task struct{ ID, State, Reason string }
			if json.Unmarshal(u.Task, &task) != nil || task.ID != id {
				return true
			}
			if u.Kind == "text" {
				a.finish(u.plain())
			} else {
				a.end()
			}
			if task.State != "completed" && task.State != "input_required" {
				failed = task.State
				if task.Reason != "" {
					failed += ": " + task.Reason
				}
			}
			return false
		}
		return true
	})
	if err != nil {
		a.end()
		return err
	}
	if failed != "" {
		fmt.Fprintf(t.e.stderr, "agentsite: %s\n", visible(failed))
		return errSilent
	}
	return nil
}

// answer prints a growing text once, although its pieces may overlap, come
// again after a break, or be replaced.
type answer struct {
	w     io.Writer
	text  string // as far as it is known
	shown string // what stands on the terminal
}

// delta takes text that stands at byte offset of the answer; at 0 the answer
// begins anew. What comes after a gap waits for that.
func (a *answer) delta(offset int, text string) {
	switch {
	case offset == 0:
		a.show(text)
	case offset > 0 && offset <= len(a.text) && offset+len(text) > len(a.text):
		a.show(a.text[:offset] + text)
	}
}

// show brings the terminal to the text: its rest where it goes on with what
// stands there, else all of it below.
func (a *answer) show(text string) {
	a.text = text
	switch {
	case strings.HasPrefix(a.shown, text):
		return // it comes again, and is not as far yet
	case !strings.HasPrefix(text, a.shown):
		a.end()
		a.shown = ""
	}
	fmt.Fprint(a.w, visible(text[len(a.shown):]))
	a.shown = text
}

// finish shows the answer as it stays.
func (a *answer) finish(text string) {
	if strings.TrimSpace(text) != strings.TrimSpace(a.shown) {
		if !strings.HasPrefix(text, a.shown) {
			a.end()
			a.shown = ""
		}
		a.show(text)
	}
	a.end()
}

// end ends the line that stands on the terminal.
func (a *answer) end() {
	if a.shown != "" && !strings.HasSuffix(a.shown, "\n") {
		fmt.Fprintln(a.w)
		a.shown += "\n"
	}
}

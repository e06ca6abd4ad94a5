package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentsite/internal/lenientjson"
)

// maxAgentFile is the maximum size of an agent's file in bytes.
const maxAgentFile = 1 << 20

// registered is an agent in the API's format, with the fields that are printed after a registration.
type registered struct {
	Handle   string `json:"handle"`
	Name     string `json:"name"`
	Portal   string `json:"portal"`
	Version  int    `json:"version"`
	Liveness struct {
		State  string `json:"state"`
		Reason string `json:"reason"`
	} `json:"liveness"`
}

// runAgentRegister registers the agent that a file describes, or updates the registered agent to match
// the file. Repeating the command changes nothing.
func runAgentRegister(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("agent register", args, 1, 1); err != nil {
		return err
	}
	c, err := newOwnerClient(ctx, fs)
	if err != nil {
		return err
	}
	b, err := readFile(e, args[0], maxAgentFile)
	if err != nil {
		return err
	}
	draft, err := agentDraft(e, b, fs.agentName, filepath.Dir(args[0]), fs.envs)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	name, _ := draft["name"].(string)
	if name == "" {
		return fmt.Errorf("%s names no agent; add \"name\", or give --name", args[0])
	}
	// The version before the request shows whether the agent was created, changed or unchanged.
	var before registered
	if err := c.callJSON(ctx, http.MethodGet, "/api/v1/agents/"+url.PathEscape(name), nil, &before); err != nil {
		before.Version = 0
	}
	resp, err := c.sendJSON(ctx, http.MethodPut, "/api/v1/agents/"+url.PathEscape(name), draft)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var a registered
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&a); err != nil {
		return fmt.Errorf("read the answer of %s: %w", c.base, err)
	}
	done := "updated"
	switch {
	case resp.StatusCode == http.StatusCreated:
		done = "registered"
	case a.Version == before.Version:
		done = "unchanged"
	}
	line := fmt.Sprintf("%s@%s %s, version %d, %s %s", a.Name, a.Portal, done, a.Version, a.Liveness.State,
		a.Liveness.Reason)
	fmt.Fprintln(e.stdout, strings.TrimSpace(cleanText(line)))
	return nil
}

// readFile reads a file of at most most bytes, or stdin if the name is "-".
func readFile(e env, name string, most int64) ([]byte, error) {
	r := e.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r = f
	}
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s is larger than %d KiB", name, most>>10)
	}
	return lenientjson.TrimMark(b), err
}

// agentDraft reads a file in the API's format for agents, or an A2A agent card. "icon_file" is a
// picture beside or below the file. A credential written as "env:NAME" is read from the environment,
// but only if NAME is one of envs: the author of the file must not choose which data of this machine is
// sent elsewhere.
func agentDraft(e env, b []byte, name, dir string, envs []string) (map[string]any, error) {
	var in map[string]any
	if err := json.Unmarshal(b, &in); err != nil {
		return nil, fmt.Errorf("is not a JSON object: %w", err)
	}
	_, interfaces := in["supportedInterfaces"]
	_, versioned := in["protocolVersion"]
	if interfaces || versioned {
		in = cardDraft(in)
	}
	if name != "" {
		in["name"] = name
	}
	if file, ok := in["icon_file"].(string); ok {
		if !filepath.IsLocal(file) {
			return nil, fmt.Errorf("icon_file %q: name a file beside or below this one", file)
		}
		icon, err := readFile(e, filepath.Join(dir, file), 2<<20)
		if err != nil {
			return nil, err
		}
		delete(in, "icon_file")
		in["icon"] = icon
	}
	config, _ := in["config"].(map[string]any)
	for _, k := range []string{"key", "token"} {
		v, ok := config[k].(string)
		if !ok {
			continue
		}
		if variable, ok := strings.CutPrefix(v, "env:"); ok {
			if !slices.Contains(envs, variable) {
				return nil, fmt.Errorf("config.%s is to be read from %s; allow that with --env %s", k, variable,
					variable)
			}
			if config[k] = e.getenv(variable); config[k] == "" {
				return nil, fmt.Errorf("config.%s is to be read from %s, which is not set", k, variable)
			}
		}
	}
	return in, nil
}

// cardDraft converts an A2A agent card to the API's format for agents.
func cardDraft(card map[string]any) map[string]any {
	text := func(m map[string]any, key string) string { s, _ := m[key].(string); return s }
	out := map[string]any{"kind": "a2a", "name": makeSlug(text(card, "name")), "title": text(card, "name"),
		"description": text(card, "description"),
		"endpoint":    text(card, "url")}
	if list, ok := card["supportedInterfaces"].([]any); ok && len(list) > 0 {
		if first, ok := list[0].(map[string]any); ok {
			out["endpoint"] = text(first, "url")
		}
	}
	for from, to := range map[string]string{"defaultInputModes": "input_modes", "defaultOutputModes": "output_modes"} {
		list, _ := card[from].([]any)
		var modes []string
		for _, v := range list {
			mode, _ := v.(string)
			if mode == "text" { // early cards have "text" instead of a media type
				mode = "text/plain"
			}
			if strings.Contains(mode, "/") {
				modes = append(modes, mode)
			}
		}
		if len(modes) > 0 {
			out[to] = modes
		}
	}
	var skills []any
	list, _ := card["skills"].([]any)
	for _, v := range list {
		s, ok := v.(map[string]any)
		if !ok {
			continue
		}
		skill := map[string]any{}
		for _, k := range []string{"id", "name", "description", "tags", "examples"} {
			if v, ok := s[k]; ok {
				skill[k] = v
			}
		}
		skills = append(skills, skill)
	}
	if skills != nil {
		out["skills"] = skills
	}
	return out
}

// makeSlug makes a valid name from a title, cut to the maximum length.
func makeSlug(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, s)
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '-' }), "-")
	return strings.TrimRight(s[:min(len(s), 40)], "-")
}

// runAgentImport registers the agents of a file with one JSON object per line. Only the operator may do
// that.
func runAgentImport(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("agent import", args, 1, 1); err != nil {
		return err
	}
	c, err := newClient(ctx, fs)
	if err != nil {
		return err
	}
	var r io.Reader = e.stdin
	if args[0] != "-" {
		f, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer f.Close()
		r = f
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/api/v1/import", r)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.doRequest(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var done struct {
		Registered, Skipped int
		Errors              []string
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&done); err != nil {
		return fmt.Errorf("read the answer of %s: %w", c.base, err)
	}
	for _, line := range done.Errors {
		fmt.Fprintln(e.stderr, "skipped line", cleanText(line))
	}
	fmt.Fprintf(e.stdout, "%d registered, %d skipped\n", done.Registered, done.Skipped)
	if done.Skipped > 0 {
		return errSilent
	}
	return nil
}

// runAgentList prints the agents that belong to the token's account.
func runAgentList(ctx context.Context, e env, fs *flags, _ []string) error {
	c, err := newOwnerClient(ctx, fs)
	if err != nil {
		return err
	}
	type page struct {
		Agents []struct {
			registered
			Kind   string `json:"kind"`
			Status struct {
				State string `json:"state"`
			} `json:"status"`
		} `json:"agents"`
		Next string `json:"next_cursor"`
	}
	for cursor, first := "", true; first || cursor != ""; first = false {
		var list page
		path := "/api/v1/agents?" + url.Values{"owner": {"me"}, "cursor": {cursor}}.Encode()
		if err := c.callJSON(ctx, http.MethodGet, path, nil, &list); err != nil {
			return err
		}
		for _, a := range list.Agents {
			fmt.Fprintf(e.stdout, "%-24s %-8s %-10s %-14s version %d\n", cleanText(a.Name), cleanText(a.Kind),
				cleanText(a.Status.State), cleanText(a.Liveness.State), a.Version)
		}
		cursor = list.Next
	}
	return nil
}

// runAgentRemove removes an agent of the token's account permanently.
func runAgentRemove(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("agent remove", args, 1, 1); err != nil {
		return err
	}
	c, err := newOwnerClient(ctx, fs)
	if err != nil {
		return err
	}
	if err := c.callJSON(ctx, http.MethodDelete, "/api/v1/agents/"+url.PathEscape(args[0]), nil, nil); err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "removed %s\n", args[0])
	return nil
}

func agentFileFlags(fs *flags) {
	portalFlags(fs)
	fs.StringVar(&fs.agentName, "name", "", "`NAME` of the agent, if the file does not say it")
	fs.Var(&fs.envs, "env", "`VARIABLE` of the environment that the file may take a credential from, as env:VARIABLE")
}

package app_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/net/html"

	"agentsite/internal/cli"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// requestTime bounds one command.
const requestTime = 2 * time.Minute

// shownUse is a command as an agent's page shows it.
type shownUse struct{ use, label, code string }

// shownUses are the commands on a page, in order.
func shownUses(t *testing.T, page string) (out []shownUse) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	is := func(n *html.Node, name, value string) bool {
		return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name && slices.Contains(strings.Fields(a.Val), value) })
	}
	text := func(n *html.Node) string {
		var b strings.Builder
		for c := range n.Descendants() {
			if c.Type == html.TextNode {
				b.WriteString(c.Data)
			}
		}
		return b.String()
	}
	for use := range doc.Descendants() {
		if use.Data != "details" || !is(use, "class", "use") {
			continue
		}
		var s shownUse
		for n := range use.Descendants() {
			switch {
			case n.Data == "summary":
				s.use = strings.TrimSpace(text(n))
			case n.Data == "h3":
				s.label = text(n)
			case n.Data == "code":
				s.code = text(n)
				out = append(out, s)
			}
		}
	}
	return out
}

// words are those that a shell makes of a command. It knows quotes, variables
// and lines that go on; whatever else a shell would act on is an error.
func words(command string, env map[string]string) ([]string, error) {
	var out []string
	var word strings.Builder
	begun := false
	variable := regexp.MustCompile(`^\$([A-Z_]+)`)
	for i := 0; i < len(command); i++ {
		switch c := command[i]; {
		case strings.HasPrefix(command[i:], "\\\n"):
			i++
		case c == ' ' || c == '\n':
			if begun {
				out = append(out, word.String())
				word.Reset()
				begun = false
			}
		case c == '\'':
			end := strings.IndexByte(command[i+1:], '\'')
			if end < 0 {
				return nil, fmt.Errorf("no end of %q", command[i:])
			}
			word.WriteString(command[i+1 : i+1+end])
			begun = true
			i += end + 1
		case c == '"' || c == '$':
			in := command[i:]
			if c == '"' {
				end := strings.IndexByte(command[i+1:], '"')
				if end < 0 {
					return nil, fmt.Errorf("no end of %q", command[i:])
				}
				in = command[i+1 : i+1+end]
				i += end + 1
			} else if in = variable.FindString(in); in == "" {
				return nil, fmt.Errorf("a shell acts on %q", command[i:])
			} else {
				i += len(in) - 1
			}
			for name, value := range env {
				in = strings.ReplaceAll(in, "$"+name, value)
			}
			if strings.ContainsAny(in, "$`\\") {
				return nil, fmt.Errorf("nobody sets what %q needs", in)
			}
			word.WriteString(in)
			begun = true
		case strings.IndexByte("|&;<>()`\\*?[]#~{}!", c) >= 0:
			return nil, fmt.Errorf("a shell acts on %q", command[i:])
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if begun {
		out = append(out, word.String())
	}
	return out, nil
}

// curl does what the command curl with these arguments does.
func curl(ctx context.Context, client *http.Client, args []string) (*http.Response, error) {
	method, address, header := http.MethodGet, "", make(http.Header)
	var body io.Reader
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-s" || a == "-sN":
		case (a == "-H" || a == "-d") && i+1 < len(args):
			i++
			if a == "-d" {
				method, body = http.MethodPost, strings.NewReader(args[i])
				continue
			}
			name, value, ok := strings.Cut(args[i], ": ")
			if !ok {
				return nil, fmt.Errorf("curl: %q is no header", args[i])
			}
			header.Set(name, value)
		case !strings.HasPrefix(a, "-") && address == "":
			address = a
		default:
			return nil, fmt.Errorf("curl: what is %q?", a)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	req.Header = header
	return client.Do(req)
}

// user runs what an agent's page shows, as somebody with a token does.
type user struct {
	t      *testing.T
	p      *apptest.Portal
	caller *apptest.Client
	env    map[string]string
}

// run does what one command says; its answer is not empty.
func (u *user) run(s shownUse) {
	t := u.t
	t.Helper()
	command, rest, nested := strings.Cut(s.code, " | jq -r .")
	if nested {
		var ok bool
		if command, ok = strings.CutPrefix(command, "ID=$("); !ok || rest != "id)" {
			t.Fatalf("%q is no command", s.code)
		}
	}
	program, _, _ := strings.Cut(command, " ")
	switch program {
	case "import":
		u.script(s)
		return
	case "{\n":
	case "curl", "agentsite", "a2a", "claude", "npx":
		args, err := words(command, u.env)
		if err != nil {
			t.Fatalf("%s: %v", s.label, err)
		}
		switch program {
		case "curl":
			u.curl(s, args[1:], nested)
		case "agentsite":
			u.agentsite(args[1:])
		case "a2a":
			u.a2a(args[1:])
		default:
			u.mcpCommand(args)
		}
		return
	}
	switch {
	case strings.HasPrefix(s.code, "{"):
		u.mcpSettings(s.code)
	case s.use == "MCP":
		u.mcpTools(s.code, nil)
	case strings.HasPrefix(s.code, u.p.URL()+"/"):
		u.link(s.code)
	default:
		t.Errorf("nobody runs %q", s.code)
	}
}

func (u *user) link(address string) {
	u.t.Helper()
	if a := u.caller.Must(http.MethodGet, strings.TrimPrefix(address, u.p.URL()), nil, http.StatusOK); a.Body == "" {
		u.t.Errorf("nothing is at %s", address)
	}
}

func (u *user) curl(s shownUse, args []string, keepsID bool) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), requestTime)
	defer cancel()
	resp, err := curl(ctx, u.caller.HTTP, args)
	if err != nil {
		u.t.Fatalf("%s: %v", s.label, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		u.t.Fatalf("%s: %s %s", s.label, resp.Status, b)
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		for in := bufio.NewScanner(resp.Body); in.Scan(); {
			if strings.Contains(in.Text(), `"kind":"agent"`) {
				return // the answer came
			}
		}
		u.t.Fatalf("%s: no answer", s.label)
	}
	var out map[string]any
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&out); err != nil || len(out) == 0 {
		u.t.Fatalf("%s: %v", s.label, err)
	}
	if keepsID {
		u.env["ID"], _ = out["id"].(string)
	}
}

func (u *user) agentsite(args []string) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), requestTime)
	defer cancel()
	var out, wrong bytes.Buffer
	code := cli.Run(ctx, args, func(k string) string { return u.env[k] }, strings.NewReader("2+2\n"), &out, &wrong)
	if code != 0 || out.Len() == 0 {
		u.t.Errorf("agentsite %q ends with %d, says %q and %q", args, code, out.String(), wrong.String())
	}
}

// a2a runs the command of the A2A project, where AGENTSITE_TEST_A2A names it.
func (u *user) a2a(args []string) {
	u.t.Helper()
	tool := os.Getenv("AGENTSITE_TEST_A2A")
	if tool == "" {
		if strings.Contains(os.Getenv("AGENTSITE_TEST_REQUIRE"), "a2a") {
			u.t.Fatal("AGENTSITE_TEST_A2A names no a2a command")
		}
		u.t.Skip("AGENTSITE_TEST_A2A names no a2a command")
	}
	ctx, cancel := context.WithTimeout(u.t.Context(), requestTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, tool, args...).CombinedOutput()
	if err != nil || len(out) == 0 {
		u.t.Errorf("a2a %q: %v: %s", args, err, out)
	}
}

// script asks what a program on the page asks. The programs themselves are run
// by .ci/interop, where their packages are.
func (u *user) script(s shownUse) {
	u.t.Helper()
	if card := regexp.MustCompile(`createFromUrl\("([^"]+)"`).FindStringSubmatch(s.code); card != nil {
		u.link(card[1])
		return
	}
	base := regexp.MustCompile(`(?:baseURL: |base_url=)"([^"]+)"`).FindStringSubmatch(s.code)
	model := regexp.MustCompile(`model(?:: |=)"([^"]+)"`).FindStringSubmatch(s.code)
	if base == nil || model == nil || !strings.Contains(s.code, "AGENTSITE_TOKEN") {
		u.t.Fatalf("%s names no address, model and key", s.label)
	}
	u.curl(s, []string{base[1] + "/chat/completions", "-H", "Authorization: Bearer " + u.env["AGENTSITE_TOKEN"], "-d", `{"model":"` + model[1] + `","messages":[{"role":"user","content":"Hello"}]}`}, false)
}

// mcpCommand uses the server that a command names as the command would.
func (u *user) mcpCommand(args []string) {
	u.t.Helper()
	address, header := "", make(http.Header)
	for i, a := range args {
		switch {
		case strings.HasPrefix(a, u.p.URL()+"/"):
			address = a
		case a == "--header" && i+1 < len(args):
			name, value, _ := strings.Cut(args[i+1], ": ")
			header.Set(name, value)
		}
	}
	flags := strings.Join(args, " ")
	if !strings.HasPrefix(flags, "claude mcp add --transport http calc "+address+" --header ") && !strings.HasPrefix(flags, "npx @modelcontextprotocol/inspector --cli "+address+" --transport http --method tools/list --header ") {
		u.t.Errorf("nobody knows the command %q", flags)
	}
	u.mcpTools(address, header)
}

func (u *user) mcpSettings(text string) {
	u.t.Helper()
	var in struct {
		MCPServers map[string]struct {
			Type, URL string
			Headers   map[string]string
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(text, "ags_…", u.env["AGENTSITE_TOKEN"])), &in); err != nil || len(in.MCPServers) != 1 {
		u.t.Fatalf("%v in %s", err, text)
	}
	for _, s := range in.MCPServers {
		header := make(http.Header)
		for k, v := range s.Headers {
			header.Set(k, v)
		}
		if s.Type != "http" {
			u.t.Errorf("a server of type %q", s.Type)
		}
		u.mcpTools(s.URL, header)
	}
}

// withHeader adds to each request what a client is told to send.
type withHeader struct {
	header http.Header
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (w withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for k := range w.header {
		r.Header.Set(k, w.header.Get(k))
	}
	return w.next.RoundTrip(r)
}

// mcpTools lists the tools of a server by a client that is not ours.
func (u *user) mcpTools(address string, header http.Header) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), requestTime)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "uses", Version: "1"}, nil)
	s, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: address, HTTPClient: &http.Client{Transport: withHeader{header, u.caller.HTTP.Transport}}}, nil)
	if err != nil {
		u.t.Fatalf("%s: %v", address, err)
	}
	defer s.Close()
	list, err := s.ListTools(ctx, nil)
	if err != nil || len(list.Tools) == 0 {
		u.t.Errorf("the tools of %s: %v, %v", address, list, err)
	}
}

// TestUses_WorkAsShown does all that an agent's page says to people and
// programs, with nothing but what stands there and a token.
func TestUses_WorkAsShown(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	caller := ada.NewToken()
	shown := shownUses(t, ada.Must(http.MethodGet, "/agents/calc", nil, http.StatusOK).Body)
	var uses []string
	env := map[string]string{"AGENTSITE_TOKEN": caller.Token}
	for _, s := range shown {
		if !slices.Contains(uses, s.use) {
			uses = append(uses, s.use)
		}
		t.Run(s.use+"/"+s.label, func(t *testing.T) { // one after the other: some need what came before
			(&user{t, p, caller.With(t), env}).run(s)
		})
	}
	if want := []string{"Browser", "Terminal", "OpenAI", "A2A", "MCP", "Our own API"}; !slices.Equal(uses, want) {
		t.Errorf("the page shows %q, want %q", uses, want)
	}
}

// TestUses_OfAServerOfTools finds an agent of kind mcp in the registry, as its
// page says.
func TestUses_OfAServerOfTools(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	ada.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "tool-box", "description": "Has tools.", "kind": "mcp", "endpoint": agenttest.NewMCPServer(t, true).URL}, http.StatusCreated)
	shown := shownUses(t, ada.Must(http.MethodGet, "/agents/tool-box", nil, http.StatusOK).Body)
	last := shown[len(shown)-1]
	if args, err := words(last.code, nil); last.use != "MCP registry" || err != nil || !slices.Equal(args, []string{"curl", "-s", p.URL() + "/v0.1/servers/1.0.0.127%2Ftool-box/versions/latest"}) {
		t.Fatalf("it ends with %+v (%v)", last, err)
	}
	at, err := url.Parse(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	body := ada.Must(http.MethodGet, strings.TrimPrefix(strings.Trim(strings.Fields(last.code)[2], "'"), at.String()), nil, http.StatusOK).Body
	if !strings.Contains(body, "tool-box") {
		t.Errorf("the registry answers %.300s", body)
	}
}

func TestWords_AreThoseOfAShell(t *testing.T) {
	t.Parallel()
	env := map[string]string{"TOKEN": "ags_1"}
	got, err := words("curl -s http://x \\\n  -H \"A: $TOKEN\" -d '{\"a\":\"b c\"}' $TOKEN/x", env)
	if want := []string{"curl", "-s", "http://x", "-H", "A: ags_1", "-d", `{"a":"b c"}`, "ags_1/x"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"a | b", "a; b", "a > b", "$(rm)", "`rm`", `"$OTHER"`, "'open", `"open`, "a & b", `"$(rm)"`, "a*", "$", "http://x?a=b&c=d"} {
		if got, err := words(bad, env); err == nil {
			t.Errorf("%q is %q", bad, got)
		}
	}
}

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"agentsite/internal/a2a"
	"agentsite/internal/agentname"
	"agentsite/internal/egress"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/schema"
)

const (
	// readTime bounds all requests for one address.
	readTime  = 30 * time.Second
	maxSkills = 32
	// bytes of a skill's id in the directory
	maxSkillID = 100
	maxExample = 300
)

// ErrNoServer is wrapped by Read's errors when the address answers, but not in MCP: an agent of another
// kind may run there.
var ErrNoServer = errors.New("no MCP server")

// ErrKey is wrapped by Read's errors when the server asks for credentials.
var ErrKey = errors.New("the server asks for a key")

// Reader implements hub.Reader for MCP servers.
type Reader struct{ rt http.RoundTripper }

// NewReader returns a Reader over rt, which must bound time and restrict addresses.
func NewReader(rt http.RoundTripper) *Reader { return &Reader{rt: rt} }

// Read implements hub.Reader: it connects to the server at the address, or below it at /mcp, and lists
// its tools. It calls none.
func (r *Reader) Read(ctx context.Context, address string) (hub.Described, error) {
	return r.ReadAs(ctx, hub.Target{Kind: hub.MCP, Endpoint: address})
}

// ReadAs is Read with the credential and settings of t, for servers that require them and for reading
// the tools of a registered server again.
func (r *Reader) ReadAs(ctx context.Context, t hub.Target) (hub.Described, error) {
	return r.read(ctx, t, true)
}

// ReadAt is Read for a server at the address itself, not below it.
func (r *Reader) ReadAt(ctx context.Context, address string) (hub.Described, error) {
	return r.read(ctx, hub.Target{Kind: hub.MCP, Endpoint: address}, false)
}

func (r *Reader) read(ctx context.Context, t hub.Target, below bool) (hub.Described, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	u, err := egress.CheckURL(strings.TrimSpace(t.Endpoint))
	if err != nil {
		return hub.Described{}, invalidFault(err, "%s", toSentence(egress.Reason(err)))
	}
	cfg, err := readConfig(t.Config)
	if err != nil {
		return hub.Described{}, err
	}
	t.Endpoint = u.String()
	d, err := r.describeServer(ctx, t, cfg)
	p, ok := errors.AsType[*problem](err)
	if below && ok && p.kind == troubleShape && p.sent && !strings.HasSuffix(u.Path, "/mcp") {
		deeper := t
		at := *u
		at.Path, at.RawPath = strings.TrimRight(u.Path, "/")+"/mcp", ""
		deeper.Endpoint = at.String()
		d2, err2 := r.describeServer(ctx, deeper, cfg)
		p2, ok2 := errors.AsType[*problem](err2)
		// A server that asks for credentials at /mcp is more likely the right one than the first
		// address.
		if err2 == nil || ok2 && p2.kind == troubleAuth {
			d, err, p, ok = d2, err2, p2, ok2
		}
	}
	switch {
	case err == nil:
		return d, nil
	case !ok:
		return hub.Described{}, invalidFault(err, "Reading %s took too long or was stopped.", u.Host)
	case p.kind == troubleAuth && t.Secret == "":
		return hub.Described{}, invalidFault(fmt.Errorf("%w: %w", ErrKey, err),
			"The server at %s asks for a key. Choose the kind MCP and give its address and the key.", u.Host)
	case p.kind == troubleShape:
		return hub.Described{}, invalidFault(fmt.Errorf("%w: %w", ErrNoServer, err),
			"There is no MCP server at %s: %s.", u.Host, redactSecret(p.text, t.Secret))
	}
	return hub.Described{}, invalidFault(err, "The MCP server at %s could not be read: %s.", u.Host,
		redactSecret(p.text, t.Secret))
}

func invalidFault(err error, format string, args ...any) error {
	f := fault.Wrap(fault.Invalid, err, format, args...)
	f.Fields = map[string]string{"endpoint": f.Safe}
	return f
}

func (r *Reader) describeServer(ctx context.Context, t hub.Target, cfg hub.MCPConfig) (hub.Described, error) {
	s, err := openSession(ctx, r.rt, t, cfg)
	if err != nil {
		return hub.Described{}, err
	}
	defer s.closeBefore(ctx)
	tools, more, err := s.listTools(ctx)
	if err != nil {
		return hub.Described{}, err
	}
	return s.describeSelf(t.Endpoint, cfg, tools, more)
}

// describeSelf builds the description from the server's own name, instructions and tools. more is the
// number of tools that were left out.
func (s *session) describeSelf(endpoint string, cfg hub.MCPConfig, tools []offered, more int) (hub.Described, error) {
	res := s.InitializeResult()
	name, title, host := "", "", s.wire.endpoint.Host
	if i := res.ServerInfo; i != nil {
		name, title = a2a.Line(i.Name, 100), a2a.Line(i.Title, 100)
		cfg.Server = strings.TrimSpace(name + " " + a2a.Line(i.Version, 40))
	}
	if title == "" {
		title = name
	}
	if title == "" {
		title = host
	}
	cfg.Version = res.ProtocolVersion
	cfg.Instructions = a2a.Text(res.Instructions, maxInstruction)
	cfg.Tools = hubTools(tools)
	config, err := json.Marshal(cfg)
	if err != nil {
		return hub.Described{}, fmt.Errorf("write settings: %w", err)
	}
	d := hub.Described{
		Name:        agentname.Propose(name, endpoint),
		Title:       title,
		Description: describeTools(cfg, host, more),
		Kind:        hub.MCP,
		Endpoint:    endpoint,
		Config:      config,
		InputModes:  []string{"text/plain", "application/json"},
		OutputModes: []string{"text/plain", "application/json"},
	}
	for _, t := range tools {
		if len(d.Skills) == maxSkills {
			break
		}
		if len(t.Name) <= maxSkillID {
			d.Skills = append(d.Skills, toolSkill(t.Tool))
		}
	}
	return d, nil
}

func describeTools(cfg hub.MCPConfig, host string, more int) string {
	var b strings.Builder
	if cfg.Instructions != "" {
		b.WriteString(a2a.Text(cfg.Instructions, 1500))
		b.WriteString("\n\n")
	}
	names := make([]string, 0, 8)
	for _, t := range cfg.Tools[:min(len(cfg.Tools), 8)] {
		names = append(names, t.Name)
	}
	switch n := len(cfg.Tools) + more; {
	case n == 0:
		fmt.Fprintf(&b, "An MCP server at %s that offers no tools.", host)
	case n == 1:
		fmt.Fprintf(&b, "An MCP server at %s with one tool: %s.", host, strings.Join(names, ", "))
	case n > len(names):
		fmt.Fprintf(&b, "An MCP server at %s with %d tools, among them %s.", host, n, strings.Join(names, ", "))
	default:
		fmt.Fprintf(&b, "An MCP server at %s with %d tools: %s.", host, n, strings.Join(names, ", "))
	}
	if more > 0 {
		fmt.Fprintf(&b, " %d of its tools are left out here.", more)
	}
	return b.String()
}

// toolSkill describes a tool as a skill of the agent, so that searches of the directory find it.
func toolSkill(t hub.Tool) hub.Skill {
	s := hub.Skill{ID: t.Name, Name: t.Title, Description: t.Description, Tags: []string{"tool"}}
	if s.Name == "" {
		s.Name = t.Name
	}
	if s.Description == "" {
		s.Description = "Calls the tool " + t.Name + "."
	}
	if t.ReadOnly {
		s.Tags = append(s.Tags, "read-only")
	}
	if e := exampleCall(t); e != "" && len(e) <= maxExample {
		s.Examples = []string{e}
	}
	return s
}

// exampleCall returns a call of the tool as a user types it, with the examples of its schema; "" if
// they lack a required argument.
func exampleCall(t hub.Tool) string {
	fields, err := schema.Fields(t.InputSchema)
	if err != nil {
		return ""
	}
	out := t.Name
	for _, f := range fields {
		v := f.Default
		if len(f.Examples) > 0 {
			v = f.Examples[0]
		} else if v == "" && len(f.Options) > 0 && f.Type == schema.Choice {
			v = f.Options[0]
		}
		if v == "" && f.Required {
			return ""
		}
		if len(f.Examples) > 0 || f.Required {
			out += " " + f.Path + "=" + quoteValue(v)
		}
	}
	return out
}

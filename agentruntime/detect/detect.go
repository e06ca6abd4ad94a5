// Package detect finds out which kind of agent answers at an address, and reads its description: an MCP server, an A2A
// agent or the base URL of a model. It knows no registration; the hub decides what becomes of the result.
package detect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/agentruntime/mcp"
	"agentsite/agentruntime/model"
	"agentsite/agentruntime/remote"
	"agentsite/internal/a2a"
	"agentsite/internal/egress"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/offer"
	"agentsite/internal/task"
)

// Reader implements hub.Reader. Create it with New; it may be used by several goroutines.
type Reader struct {
	remote *remote.Reader
	mcp    *mcp.Reader
}

// New returns a Reader over rt, which must bound time and restrict addresses.
func New(rt http.RoundTripper) Reader { return Reader{remote.NewReader(rt), mcp.NewReader(rt)} }

// probing marks requests as probes. They are then signed, because an endpoint may refuse unsigned requests.
var probing = task.Behalf{Kind: "probe"}

// ownTimeout bounds the requests to the address itself, so that there is time left to look elsewhere on its host.
const ownTimeout = 6 * time.Second

// reading is the result of one attempt to read a description.
type reading struct {
	d   hub.Described
	at  bool // it describes the agent at the address itself
	err error
}

// readAll runs the attempts at the same time and returns their results in order.
func readAll(ctx context.Context, attempts []func(context.Context) reading) []reading {
	out := make([]reading, len(attempts))
	var wg sync.WaitGroup
	for i, attempt := range attempts {
		wg.Go(func() {
			// The parsers of the server's answers may panic, and no handler recovers in this goroutine.
			defer func() {
				if p := recover(); p != nil {
					out[i] = reading{err: fmt.Errorf("panic while reading a description: %v\n%s", p, debug.Stack())}
				}
			}()
			out[i] = attempt(ctx)
		})
	}
	wg.Wait()
	return out
}

// Read implements hub.Reader for an unknown kind. It asks the address itself as an MCP server, as an A2A agent and as
// the base URL of a model; the first of these that answers wins. If none does, it looks elsewhere on the host. What it
// finds there is offered by an offer.ElsewhereError; only an address without a path means the one agent of its host.
func (r Reader) Read(ctx context.Context, address string) (hub.Described, error) {
	ctx = task.WithBehalf(ctx, probing)
	u, err := egress.CheckURL(strings.TrimSpace(address))
	if err != nil {
		return hub.Described{}, fault.Field("endpoint", egress.Reason(err))
	}
	address = u.String()
	own, cancel := context.WithTimeout(ctx, ownTimeout)
	at := readAll(own, []func(context.Context) reading{r.asMCP(address), r.asA2A(address), r.asModel(address)})
	cancel()
	var found []hub.Described
	for _, got := range at {
		switch {
		case got.err == nil && got.at:
			return got.d, nil
		case got.err == nil:
			found = append(found, got.d)
		}
	}
	tools, card, list := at[0].err, at[1].err, at[2].err
	isRoot := u.Path == "" || u.Path == "/"
	wantsKey := errors.Is(tools, mcp.ErrKey) || errors.Is(list, model.ErrKey)
	switch {
	case isUnreachable(card):
		return hub.Described{}, card
	case !isRoot && wantsKey:
		return hub.Described{}, keyFault(u, list)
	}
	below := readAll(ctx, r.elsewhere(u))
	for _, got := range below {
		if got.err == nil {
			found = append(found, got.d)
		}
		wantsKey = wantsKey || errors.Is(got.err, mcp.ErrKey) || errors.Is(got.err, model.ErrKey)
	}
	found = uniqueDescribed(found)
	switch {
	case isRoot && len(found) == 1:
		return found[0], nil
	case len(found) > 0:
		offers := make([]offer.Agent, len(found))
		for i, d := range found {
			offers[i] = offer.Agent{Title: d.Title, Kind: d.Kind, Address: source(d)}
		}
		return hub.Described{}, offer.Elsewhere(address, offers)
	case wantsKey:
		return hub.Described{}, keyFault(u, list)
	case tools != nil && !errors.Is(tools, mcp.ErrNoServer) && errors.Is(card, a2a.ErrNoCard):
		return hub.Described{}, tools // there is an MCP server; its error describes the problem
	}
	return hub.Described{}, card
}

// ReadAs implements hub.Reader for a known kind. The card of another agent of the host is taken only if the agent was
// registered from it.
func (r Reader) ReadAs(ctx context.Context, t hub.Target) (hub.Described, error) {
	ctx = task.WithBehalf(ctx, probing)
	switch t.Kind {
	case hub.MCP:
		return r.mcp.ReadAs(ctx, t)
	case hub.OpenAI:
		return r.remote.ReadModels(ctx, t.Endpoint, t.Secret)
	case hub.A2A:
		got := r.asA2A(t.Endpoint)(ctx)
		was := source(hub.Described{Kind: t.Kind, Config: t.Config})
		if got.err == nil && (got.at || was != "" && source(got.d) == was) {
			return got.d, nil
		}
	}
	return r.Read(ctx, t.Endpoint)
}

// source returns the address at which Read finds a description again: that of its card, otherwise the endpoint.
func source(d hub.Described) string {
	var c hub.A2AConfig
	if d.Kind == hub.A2A && json.Unmarshal(d.Config, &c) == nil && c.CardURL != "" {
		return c.CardURL
	}
	return d.Endpoint
}

func (r Reader) asMCP(address string) func(context.Context) reading {
	return func(ctx context.Context) reading {
		d, err := r.mcp.ReadAt(ctx, address)
		return reading{d, true, err}
	}
}

func (r Reader) asA2A(address string) func(context.Context) reading {
	return func(ctx context.Context) reading {
		d, at, err := r.remote.ReadAgent(ctx, address)
		return reading{d, at, err}
	}
}

func (r Reader) asModel(base string) func(context.Context) reading {
	return func(ctx context.Context) reading {
		d, err := r.remote.ReadModels(ctx, base, "")
		return reading{d, true, err}
	}
}

// modelRoutes are ends of addresses below the base URL of a model, which people copy from examples.
var modelRoutes = []string{"/chat/completions", "/completions", "/responses", "/models"}

// elsewhere returns attempts at the usual addresses below u and in the root of its host: at most two MCP servers and
// three models.
func (r Reader) elsewhere(u *url.URL) (attempts []func(context.Context) reading) {
	path := strings.TrimRight(u.Path, "/")
	at := func(path string) string {
		return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: path}).String()
	}
	tools, bases := []string{path + "/mcp", "/mcp"}, []string{path + "/v1", "/v1"}
	for _, route := range modelRoutes {
		if base, ok := strings.CutSuffix(path, route); ok {
			bases = append(bases, base)
		}
	}
	list := func(paths []string, attempt func(string) func(context.Context) reading) {
		for i, p := range paths {
			if p != path && slices.Index(paths, p) == i {
				attempts = append(attempts, attempt(at(p)))
			}
		}
	}
	list(tools, r.asMCP)
	list(bases, r.asModel)
	return attempts
}

// uniqueDescribed leaves out descriptions of one kind and endpoint that come again, and puts them in the order of the
// kinds: MCP, A2A, models.
func uniqueDescribed(list []hub.Described) (out []hub.Described) {
	for _, kind := range []hub.Kind{hub.MCP, hub.A2A, hub.OpenAI} {
		for _, d := range list {
			if d.Kind == kind && !slices.ContainsFunc(out, func(o hub.Described) bool {
				return o.Kind == d.Kind && o.Endpoint == d.Endpoint
			}) {
				out = append(out, d)
			}
		}
	}
	return out
}

// isUnreachable reports whether no server can have answered, or none may be asked.
func isUnreachable(err error) bool {
	switch egress.CodeOf(err) {
	case egress.BadURL, egress.Private, egress.Denied, egress.Unprepared, egress.NoSuchHost, egress.Connect, egress.TLS,
		egress.Resting:
		return true
	}
	return false
}

// keyFault says that the server at u wants a key before it shows its kind.
func keyFault(u *url.URL, list error) error {
	kind := "the kind that it has"
	switch {
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/mcp"):
		kind = "MCP server"
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/v1"), errors.Is(list, model.ErrKey):
		kind = "Model or assistant"
	}
	return fault.Field("endpoint", u.Host+" asks for a key. Choose "+kind+" and give the key.")
}

// Package prompt runs agents that are instructions: it puts them to a model,
// the portal's own or the owner's, and lets the model use the tools of other
// agents in a bounded loop. What the model and the tools say is data: a tool
// that may change something runs only after the person who asks said yes, or
// when the owner allowed it beforehand. The package knows nothing of storage,
// of how a tool is reached or of how many tokens an operator pays for; these
// come in through Tools, Budget and Ledger.
package prompt

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"agentsite/agentruntime/model"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/task"
)

var (
	_ task.Agent = (*Driver)(nil)
	_ hub.Prober = (*Driver)(nil)
)

// Config is what a Driver needs.
type Config struct {
	// RT carries calls to the owners' models; it must bound time and guard
	// addresses. PortalRT carries those to the portal's own model, whose
	// address the operator chose; nil means RT.
	RT, PortalRT http.RoundTripper
	// Portal is the portal's own model; nil when it has none.
	Portal *Model
	// Tools finds the tools of other agents; nil when there are none.
	Tools Tools
	// Budget is asked before the portal's own model is; nil means no bound.
	Budget Budget
	// Log defaults to a logger that discards.
	Log *slog.Logger
	// HistoryBytes bounds what was said before that goes along; default
	// 24 KiB.
	HistoryBytes int
}

// Model is a model behind an OpenAI-compatible server.
type Model struct {
	URL  string // base, usually ending in /v1
	Key  string
	Name string // the default; agents may name another
}

// Tools finds the tools that an agent may use for a call.
type Tools interface {
	// Offer returns the tools of the agents named that this caller may use
	// through this agent. Agents that are gone or not allowed are left out.
	Offer(ctx context.Context, call task.Call, names []string) ([]Tool, error)
}

// Tool is one tool of another agent.
type Tool struct {
	Agent       string // the agent's handle
	Name        string
	Description string
	// Schema is the JSON Schema of the arguments, an object.
	Schema json.RawMessage
	// ReadOnly is true when the tool changes nothing, by the word of its
	// server.
	ReadOnly bool
	// Call runs it. isError is a failure the tool reports itself; err one of
	// reaching it, of which a *fault.Error's sentence goes to the model. It
	// must return soon after ctx ends.
	Call func(ctx context.Context, args json.RawMessage) (text string, isError bool, err error)
}

// Driver runs agents of kind prompt. It is safe for concurrent use and holds
// nothing that must be closed.
type Driver struct {
	cfg    Config
	portal *model.Client // nil when the portal has no model
	broken error         // why the portal's model cannot be used
	lists  listing
}

// New returns the driver of kind prompt.
func New(cfg Config) *Driver {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.PortalRT == nil {
		cfg.PortalRT = cfg.RT
	}
	if cfg.HistoryBytes <= 0 {
		cfg.HistoryBytes = 24 << 10
	}
	d := &Driver{cfg: cfg}
	if cfg.Portal == nil {
		d.broken = fault.New(fault.Unavailable,
			"This portal has no model of its own; the agent's owner should give the address of one.")
		return d
	}
	if d.portal, d.broken = model.New(cfg.PortalRT, cfg.Portal.URL, cfg.Portal.Key); d.broken != nil {
		cfg.Log.Error("the portal's model cannot be used", "error", d.broken)
	}
	return d
}

const (
	// maxAttempts is how often one question is put, over restarts.
	maxAttempts = 2
	// portalTokens bounds one answer of the portal's own model.
	portalTokens = 4096
)

// asked is the model that one agent uses.
type asked struct {
	client *model.Client
	name   string
	key    string
	portal bool
	max    int // tokens of one answer; 0 leaves it to the model
}

// model finds the model of an agent.
func (d *Driver) model(endpoint, secret string, cfg hub.PromptConfig) (asked, error) {
	if endpoint != "" {
		if cfg.Model == "" {
			return asked{}, fault.New(fault.Unavailable, "The agent names no model. Its owner should choose one.")
		}
		client, err := model.New(d.cfg.RT, endpoint, secret)
		return asked{client: client, name: cfg.Model, key: secret, max: max(cfg.MaxTokens, 0)}, err
	}
	if d.broken != nil {
		return asked{}, d.broken
	}
	// The operator pays: another of its provider's models is not the owner's
	// to choose.
	a := asked{client: d.portal, name: d.cfg.Portal.Name, key: d.cfg.Portal.Key, portal: true, max: cfg.MaxTokens}
	if a.max <= 0 || a.max > portalTokens {
		a.max = portalTokens
	}
	return a, nil
}

func settings(b json.RawMessage) (hub.PromptConfig, error) {
	var cfg hub.PromptConfig
	if len(b) == 0 {
		return cfg, nil
	}
	err := json.Unmarshal(b, &cfg)
	return cfg, err
}

// reason is what people read; who asked cannot mend a key.
func (a asked) reason(err error) string {
	switch {
	case errors.Is(err, model.ErrKey) && a.portal:
		return "The portal's model refused the portal's key. Its operator should renew it."
	case errors.Is(err, model.ErrKey) && a.key != "":
		return "The endpoint refused the key that is stored for this agent. Its owner should renew it."
	case errors.Is(err, model.ErrKey):
		return "The endpoint asks for a key and none is stored for this agent. Its owner should add one."
	}
	return redacted(fault.As(err).Safe, a.key)
}

// redacted takes a credential out of foreign text: those who read it are not
// its owner.
func redacted(text, secret string) string {
	if secret == "" {
		return text
	}
	return strings.ReplaceAll(text, secret, "[key]")
}

// failed is a task that ended without an answer, or with part of one.
func failed(parts []task.Part, reason string) task.Result {
	return task.Result{State: task.Failed, Parts: parts, Reason: reason}
}

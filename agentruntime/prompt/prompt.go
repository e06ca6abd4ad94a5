// Package prompt runs agents that consist of instructions: it sends the instructions to a model, one of the
// portal's or the owner's, and lets the model use the tools of other agents in a bounded loop. The
// output of the model and the tools is untrusted: a tool that may change something runs only after the
// person who asked consented, or when the owner allowed it beforehand. The package does not depend on
// storage, on the way a tool is called or on the operator's token limits; they are behind Tools, Budget
// and Ledger.
package prompt

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"agentsite/agentruntime/model"
	"agentsite/internal/a2a"
	"agentsite/internal/fault"
	"agentsite/internal/grant"
	"agentsite/internal/hub"
	"agentsite/internal/liveness"
	"agentsite/internal/models"
	"agentsite/internal/openai"
	"agentsite/internal/task"
	"agentsite/internal/usage"
)

var (
	_ task.Agent      = (*Driver)(nil)
	_ liveness.Prober = (*Driver)(nil)
)

// Config holds the dependencies of a Driver.
type Config struct {
	// RT sends requests to the owners' models; it must bound time and restrict addresses. PortalRT
	// sends those to the portal's models, at addresses that the operator chose; nil means RT.
	RT, PortalRT http.RoundTripper
	// Models finds the named models; nil when there are none.
	Models Models
	// Tools finds the tools of other agents; nil when there are none.
	Tools Tools
	// Grants decides about calls that need a permission; nil means that a person is asked each time.
	Grants Grants
	// Summaries keeps the summaries of long conversations; nil leaves earlier messages out.
	Summaries Summaries
	// Budget is asked before each question to a model of the portal; nil means no bound.
	Budget Budget
	// Guard is asked before each question to any model; nil means no bound.
	Guard usage.Guard
	// Meter counts each answer of a model; nil means that none is counted.
	Meter usage.Meter
	// Log defaults to a logger that discards.
	Log *slog.Logger
	// HistoryBytes bounds the earlier messages that are sent; default 24 KiB.
	HistoryBytes int
}

// Models finds named models.
type Models interface {
	// Chain returns the model with that name for the agents of an owner, "" for the portal's default, and the one that
	// it falls back to. It is empty if there is none.
	Chain(ownerID, name string) []models.Model
	// ServerOf returns a model's server with its key.
	ServerOf(m models.Model) (models.Server, error)
}

// Tools finds the tools that an agent may use for a call.
type Tools interface {
	// Offer returns the tools of the named agents that this caller may use through this agent. Agents
	// that are gone or not allowed are left out.
	Offer(ctx context.Context, call task.Call, names []string) ([]Tool, error)
}

// Tool is one tool of another agent, or of the portal.
type Tool struct {
	Agent string // the agent's handle
	Name  string
	// Title is the name of the function for the model, if it is not made of Agent and Name.
	Title       string
	Description string
	// Schema is the JSON Schema of the arguments, an object.
	Schema json.RawMessage
	// ReadOnly is true when the tool changes nothing, so that it needs no permission.
	ReadOnly bool
	// Owned is true for a tool that works with the rights of the agent's owner. The owner may permit its calls for all
	// callers (hub.PromptConfig.Unasked).
	Owned bool
	// Repeatable is true when a call that was interrupted continues if it is made again with the same id.
	Repeatable bool
	// Time bounds one call; 0 means toolTime.
	Time   time.Duration
	Caller ToolCaller
}

// Invocation is one call of a tool. The ID is unique within the task. Earlier is the number of calls of repeatable
// tools that the task made before. Reply is the answer to the question of the same call made before, nil for none.
type Invocation struct {
	ID      string
	Args    json.RawMessage
	Earlier int
	Reply   *Reply
}

// ToolCaller runs one tool.
type ToolCaller interface {
	// CallTool runs the tool. isError marks a failure that the tool itself reports. err is set when the tool could not
	// be called; the sentence of a *fault.Error is shown to the model. An *AskedBack asks the person first, for tools
	// that are Repeatable. It must return soon after ctx ends.
	CallTool(ctx context.Context, c Invocation) (text string, isError bool, err error)
}

// Grants decides about calls that need a permission, by the earlier decisions of the person behind the call.
type Grants interface {
	// Begin decides about a call now. A *fault.Error is shown to the model: the call is not made.
	Begin(ctx context.Context, call task.Call, t Tool, c Invocation) (Permission, error)
	// Remember stores the person's answer Always, AlwaysHere or Never for later calls of the same kind.
	Remember(ctx context.Context, call task.Call, t Tool, c Invocation, a Answer) error
	// Forget takes back the person's answers about the agent that hold in this conversation only.
	Forget(ctx context.Context, call task.Call) error
}

// Permission is the decision about a call.
type Permission struct {
	Decision grant.Decision
	// Target is the handle of the agent that the call goes to, "" for none.
	Target string
	// Reader is the host that reads the memories which a call of grant.Memory keeps, "" for this portal alone.
	Reader string
	// Context is the context of an allowed call: it ends when the person takes the permission back. Done must be called
	// when the call has ended.
	Context context.Context
	Done    func()
	// Keeps is true if the person's answer can be remembered for this conversation, KeepsAll if also for all.
	Keeps, KeepsAll bool
}

// Driver runs agents of kind prompt. It is safe for concurrent use and holds
// nothing that must be closed.
type Driver struct {
	cfg Config

	mu    sync.Mutex // guards the fields below
	lists map[models.Server]*listing
	rooms map[modelKey]int // bytes of earlier messages that models took, where that is less than Config.HistoryBytes
}

// modelKey is a model on a server.
type modelKey struct {
	server models.Server
	name   string
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
	return &Driver{cfg: cfg, lists: make(map[models.Server]*listing), rooms: make(map[modelKey]int)}
}

// minRoom is the least room for earlier messages that is learned, in bytes, and maxRooms the number of models with one.
const (
	minRoom  = 512
	maxRooms = 1000
)

// roomOf returns the bytes of earlier messages that a model gets.
func (d *Driver) roomOf(a chosenModel) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if room, ok := d.rooms[modelKey{a.server, a.Name}]; ok {
		return room
	}
	return d.cfg.HistoryBytes
}

// learnRoom notes that a model took a conversation of that size and no longer one, so that the next ones are summarised
// in time.
func (d *Driver) learnRoom(a chosenModel, size int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.rooms) >= maxRooms {
		clear(d.rooms)
	}
	d.rooms[modelKey{a.server, a.Name}] = min(max(size, minRoom), d.cfg.HistoryBytes)
}

// sizeOf returns the bytes of the texts of messages.
func sizeOf(list []openai.Message) int {
	n := 0
	for _, m := range list {
		n += len(m.Content)
	}
	return n
}

const (
	// maxAttempts is how often one question is asked, over restarts.
	maxAttempts = 2
	// portalTokens bounds one answer of a model of the portal.
	portalTokens = 4096
)

// chosenModel is the model that one agent uses, with the client of its server.
type chosenModel struct {
	client *model.Client
	model.Terms
	server models.Server
	max    int // tokens of one answer; 0 leaves it to the model
}

// findModels returns the model of an agent and those that it falls back to: at endpoint with the owner's key in secret
// or, if endpoint is empty, the named model of the settings. The error is an Unavailable or Invalid fault with a
// sentence for the caller.
func (d *Driver) findModels(ownerID, endpoint, secret string, cfg hub.PromptConfig) ([]chosenModel, error) {
	if endpoint != "" {
		if cfg.Model == "" {
			return nil, fault.New(fault.Unavailable, "The agent names no model. Its owner should choose one.")
		}
		a := chosenModel{Terms: model.Terms{Name: cfg.Model}, server: models.Server{URL: endpoint, Key: secret},
			max: max(cfg.MaxTokens, 0)}
		var err error
		a.client, err = model.New(d.cfg.RT, a.server)
		return []chosenModel{a}, err
	}
	var chain []models.Model
	if d.cfg.Models != nil {
		chain = d.cfg.Models.Chain(ownerID, cfg.Model)
	}
	switch {
	case len(chain) > 0:
	case cfg.Model != "":
		return nil, fault.New(fault.Unavailable, "The agent's model %q is not here any more. Its owner should choose "+
			"another.", a2a.Line(cfg.Model, 100))
	default:
		return nil, fault.New(fault.Unavailable,
			"This portal has no model of its own; the agent's owner should give the address of one.")
	}
	out := make([]chosenModel, len(chain))
	for i, m := range chain {
		var err error
		if out[i], err = d.useModel(m); err != nil {
			return nil, err
		}
		out[i].max = max(cfg.MaxTokens, 0)
		if m.IsPortal() && (out[i].max == 0 || out[i].max > portalTokens) {
			out[i].max = portalTokens
		}
	}
	return out, nil
}

// useModel returns a named model with the client of its server.
func (d *Driver) useModel(m models.Model) (chosenModel, error) {
	a := chosenModel{Terms: model.Terms{Name: m.Model, Price: m.Price, Portal: m.IsPortal()}}
	var err error
	if a.server, err = d.cfg.Models.ServerOf(m); err != nil {
		return a, fault.Wrap(fault.Unavailable, err, "The key of the model %q cannot be read.", m.Name)
	}
	rt := d.cfg.RT
	if a.Portal {
		rt = d.cfg.PortalRT
	}
	a.client, err = model.New(rt, a.server)
	return a, err
}

func readSettings(b json.RawMessage) (hub.PromptConfig, error) {
	var cfg hub.PromptConfig
	if len(b) == 0 {
		return cfg, nil
	}
	err := json.Unmarshal(b, &cfg)
	return cfg, err
}

// failureReason returns a sentence for people. It refers to the owner or operator, because the caller
// cannot change a key.
func (a chosenModel) failureReason(err error) string {
	switch {
	case errors.Is(err, model.ErrKey) && a.Portal:
		return "The portal's model refused the portal's key. Its operator should renew it."
	case errors.Is(err, model.ErrKey) && a.server.Key != "":
		return "The endpoint refused the key that is stored for this agent. Its owner should renew it."
	case errors.Is(err, model.ErrKey):
		return "The endpoint asks for a key and none is stored for this agent. Its owner should add one."
	}
	return redactSecret(fault.As(err).Safe, a.server.Key)
}

// redactSecret removes a credential from a text of the server, because its readers are not the owner of
// the credential.
func redactSecret(text, secret string) string {
	if secret == "" {
		return text
	}
	return strings.ReplaceAll(text, secret, "[key]")
}

// failedResult is the result of a task that ended without an answer, or with part of one.
func failedResult(parts []task.Part, reason string) task.Result {
	return task.Result{State: task.Failed, Parts: parts, Reason: reason}
}

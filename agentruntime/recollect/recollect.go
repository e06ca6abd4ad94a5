// Package recollect gives agents their memories. Before a task it answers questions about the memory itself and adds
// the memories that fit the message, and after a task it lets the model of a prompt agent note new ones.
//
// An agent has a memory of the person in a conversation of the two, and one of the conversation if it has more members.
// Neither is used where an agent asks in the person's name, because its answer goes to that agent.
package recollect

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"agentsite/agentruntime/acting"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/memory"
	"agentsite/internal/openai"
	"agentsite/internal/task"
)

// Memory keeps memories; memory.Service implements it.
type Memory interface {
	Answer(ctx context.Context, u memory.Use, text string, self ...string) (reply string, ok bool, err error)
	IsOn(ctx context.Context, u memory.Use) (bool, error)
	Remember(ctx context.Context, u memory.Use, texts []string, distilled bool) (int, error)
	Recall(ctx context.Context, u memory.Use, text string, n int) ([]memory.Memory, error)
}

// Directory finds agents.
type Directory interface {
	AgentByID(ctx context.Context, id string) (hub.Agent, error)
	TextGoesTo(a hub.Agent) string
}

// Rooms reads the present members of conversations.
type Rooms interface {
	Members(ctx context.Context, conversationID string) ([]chat.Member, error)
}

// Models asks the model of a prompt agent.
type Models interface {
	AskOwnModel(ctx context.Context, call task.Call, messages []openai.Message, maxTokens int) (string, error)
}

// Config holds the dependencies of a Keeper.
type Config struct {
	Memory    Memory
	Directory Directory
	Rooms     Rooms
	Log       *slog.Logger
}

// Keeper remembers and recalls for the tasks of agents. Create it with New; it is safe for concurrent use.
type Keeper struct {
	cfg   Config
	queue chan job
}

var _ acting.Memories = (*Keeper)(nil)

const (
	// recalled is the number of memories that an agent gets with a message, recalledBytes bounds their texts.
	recalled, recalledBytes = 16, 4 << 10
	// maxQueue is the number of finished tasks that wait for the model to note memories. Further ones are left out.
	maxQueue = 256
)

// New returns a keeper. Run must run for memories to be noted by models.
func New(cfg Config) *Keeper {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Keeper{cfg, make(chan job, maxQueue)}
}

// errNoPlace refuses memory where there is none.
var errNoPlace = fault.New(fault.Forbidden,
	"You have a memory only of people with an account on this portal, and only when they write to you themselves.")

// placeOf returns the place that the agent of a call may remember in; ok is false if there is none. There is none for
// an answer of the person that agents passed on either, because an agent gets the result.
func (k *Keeper) placeOf(ctx context.Context, call task.Call) (u memory.Use, ok bool, err error) {
	if call.Caller.Kind != string(ident.Person) && call.Caller.Kind != string(ident.Operator) {
		return u, false, nil
	}
	if call.ConversationID == "" || call.Agent.Portal != "" || call.Relayed || call.ThroughAgents() {
		return u, false, nil
	}
	a, err := k.cfg.Directory.AgentByID(ctx, call.Agent.ID)
	if fault.Is(err, fault.NotFound) {
		return u, false, nil // it is tried before its registration
	}
	if err != nil {
		return u, false, err
	}
	members, err := k.cfg.Rooms.Members(ctx, call.ConversationID)
	if err != nil {
		return u, false, err
	}
	u = memory.Use{Place: memory.Place{PersonID: call.Caller.ID, AgentID: a.ID}, Agent: a.Name,
		ConversationID: call.ConversationID, Seq: call.MessageSeq,
		Binds: acting.BindingOf(a, k.cfg.Directory.TextGoesTo(a))}
	for _, m := range members {
		switch m.ID {
		case call.Caller.ID:
			u.FromSeq, ok = m.FromSeq, true
		case a.ID:
		default:
			u.RoomID = call.ConversationID
		}
	}
	return u, ok, nil // without ok the person left
}

// Remember implements acting.Memories.
func (k *Keeper) Remember(ctx context.Context, call task.Call, text string) error {
	u, ok, err := k.placeOf(ctx, call)
	if err != nil {
		return err
	}
	if !ok {
		return errNoPlace
	}
	_, err = k.cfg.Memory.Remember(ctx, u, []string{text}, false)
	return err
}

// Recall implements acting.Memories.
func (k *Keeper) Recall(ctx context.Context, call task.Call, query string) ([]task.Memory, error) {
	u, ok, err := k.placeOf(ctx, call)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errNoPlace
	}
	return k.recallFor(ctx, u, query)
}

func (k *Keeper) recallFor(ctx context.Context, u memory.Use, query string) ([]task.Memory, error) {
	list, err := k.cfg.Memory.Recall(ctx, u, query, recalled)
	if err != nil {
		return nil, err
	}
	var out []task.Memory
	room := recalledBytes
	for _, m := range list {
		if room -= len(m.Text); room < 0 {
			break
		}
		out = append(out, task.Memory{Text: m.Text, At: m.CreatedAt, Here: m.ConversationID == u.ConversationID})
	}
	return out, nil
}

// Driver is the driver of a kind of agents that remember.
type Driver struct {
	keeper *Keeper
	next   task.Agent
	models Models // nil for a kind without a model of its own
}

var (
	_ task.Agent   = (*Driver)(nil)
	_ task.Stopper = (*Driver)(nil)
)

// Wrap returns a driver that gives the agents of another one their memories. models is nil for agents that note
// memories by a tool only.
func (k *Keeper) Wrap(next task.Agent, models Models) *Driver { return &Driver{k, next, models} }

// Stop implements task.Stopper.
func (d *Driver) Stop(ctx context.Context, call task.Call) {
	if s, ok := d.next.(task.Stopper); ok {
		s.Stop(ctx, call)
	}
}

// Run implements task.Agent.
func (d *Driver) Run(ctx context.Context, call task.Call, out task.Sink) (task.Result, error) {
	if !memory.CanRemember(call.Agent.Kind, call.Agent.Config) {
		return d.next.Run(ctx, call, out)
	}
	u, ok, err := d.keeper.placeOf(ctx, call)
	if err != nil {
		return task.Result{}, err
	}
	if !ok {
		return d.next.Run(ctx, call, out)
	}
	said := task.PlainText(call.Parts)
	if len(call.Checkpoint) == 0 { // otherwise it answers a question of the agent
		reply, ok, err := d.keeper.cfg.Memory.Answer(ctx, u, said, strings.ToLower(call.Agent.Name),
			strings.ToLower(call.Agent.Handle))
		if err != nil {
			return task.Result{}, err
		}
		if ok {
			out.Text(reply)
			return task.Done(reply), nil
		}
	}
	if call.Memories, err = d.keeper.recallFor(ctx, u, queryOf(call)); err != nil {
		return task.Result{}, err
	}
	res, err := d.next.Run(ctx, call, out)
	if err == nil && res.State == task.Completed && d.models != nil {
		d.keeper.noteLater(ctx, job{u, call, said, task.PlainText(res.Parts), d.models})
	}
	return res, err
}

// shortQuery is the number of bytes below which a message needs the one before it to be understood.
const shortQuery = 24

// queryOf returns the text to which memories should fit: the message and, for a short one, the one of the person
// before.
func queryOf(call task.Call) string {
	text := task.PlainText(call.Parts)
	if len(text) >= shortQuery {
		return text
	}
	for _, t := range slices.Backward(call.History) {
		if t.Asker {
			return text + "\n" + task.PlainText(t.Parts)
		}
	}
	return text
}

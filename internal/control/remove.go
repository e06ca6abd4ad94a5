package control

import (
	"context"
	"io"

	"agentsite/internal/account"
	"agentsite/internal/clock"
	"agentsite/internal/ident"
	"agentsite/internal/personal"
	"agentsite/internal/task"
	"agentsite/store"
)

// Removal is the result of the removal of an account.
type Removal struct {
	Name string `json:"name"`
	// Conversations is the number that the account left, or that were deleted because it was the only person.
	Conversations int `json:"conversations"`
	Agents        int `json:"agents"`
	// Copies are older copies of the database in the data folder, which still hold the account.
	Copies []string `json:"copies,omitempty"`
}

// RoomLeaver ends the membership of a person in a conversation, and deletes one without another person. It
// is implemented by chat.Service.
type RoomLeaver interface {
	DeleteConversation(ctx context.Context, actor ident.Actor, id string) error
}

// AgentIndex removes the agents of a disabled account from the search index. It is implemented by
// hub.Service.
type AgentIndex interface {
	OwnerChanged(ctx context.Context, ownerID string, disabled bool) error
}

// Programs reads the programs and packages again after an erasure, because services keep them in memory.
type Programs interface {
	Reload(ctx context.Context) error
}

// removalPage is the number of conversations that are read at a time.
const removalPage = 100

// Remover erases accounts.
type Remover struct {
	Accounts *account.Service
	DB       *store.DB
	Rooms    RoomLeaver
	Agents   AgentIndex
	Programs Programs // nil for a stopped portal
}

// RemoveUser implements Control.
func (c *localControl) RemoveUser(ctx context.Context, name string, messages personal.Messages) (Removal, error) {
	return Remover{c.accounts, c.db, c.rooms, c.agents, c.programs}.Remove(ctx, name, messages)
}

// Remove erases the account of a name with its data. Each step is a transaction of its own, because an account can have
// thousands of conversations. The account is disabled first and its rows are erased last, so that a removal
// that was interrupted can be repeated. messages is the fate of the messages in conversations with others.
func (c Remover) Remove(ctx context.Context, name string, messages personal.Messages) (Removal, error) {
	begin := clock.Now()
	a, err := c.Accounts.BeginRemoval(ctx, system, name)
	if err != nil {
		return Removal{}, err
	}
	out := Removal{Name: a.Name}
	if err := c.Agents.OwnerChanged(ctx, a.ID, true); err != nil {
		return out, err
	}
	agents, err := c.DB.Hub.AgentsOf(ctx, a.ID)
	if err != nil {
		return out, err
	}
	for _, one := range agents {
		if one.OwnerID != a.ID {
			continue // a co-owned agent stays with its owner
		}
		if err := c.DB.Hub.DeleteAgent(ctx, one.ID); err != nil {
			return out, err
		}
		out.Agents++
	}
	person := ident.Actor{Kind: ident.Person, ID: a.ID, Name: a.Name}
	for {
		rooms, err := c.DB.ListRooms(ctx, a.ID, removalPage)
		if err != nil {
			return out, err
		}
		for _, id := range rooms {
			if err := c.Rooms.DeleteConversation(ctx, person, id); err != nil {
				return out, err
			}
			out.Conversations++
		}
		if len(rooms) < removalPage {
			break
		}
	}
	if err := c.DB.EraseAuthor(ctx, a.ID, a.Name, messages == personal.DeleteMessages, system); err != nil {
		return out, err
	}
	if err := c.DB.EraseAccount(ctx, a.ID, system); err != nil {
		return out, err
	}
	if err := c.DB.Chat.DropOrphans(ctx, begin); err != nil {
		return out, err
	}
	if out.Copies, err = c.DB.OlderCopies(); err != nil {
		return out, err
	}
	if err := c.DB.PurgeErased(ctx); err != nil || c.Programs == nil {
		return out, err
	}
	return out, c.Programs.Reload(ctx)
}

// ExportUser implements Control.
func (c *localControl) ExportUser(ctx context.Context, name string, w io.Writer) error {
	a, err := c.accounts.Find(ctx, system, name)
	if err != nil {
		return err
	}
	service := personal.New(c.db.Personal, c.db.Chat.Files, "this portal", nil, nil)
	return service.Export(ctx, personal.Subject{ID: a.ID, Name: a.Name}, w)
}

// stoppedRuntime is the runtime of a portal that does not run.
type stoppedRuntime struct{}

func (stoppedRuntime) Wake()                                   {}
func (stoppedRuntime) AwaitStop(context.Context, string) error { return nil }
func (stoppedRuntime) Stop(string) bool                        { return false }
func (stoppedRuntime) Ended(task.Task)                         {}
func (stoppedRuntime) WaitOf(string) (task.Wait, bool)         { return task.Wait{}, false }

// stoppedIndex is the search index of a portal that does not run: it is built at the start.
type stoppedIndex struct{}

func (stoppedIndex) OwnerChanged(context.Context, string, bool) error { return nil }

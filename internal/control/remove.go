package control

import (
	"context"
	"io"

	"agentsite/internal/ident"
	"agentsite/internal/personal"
	"agentsite/internal/task"
)

// Removal is the result of the removal of an account.
type Removal struct {
	Name string `json:"name"`
	// Conversations is the number that the account left, or that were deleted because it was the only person.
	Conversations int `json:"conversations"`
	Agents        int `json:"agents"`
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

// removalPage is the number of conversations that are read at a time.
const removalPage = 100

// RemoveUser implements Control. Each step is a transaction of its own, because an account can have
// thousands of conversations. The account is disabled first and its rows are erased last, so that a removal
// that was interrupted can be repeated.
func (c *localControl) RemoveUser(ctx context.Context, name string) (Removal, error) {
	a, err := c.accounts.BeginRemoval(ctx, system, name)
	if err != nil {
		return Removal{}, err
	}
	out := Removal{Name: a.Name}
	if err := c.agents.OwnerChanged(ctx, a.ID, true); err != nil {
		return out, err
	}
	agents, err := c.db.Hub.AgentsOf(ctx, a.ID)
	if err != nil {
		return out, err
	}
	for _, one := range agents {
		if one.OwnerID != a.ID {
			continue // a co-owned agent stays with its owner
		}
		if err := c.db.Hub.DeleteAgent(ctx, one.ID); err != nil {
			return out, err
		}
		out.Agents++
	}
	person := ident.Actor{Kind: ident.Person, ID: a.ID, Name: a.Name}
	for {
		rooms, err := c.db.ListRooms(ctx, a.ID, removalPage)
		if err != nil {
			return out, err
		}
		for _, id := range rooms {
			if err := c.rooms.DeleteConversation(ctx, person, id); err != nil {
				return out, err
			}
			out.Conversations++
		}
		if len(rooms) < removalPage {
			break
		}
	}
	return out, c.db.EraseAccount(ctx, a.ID, system)
}

// ExportUser implements Control.
func (c *localControl) ExportUser(ctx context.Context, name string, w io.Writer) error {
	a, err := c.accounts.Find(ctx, system, name)
	if err != nil {
		return err
	}
	service := personal.New(c.db.Personal, c.db.Chat.Files, "this portal")
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

package chat

import (
	"context"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/task"
)

// longestWork is how long what one message leads to may take elsewhere.
const longestWork = 15 * time.Minute

// Allowance is what the work on a task may lead to at another portal: what
// came along with what was asked, within what the conversation allows. It is
// for the runtime.
func (s *Service) Allowance(ctx context.Context, t task.Task) (task.Budget, error) {
	set, _, err := s.store.SettingsOf(ctx, t.ConversationID)
	if err != nil {
		return task.Budget{}, err
	}
	// The answer itself is one of the room's, and so are those before it.
	return t.Budget.CombineWith(task.Budget{Calls: max(set.Turns-1-t.Hop, 0), Until: clock.Now().Add(longestWork), Bytes: int64(set.Budget)}), nil
}

// checkBudget refuses what is asked when there is nothing left to answer it
// with.
func checkBudget(b task.Budget, parts []task.Part) error {
	if !b.IsSet() {
		return nil
	}
	size := 0
	for _, p := range parts {
		size += len(p.Text) + len(p.Data)
	}
	if clock.Now().Before(b.Until) && int64(size) < b.Bytes {
		return nil
	}
	return fault.Wrap(fault.Invalid, task.ErrBudget, "Nobody was asked: the time or the text that was allowed for all of this is used up.")
}

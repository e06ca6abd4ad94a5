package chat

import (
	"context"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// longestWork is the longest duration of the work at other portals that one message may cause.
const longestWork = 15 * time.Minute

// Allowance returns the budget for a task's work at another portal: the budget of the question, within
// the limits of the conversation. The runtime calls it before the request.
func (s *Service) Allowance(ctx context.Context, t task.Task) (task.Budget, error) {
	set, _, err := s.store.SettingsOf(ctx, t.ConversationID)
	if err != nil {
		return task.Budget{}, err
	}
	// Questions of agents and of other portals stand in conversations with settings that no person has chosen. They have the
	// bounds of the question that led to them.
	if t.Budget.IsSet() && (t.Face == faceAgent || t.Face == FaceRelay || t.CallerKind == string(ident.Portal)) {
		set.Turns = MaxSettings.Turns
	}
	// Each answer of the chain so far (t.Hop) and the answer of this task count as one turn.
	return t.Budget.CombineWith(task.Budget{Calls: max(set.Turns-1-t.Hop, 0), Until: clock.Now().Add(longestWork),
		Bytes: int64(set.Budget)}), nil
}

// checkBudget returns a fault with task.ErrBudget if a set budget has no time or too few bytes left.
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

package team

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/team/flow"
)

// spendWait bounds the time for which a driver waits until the cost of its model is stored.
const spendWait = 10 * time.Second

// Spend adds the cost of a model that was asked in a durable task to the goal for which that task works. It does
// nothing for other tasks. It returns when the cost is stored, so that the end of a task never comes before its cost.
func (s *Service) Spend(ctx context.Context, taskID string, tokens, money int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), spendWait)
	defer cancel()
	clientID, callerID, err := s.Conversations.RootOf(ctx, taskID)
	if err != nil || clientID == "" {
		return err
	}
	id, n, ok := parseQuestion(clientID)
	if !ok {
		return nil
	}
	g, err := s.Store.GoalByID(ctx, id)
	if err == nil && g.OwnerID == callerID {
		err = s.passEvent(ctx, g, flow.Event{Kind: flow.Spent, Task: n,
			Cost: &flow.Cost{Talk: n == 0, Tokens: tokens, Money: money}})
		if err == nil && g.ParentID != "" {
			err = s.raiseCosts(ctx, g)
		}
	}
	if fault.Is(err, fault.NotFound) {
		return nil // the goal was deleted
	}
	return err
}

// raiseCosts adds the costs of a team to the goals above it, also if they no longer wait for it.
func (s *Service) raiseCosts(ctx context.Context, g Goal) error {
	for range MaxDepth {
		v, err := s.readView(ctx, g, 0)
		if err != nil || g.ParentID == "" {
			return err
		}
		above, err := s.Store.GoalByID(ctx, g.ParentID)
		if err != nil {
			return err
		}
		attempt, err := strconv.Atoi(g.Key[strings.LastIndexByte(g.Key, '/')+1:])
		if err != nil {
			return err
		}
		if err := s.passEvent(ctx, above, flow.Event{Kind: flow.Spent, Task: g.ParentTask, Attempt: attempt,
			Costs: []flow.Cost{withTalk(v.State.Talk), v.State.Work}}); err != nil {
			return err
		}
		g = above
	}
	return nil
}

// Experience is the cost of the last goals of an account: the least, the middle and the most of them.
type Experience struct {
	Goals               int
	Least, Middle, Most flow.Cost
	// ByModel is true if a model leads the teams of the account.
	ByModel bool
}

// experienceGoals is the number of goals that Experience looks at: those that ended, among the last ones.
const experienceGoals = 20

// Experience returns the cost of the actor's last goals, for an estimate of the next one.
func (s *Service) Experience(ctx context.Context, actor ident.Actor) (Experience, error) {
	if err := checkRead(actor); err != nil {
		return Experience{}, err
	}
	x := Experience{ByModel: s.Speaker != nil && s.Speaker.HasModel(actor.ID)}
	list, err := s.Store.GoalsOf(ctx, actor.ID, "", experienceGoals)
	if err != nil {
		return Experience{}, err
	}
	var costs []flow.Cost
	for _, g := range list {
		if g.State != "concluded" {
			continue
		}
		v, err := s.readView(ctx, g, 0)
		if err != nil {
			return Experience{}, err
		}
		costs = append(costs, flow.Cost{Tokens: v.State.Talk.Tokens + v.State.Work.Tokens,
			Money: v.State.Talk.Money + v.State.Work.Money})
	}
	if x.Goals = len(costs); x.Goals > 0 {
		slices.SortFunc(costs, func(a, b flow.Cost) int { return cmp.Compare(a.Tokens, b.Tokens) })
		x.Least, x.Middle, x.Most = costs[0], costs[len(costs)/2], costs[len(costs)-1]
	}
	return x, nil
}

// parseQuestion returns the goal and the task of a question's client id (attemptID, answerID, turnID); task 0 for a
// turn of the talk.
func parseQuestion(clientID string) (goalID string, n int, ok bool) {
	words := strings.Split(clientID, "/")
	if len(words) < 4 || words[0] != "goal" || !ident.ValidID(words[1]) {
		return "", 0, false
	}
	if words[2] == "turn" {
		return words[1], 0, true
	}
	n, err := strconv.Atoi(words[2])
	return words[1], n, err == nil && n > 0
}

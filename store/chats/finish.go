package chats

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/task"
	"agentsite/store/agents"
	"agentsite/store/engine"
	"agentsite/store/quotas"
	"agentsite/store/tasks"
)

// finishing holds the stored values of a task that Finish needs.
type finishing struct {
	State      string `db:"state"`
	AgentID    string `db:"agent_id"`
	CreatedAt  int64  `db:"created_at"`
	MessageSeq int64  `db:"message_seq"`
	RootSeq    int64  `db:"root_seq"`
	Hop        int    `db:"hop"`
	Replaces   int64  `db:"replaces"`
	CallerKind string `db:"caller_kind"`
	CallerID   string `db:"caller_id"`
	Pushed     bool   `db:"pushed"`
	Owned      bool   `db:"owned"` // the agent belongs to an account
}

// charged returns the caller for the answer of an agent without owner, so that its bytes count for an
// account; "" for other agents.
func (f finishing) charged() string {
	if f.Owned {
		return ""
	}
	return chargedTo(f.CallerKind, f.CallerID)
}

// root returns the seq of the person's message that the task goes back to, over any number of agents.
func (f finishing) root() int64 {
	if f.RootSeq == 0 {
		return f.MessageSeq
	}
	return f.RootSeq
}

// Finish implements chat.Transcripts. The message, the task's state, its files, further tasks and
// notifications are stored in one transaction.
func (d *Chats) Finish(ctx context.Context, e chat.Ended) (chat.Posted, error) {
	var out chat.Posted
	k := e.Task
	body, err := json.Marshal(e.Message.Parts)
	if err != nil {
		return out, fmt.Errorf("encode message: %w", err)
	}
	artifacts := ""
	if len(k.Artifacts) > 0 {
		b, err := json.Marshal(k.Artifacts)
		if err != nil {
			return out, fmt.Errorf("encode artifacts: %w", err)
		}
		artifacts = string(b)
	}
	err = d.db.Write(ctx, func(t engine.Tx) error {
		out = chat.Posted{}
		var have finishing
		if err := t.Get(&have, `SELECT state, agent_id, created_at, message_seq, root_seq, hop, replaces, caller_kind, caller_id, pushed, (SELECT owner_id IS NOT NULL FROM agents WHERE id = agent_id) AS owned FROM tasks WHERE id = ?`, k.ID); err != nil {
			return err
		}
		if task.State(have.State).Terminal() {
			return fault.New(fault.Conflict, "The task has ended already: %s.", have.State)
		}
		m := e.Message
		// Only an answer can replace an answer; a failure is shown beside it.
		replaces := k.State == task.Completed && m.Kind == chat.Text && have.Replaces > 0
		if replaces {
			if err := t.Get(&replaces, `SELECT EXISTS (SELECT 1 FROM messages WHERE conversation_id = ? AND seq = ? AND sender_kind = 'agent')`,
				m.ConversationID, have.Replaces); err != nil {
				return err
			}
		}
		if replaces {
			m.Target = have.Replaces
		}
		m, err := d.appendMessage(t, m, have.charged(), string(body))
		if err != nil {
			return err
		}
		out.Message = m
		if replaces {
			if err := markReplaced(t, m.ConversationID, have.Replaces, m.Seq); err != nil {
				return err
			}
		}
		if err := useFiles(t, e.Files, m.ConversationID, m.Seq, nil); err != nil {
			return err
		}
		if err := t.Send(`UPDATE tasks SET state = ?, reason = ?, answer_seq = ?, artifacts = ?, updated_at = ?, direct = ?, caller_group = '' WHERE id = ?`,
			string(k.State), k.Reason, m.Seq, artifacts, clock.Milli(k.UpdatedAt), k.Direct, k.ID); err != nil {
			return err
		}
		if k.State.Terminal() {
			if err := dropCheckpoint(t, k.ID); err != nil {
				return err
			}
		}
		if _, busy := e.Message.RetryAfter(); !busy { // A busy agent did not fail.
			if err := agents.CountEnd(t, have.AgentID, have.CreatedAt, k.State, k.UpdatedAt); err != nil {
				return err
			}
		}
		if len(e.Ask) > 0 {
			if out.Tasks, out.Held, err = d.askFurther(t, e, have, m.Seq); err != nil {
				return err
			}
		}
		if err := d.hooks.NotifyMessage(t, m); err != nil {
			return err
		}
		told := k
		told.CallerKind, told.CallerID = have.CallerKind, have.CallerID
		if err := d.hooks.NotifyTask(t, told, m, have.Pushed); err != nil {
			return err
		}
		return tasks.DequeueWork(t, tasks.TopicTask, k.ID)
	})
	if err == nil {
		d.words.wordless.addRoom(out.Message.ConversationID)
	}
	return out, err
}

// dropCheckpoint deletes the checkpoint of a task that ended, because it may contain messages that are
// deleted later. Those of kinds a2a, peer and builtin stay, because they hold only the context elsewhere or a goal.
func dropCheckpoint(t engine.Tx, taskID string) error {
	return t.Send(`UPDATE tasks SET long_checkpoint = '',
			checkpoint = CASE WHEN EXISTS (SELECT 1 FROM agents a WHERE a.id = tasks.agent_id AND a.kind IN ('a2a', 'peer', 'builtin')) THEN checkpoint ELSE '' END
		WHERE id = ? AND (checkpoint <> '' OR long_checkpoint <> '')`, taskID)
}

// markReplaced records that newer is the regenerated form of the answer seq.
func markReplaced(t engine.Tx, conversationID string, seq, newer int64) error {
	return t.Send(`UPDATE messages SET newer_seq = ? WHERE conversation_id = ? AND seq = ? AND sender_kind = 'agent'`, newer, conversationID, seq)
}

// rootQuery counts the tasks that go back to one message of a person, and the bytes of their answers.
const rootQuery = `SELECT COUNT(*) AS turns, COALESCE(SUM(octet_length(m.body)), 0) AS bytes
	FROM tasks t LEFT JOIN messages m ON m.conversation_id = t.conversation_id AND m.seq = t.answer_seq
	WHERE t.conversation_id = ? AND t.root_seq = ? AND t.root_seq > 0`

// askFurther submits the tasks for the agents that an answer addresses, while the bounds of the root
// message allow it. held is the number of the others.
func (d *Chats) askFurther(t engine.Tx, e chat.Ended, have finishing, seq int64) (asked []task.Task, held int, err error) {
	var spent struct {
		Turns int `db:"turns"`
		Bytes int `db:"bytes"`
	}
	if err := t.Get(&spent, rootQuery, e.Message.ConversationID, have.root()); err != nil {
		return nil, 0, err
	}
	for _, k := range e.Ask {
		if spent.Turns >= e.Turns || spent.Bytes >= e.Budget || d.quotas.CheckAgent(t, k.AgentID, quotas.RowBytes) != nil {
			held++
			continue
		}
		k.RootSeq, k.Hop = have.root(), have.Hop+1
		if k, err = tasks.AskAgent(t, k, seq, "", 0); err != nil {
			return nil, 0, err
		}
		asked = append(asked, k)
		spent.Turns++
	}
	return asked, held, nil
}

// Ask implements chat.Transcripts. A deleted message is a Conflict fault, and one that is no text a
// NotFound fault.
func (d *Chats) Ask(ctx context.Context, k task.Task) (task.Task, error) {
	var out task.Task
	err := d.db.Write(ctx, func(t engine.Tx) error {
		r, err := loadMessage(t, k.ConversationID, k.MessageSeq)
		if errors.Is(err, sql.ErrNoRows) || err == nil && r.Kind != string(chat.Text) {
			return errNoMessage()
		}
		if err != nil {
			return err
		}
		if r.GoneSeq > 0 {
			return errUnsaid()
		}
		var busy int
		if err := t.Get(&busy, `SELECT COUNT(*) FROM tasks WHERE conversation_id = ?`+tasks.ActiveStates+
			` AND agent_id = ? AND message_seq = ?`,
			k.ConversationID, k.AgentID, k.MessageSeq); err != nil {
			return err
		}
		if busy > 0 {
			return fault.New(fault.Conflict, "%s still works on that message.", k.AgentHandle)
		}
		if err := d.quotas.CheckRoom(t, k.CallerKind, k.CallerID, quotas.TaskBytes); err != nil {
			return err
		}
		if err := d.quotas.CheckAgent(t, k.AgentID, quotas.RowBytes); err != nil {
			return err
		}
		out, err = tasks.SubmitTask(t, k, k.MessageSeq)
		return err
	})
	return out, err
}

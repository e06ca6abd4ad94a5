package chats

import (
	"context"
	"encoding/json"
	"fmt"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/task"
	"agentsite/internal/transcript"
	"agentsite/store/agents"
	"agentsite/store/engine"
	"agentsite/store/tasks"
	"agentsite/store/transcripts"
)

// CreateAnswered implements chat.Rooms. It writes the rows of CreateConversation, Append, Claim and
// Finish without the outbox entries that these add and remove: six statements instead of twenty, and one
// flush of the disk instead of four. Instant agents are built in, so the answer counts for the caller.
func (d *Chats) CreateAnswered(ctx context.Context, a chat.Answered) ([]chat.Message, error) {
	c, k := a.Room, a.Task
	said := []chat.Message{a.Question, a.Answer}
	values := make([]any, 0, 2*16)
	var asked int64 // bytes of the question
	head, at := []byte(nil), clock.Milli(c.CreatedAt)
	for i := range said {
		m := &said[i]
		body, err := json.Marshal(m.Parts)
		if err != nil {
			return nil, fmt.Errorf("encode message: %w", err)
		}
		m.ConversationID, m.Seq = c.ID, int64(i+1)
		row := transcripts.Row{Seq: m.Seq, ID: m.ID, SenderKind: m.Sender.Kind, SenderID: m.Sender.ID,
			SenderHandle: m.Sender.Handle, Kind: string(m.Kind),
			TaskID: m.TaskID, TaskState: string(m.TaskState), Reason: m.Reason, CreatedAt: clock.Milli(m.CreatedAt),
			Body: string(body), Salt: transcript.NewSalt()}
		if i == 0 {
			asked = int64(len(body))
		}
		m.Hash = transcript.Chain(head, row.Entry())
		head = m.Hash
		values = append(values, c.ID, row.Seq, row.ID, row.SenderKind, row.SenderID, row.SenderHandle, row.Kind,
			row.Body, row.TaskID, row.TaskState, row.Reason, row.CreatedAt, m.Hash, 0,
			chargedTo(k.CallerKind, k.CallerID), row.Salt)
	}
	question, answer := said[0], said[1]
	ended := clock.Milli(k.UpdatedAt)
	var opened string // id of the conversation that the same message opened before, if any
	post := chat.Post{Message: question, Ask: []task.Task{k}}
	err := d.db.Write(ctx, func(t engine.Tx) (err error) {
		if err := d.checkPost(t, post, asked); err != nil {
			return err
		}
		if a.First != nil {
			if opened, err = tasks.ClaimFirstAsk(t, *a.First); err != nil || opened != a.First.ConversationID {
				return err
			}
		}
		if err := insertRoom(t, c, at, ended, answer.Seq, head); err != nil {
			return err
		}
		if _, err := t.Exec(`INSERT INTO client_ids (conversation_id, sender_id, client_id, seq) VALUES (?, ?, ?, 1), (?, ?, ?, 2)`,
			c.ID, question.Sender.ID, question.ClientID, c.ID, answer.Sender.ID, answer.ClientID); err != nil {
			return err
		}
		if _, err := t.Exec(`INSERT INTO messages (`+saidColumns+
			`, target, charged, salt) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			values...); err != nil {
			return err
		}
		if _, err := t.Exec(`INSERT INTO tasks (id, conversation_id, agent_id, agent_handle, caller_kind, caller_id, caller_handle, message_seq, root_seq, answer_seq,
				state, reason, attempt, face, created_at, updated_at, share, via, budget, direct)
			VALUES (?, ?, ?, ?, ?, ?, ?, 1, 1, 2, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?)`, k.ID, c.ID, k.AgentID, k.AgentHandle,
			k.CallerKind, k.CallerID, k.CallerHandle,
			string(k.State), k.Reason, k.Face, clock.Milli(k.CreatedAt), ended, k.Share, k.Via.String(),
			k.Budget.String(), k.Direct); err != nil {
			return err
		}
		if err := agents.CountCall(t, k); err != nil {
			return err
		}
		for _, m := range said {
			if err := d.hooks.NotifyMessage(t, m); err != nil {
				return err
			}
		}
		return d.hooks.NotifyTask(t, k, answer, false)
	})
	if err != nil {
		return nil, err
	}
	if a.First != nil && opened != a.First.ConversationID {
		return nil, &chat.AskedBefore{ConversationID: opened}
	}
	d.words.wordless.addRoom(c.ID)
	return said, nil
}

// Statements that store a new conversation and its members. No cache has entries to invalidate.
const (
	roomInsert = `INSERT INTO conversations (id, title, created_at, updated_at, last_seq, head_hash, speaks, speaker_id, past, hops, turns, budget, branched_from, branched_seq)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	newMembers = `INSERT INTO members (conversation_id, kind, member_id, handle, role, joined_at, from_seq) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
)

// insertRoom stores a conversation with its settings and members. Zero settings mean
// chat.DefaultSettings. Members see the messages after their FromSeq.
func insertRoom(t engine.Tx, c chat.Conversation, at, updated, lastSeq int64, head []byte) error {
	s := c.Settings
	if s == (chat.Settings{}) {
		s = chat.DefaultSettings
	}
	var hash any // NULL in a conversation without messages
	if head != nil {
		hash = head
	}
	if _, err := t.Exec(roomInsert, c.ID, c.Title, at, updated, lastSeq, hash,
		string(s.Speaks), s.SpeakerID, string(s.Past), s.Hops, s.Turns, s.Budget, c.BranchedFrom,
		c.BranchedSeq); err != nil {
		return err
	}
	for _, m := range c.Members {
		if _, err := t.Exec(newMembers, c.ID, m.Kind, m.ID, m.Handle, m.Role, at, max(m.FromSeq, 0)); err != nil {
			return err
		}
	}
	return nil
}

package api

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/notify"
	"agentsite/internal/task"
)

// taskJSON is a task in A2A 1.0's form, followed by fields of this portal.
type taskJSON struct {
	ID        string          `json:"id"`
	ContextID string          `json:"contextId"`
	Status    taskStatusJSON  `json:"status"`
	Artifacts []task.Artifact `json:"artifacts,omitempty"`
	History   []a2aMessage    `json:"history,omitempty"`

	Agent          string `json:"agent"`
	ConversationID string `json:"conversation_id"`
	State          string `json:"state"`
	Reason         string `json:"reason,omitempty"`
	CreatedAt      string `json:"created_at"`
	UpdatedAt      string `json:"updated_at"`

	*WaitJSON

	Push []pushJSON `json:"push,omitempty"`
}

// WaitJSON is the estimate of when a waiting task starts. Wait is in seconds, Position counts the tasks of the
// same account that wait for the same agent, from 1.
type WaitJSON struct {
	Position int    `json:"position,omitempty"`
	Wait     int64  `json:"waits_s,omitempty"`
	Text     string `json:"turn,omitempty"`
}

// NewWaitJSON returns the wait of a task, nil if it is not known.
func NewWaitJSON(t task.Wait) *WaitJSON {
	if t.Left <= 0 {
		return nil
	}
	return &WaitJSON{t.Before + 1, task.WaitSeconds(t.Left), t.String()}
}

// pushJSON is an address that receives A2A push notifications of a task.
type pushJSON struct {
	Name    string       `json:"name"`
	URL     string       `json:"url"`
	State   notify.State `json:"state"`
	Reason  string       `json:"reason,omitempty"`
	Waiting int          `json:"waiting"`
}

type taskStatusJSON struct {
	State     string      `json:"state"`
	Message   *a2aMessage `json:"message,omitempty"`
	Timestamp string      `json:"timestamp"`
}

type a2aMessage struct {
	MessageID string      `json:"messageId"`
	ContextID string      `json:"contextId"`
	TaskID    string      `json:"taskId"`
	Role      string      `json:"role"`
	Parts     []task.Part `json:"parts"`
}

func (d *chatAPI) newTaskJSON(t task.Task) taskJSON {
	wait, _ := d.tasks.WaitOf(t)
	return taskJSON{WaitJSON: NewWaitJSON(wait), ID: t.ID, ContextID: t.ConversationID, Artifacts: t.Artifacts,
		Status: taskStatusJSON{State: t.State.A2A(), Timestamp: respond.FormatTime(t.UpdatedAt)},
		Agent:  t.AgentHandle, ConversationID: t.ConversationID, State: string(t.State), Reason: t.Reason,
		CreatedAt: respond.FormatTime(t.CreatedAt), UpdatedAt: respond.FormatTime(t.UpdatedAt)}
}

// taskJSON returns a task with its request and answer, as far as the actor may read them.
func (d *chatAPI) taskJSON(r *http.Request, actor ident.Actor, t task.Task) taskJSON {
	j := d.newTaskJSON(t)
	read := func(seq int64, role string) *a2aMessage {
		m, err := d.chat.Message(r.Context(), actor, t.ConversationID, seq)
		if err != nil {
			return nil
		}
		return &a2aMessage{MessageID: m.ID, ContextID: t.ConversationID, TaskID: t.ID, Role: role, Parts: m.Parts}
	}
	if m := read(t.MessageSeq, "ROLE_USER"); m != nil {
		j.History = append(j.History, *m)
	}
	if t.AnswerSeq > 0 {
		j.Status.Message = read(t.AnswerSeq, "ROLE_AGENT")
	}
	// Pushes fails for a token that has only the tasks scope; then the answer leaves the push addresses
	// out.
	if list, err := d.hooks.Pushes(r.Context(), actor, t.ID); err == nil {
		for _, h := range list {
			j.Push = append(j.Push, pushJSON{h.Name, h.URL, h.State, h.Reason, h.Waiting})
		}
	}
	return j
}

func (d *chatAPI) apiTasks(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	limit, err := request.QueryInt(r, "limit", 50)
	if err != nil {
		return err
	}
	if limit == 0 { // the service takes 0 for "no limit given", but a client that sends 0 gets an error
		limit = -1
	}
	q := r.URL.Query()
	list, next, err := d.tasks.List(r.Context(), actor, q.Get("conversation_id"), task.State(q.Get("state")),
		q.Get("cursor"), int(limit))
	if err != nil {
		return err
	}
	out := make([]taskJSON, len(list))
	for i, t := range list {
		out[i] = d.newTaskJSON(t)
	}
	respond.JSON(w, http.StatusOK, map[string]any{"tasks": out, "next_cursor": next})
	return nil
}

func (d *chatAPI) apiTask(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	t, err := d.tasks.Get(r.Context(), actor, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, d.taskJSON(r, actor, t))
	return nil
}

func (d *chatAPI) apiCancelTask(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	t, err := d.tasks.Cancel(r.Context(), actor, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, d.taskJSON(r, actor, t))
	return nil
}

type taskInputBody struct {
	ClientID string      `json:"client_id"`
	Text     string      `json:"text"`
	Parts    []task.Part `json:"parts"`
	Told     []string    `json:"told"`
}

// answeredTaskJSON is a task together with the message that answered the question.
type answeredTaskJSON struct {
	taskJSON
	Seq int64 `json:"seq"`
}

// apiTaskInput sends the input that a task waits for. The input becomes a message in the task's
// conversation, addressed to the task's agent.
func (d *chatAPI) apiTaskInput(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in taskInputBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	t, err := d.tasks.Get(r.Context(), actor, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	if t.State != task.InputRequired && t.State != task.AuthRequired {
		return fault.New(fault.Conflict, "The task does not wait for input: it is %s.", t.State)
	}
	if in.ClientID == "" {
		in.ClientID = ident.NewID()
	}
	if in.Text != "" {
		in.Parts = append([]task.Part{task.TextPart(in.Text)}, in.Parts...)
	}
	done, err := d.chat.Post(r.Context(), actor, t.ConversationID,
		chat.Draft{ClientID: in.ClientID, Parts: in.Parts, Face: doorOf(r), To: t.AgentID, Told: in.Told,
			MustTell: byBrowser(r)})
	if err != nil {
		return err
	}
	t, err = d.tasks.Get(r.Context(), actor, t.ID)
	if err != nil {
		return err
	}
	j := d.taskJSON(r, actor, t)
	respond.JSON(w, http.StatusOK, answeredTaskJSON{j, done.Message.Seq})
	return nil
}

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"time"

	"agentsite/internal/ident"
	"agentsite/internal/record"
)

// stopWait is the maximum wait for an answer to end after Ctrl-C.
const stopWait = 5 * time.Second

// asked is a task that answers a message.
type asked struct {
	ID    string `json:"id"`
	Agent string `json:"agent"`

	ended  bool
	text   string // text of the answer, if the task ended with one
	failed string
}

// sendMessage sends a message and prints the answers as they arrive. It fails if an answer failed. The
// first Ctrl-C stops the answers, the second one ends the program.
func (t *talk) sendMessage(ctx context.Context, text string) error {
	work, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	var s stopper
	pressed, release := signal.NotifyContext(ctx, os.Interrupt)
	defer release()
	defer context.AfterFunc(pressed, func() {
		release() // the next Ctrl-C ends the program
		s.stopTasks(work, t.c, giveUp)
	})()
	body := map[string]any{"client_id": ident.NewID()}
	if parts := t.parts; len(parts) == 0 {
		body["text"] = text
	} else {
		if text != "" {
			parts = append([]part{{Text: text}}, parts...)
		}
		body["parts"], t.parts = parts, nil
	}
	if len(t.knownRemote) > 0 {
		body["told"] = t.knownRemote
	}
	var sent struct {
		Seq   int64   `json:"seq"`
		Tasks []asked `json:"tasks"`
	}
	if err := t.c.callJSON(work, http.MethodPost, "/api/v1/conversations/"+t.room.ID+"/messages", body,
		&sent); err != nil {
		return stoppedOr(pressed, err)
	}
	if len(sent.Tasks) == 0 {
		return errors.New("the message was sent to no agent")
	}
	s.trackTasks(t.room.ID, sent.Tasks)
	err := t.printAnswers(work, sent.Seq, sent.Tasks)
	if err != nil {
		return stoppedOr(pressed, err)
	}
	for _, a := range sent.Tasks {
		if a.failed != "" {
			who := ""
			if len(sent.Tasks) > 1 {
				who = a.Agent + ": "
			}
			fmt.Fprintf(t.e.stderr, "agentsite: %s\n", record.CleanLine(who+a.failed))
			err = errSilent
		}
	}
	return err
}

// stoppedOr returns the error "stopped" if the person pressed Ctrl-C, which caused err; else err.
func stoppedOr(pressed context.Context, err error) error {
	if pressed.Err() != nil && errors.Is(err, context.Canceled) {
		return errors.New("stopped")
	}
	return err
}

// printAnswers prints the answers to the message seq in the order of tasks. Only the first unfinished
// one is printed as it grows.
func (t *talk) printAnswers(ctx context.Context, seq int64, tasks []asked) error {
	at, a := 0, answer{w: t.e.stdout}
	if t.json {
		a.w = nil
	}
	head := func() {
		if len(tasks) > 1 && !t.json {
			fmt.Fprintf(t.e.stderr, "%s:\n", cleanText(tasks[at].Agent))
		}
	}
	head()
	err := t.c.followEvents(ctx, t.room.ID, seq, func(u update) bool {
		if t.json {
			fmt.Fprintln(t.e.stdout, u.raw)
		}
		switch u.Type {
		case "delta":
			if u.TaskID == tasks[at].ID {
				a.addDelta(u.Offset, u.Text)
			}
		case "message":
			markEnded(tasks, u)
			for tasks[at].ended {
				if tasks[at].text != "" {
					a.finishText(tasks[at].text)
				} else {
					a.endLine()
				}
				if at++; at == len(tasks) {
					return false
				}
				a = answer{w: a.w}
				head()
			}
		}
		return true
	})
	if err != nil {
		a.endLine()
	}
	return err
}

// markEnded marks the task whose final message u is, and stores its text or the reason of its failure.
func markEnded(tasks []asked, u update) {
	var ref struct{ ID, State, Reason string }
	if json.Unmarshal(u.Task, &ref) != nil || u.Sender.Kind == "person" || u.Sender.Kind == "guest" {
		return
	}
	for i := range tasks {
		if x := &tasks[i]; x.ID == ref.ID && !x.ended {
			x.ended = true
			if u.Kind == "text" {
				x.text = u.plainText()
			}
			if ref.State != "completed" && ref.State != "input_required" {
				x.failed = ref.State
				if ref.Reason != "" {
					x.failed += ": " + ref.Reason
				}
			}
		}
	}
}

// stopper cancels the tasks of a message after Ctrl-C, which may come before the tasks are known.
type stopper struct {
	mu    sync.Mutex // guards room and tasks
	room  string
	tasks []asked
}

func (s *stopper) trackTasks(room string, tasks []asked) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room = room
	for _, t := range tasks {
		s.tasks = append(s.tasks, asked{ID: t.ID})
	}
}

// stopTasks asks the portal to cancel the tasks. It calls giveUp if there are none yet, if the request
// fails, or if the answer does not end within stopWait.
func (s *stopper) stopTasks(ctx context.Context, c *client, giveUp context.CancelFunc) {
	s.mu.Lock()
	room, tasks := s.room, s.tasks
	s.mu.Unlock()
	if room == "" {
		giveUp()
		return
	}
	late := time.AfterFunc(stopWait, giveUp)
	context.AfterFunc(ctx, func() { late.Stop() })
	for _, t := range tasks {
		err := c.callJSON(ctx, http.MethodPost, "/api/v1/tasks/"+t.ID+"/cancel", nil, nil)
		if e, ok := errors.AsType[apiError](err); ok && e.Kind == "forbidden" { // the scope for tasks is missing
			err = c.callJSON(ctx, http.MethodPost, "/api/v1/conversations/"+room+"/stop", nil, nil)
		}
		if e, ok := errors.AsType[apiError](err); err != nil && (!ok || e.Kind != "conflict") {
			giveUp()
			return
		}
	}
}

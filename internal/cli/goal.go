package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"agentsite/internal/record"
)

func goalFlags(fs *flags) {
	portalFlags(fs)
	fs.BoolVar(&fs.json, "json", false, "print the events and the goal as JSON, one a line")
	fs.BoolVar(&fs.here, "here", false, "take only agents of this portal")
	fs.Var(&fs.members, "member", "an `AGENT` that is in the team; may be repeated")
}

// goalEvent is one event of a goal, with the fields that the terminal uses.
type goalEvent struct {
	Seq   int64  `json:"seq"`
	Kind  string `json:"kind"`
	Agent string `json:"agent"`
	Task  string `json:"task"`
	State string `json:"state"`
	Text  string `json:"text"`
	Move  *struct {
		Kind  string `json:"kind"`
		Text  string `json:"text"`
		Tasks []struct {
			Owner string `json:"owner"`
			Text  string `json:"text"`
		} `json:"tasks"`
	} `json:"move"`
}

// line returns the event as one line for people, "" for one that they need not see.
func (e goalEvent) line() string {
	switch e.Kind {
	case "joined":
		return e.Agent + " joined"
	case "refused", "offline":
		return fmt.Sprintf("%s %s: %s", e.Agent, e.Kind, e.Text)
	case "waits":
		return fmt.Sprintf("task %s asks: %s", e.Task, e.Text)
	case "ended":
		if e.State != "completed" {
			return fmt.Sprintf("task %s %s: %s", e.Task, e.State, e.Text)
		}
		return fmt.Sprintf("task %s completed", e.Task)
	case "moved":
		if e.Move == nil {
			return ""
		}
		var lines []string
		for _, t := range e.Move.Tasks {
			lines = append(lines, fmt.Sprintf("%s gets: %s", t.Owner, t.Text))
		}
		if e.Move.Kind == "say" {
			lines = append(lines, e.Agent+": "+e.Move.Text)
		}
		return strings.Join(lines, "\n")
	}
	return ""
}

// runGoal starts a goal and prints the progress of its team until it ends. An interrupt asks whether to cancel it.
func runGoal(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("goal", args, 1, 1<<10); err != nil {
		return err
	}
	c, err := newClient(ctx, fs)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	body := map[string]any{"goal": strings.Join(args, " ")}
	if len(fs.members) > 0 {
		body["members"] = []string(fs.members)
	}
	if fs.here {
		body["recruit"] = "here"
	}
	var goal struct{ ID string }
	if err := c.callJSON(ctx, http.MethodPost, "/api/v1/goals", body, &goal); err != nil {
		return err
	}
	if err := c.followGoal(ctx, e, goal.ID, fs.json); err != nil {
		stop() // the next interrupt ends the command
		if ctx.Err() == nil || !c.askToCancel(ctx, e, goal.ID) {
			return err
		}
	}
	return c.printGoal(context.WithoutCancel(ctx), e, goal.ID, fs.json)
}

// askToCancel asks after an interrupt whether the goal is to be canceled, and does so. Otherwise the team works on.
func (c *client) askToCancel(ctx context.Context, e env, id string) bool {
	fmt.Fprint(e.stderr, "Cancel the goal? [y/N] ")
	line, _ := bufio.NewReader(e.stdin).ReadString('\n') // without an answer it is not canceled
	if !strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "y") {
		fmt.Fprintf(e.stderr, "The team works on: %s/api/v1/goals/%s\n", c.base, id)
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := c.callJSON(ctx, http.MethodPost, "/api/v1/goals/"+id+"/cancel", nil, nil); err != nil {
		fmt.Fprintf(e.stderr, "agentsite: %s\n", record.CleanLine(err.Error()))
		return false
	}
	return true
}

// followGoal prints the events of a goal until it has ended. After a broken connection it continues at the next event.
func (c *client) followGoal(ctx context.Context, e env, id string, asJSON bool) error {
	after := int64(0)
	for tries := 0; ; tries++ {
		before := after
		err := c.readGoalEvents(ctx, e, id, &after, asJSON)
		if after > before {
			tries = 0
		}
		if _, refused := errors.AsType[apiError](err); err == nil || refused || ctx.Err() != nil || tries > 8 {
			return err
		}
		select {
		case <-time.After(time.Duration(tries+1) * 200 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *client) readGoalEvents(ctx context.Context, e env, id string, after *int64, asJSON bool) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("%s/api/v1/goals/%s/events?after=%d", c.base, id, *after), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.doRequest(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 64<<10), maxAnswer)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		var ev goalEvent
		if err := json.Unmarshal(data, &ev); err != nil {
			return err
		}
		*after = ev.Seq
		if asJSON {
			fmt.Fprintf(e.stdout, "%s\n", data)
		} else if text := ev.line(); text != "" {
			for line := range strings.Lines(text) {
				fmt.Fprintln(e.stdout, record.CleanLine(line))
			}
		}
	}
	return lines.Err()
}

// printGoal prints the end of a goal. It returns errSilent unless the goal has concluded.
func (c *client) printGoal(ctx context.Context, e env, id string, asJSON bool) error {
	resp, err := c.sendJSON(ctx, http.MethodGet, "/api/v1/goals/"+id, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	var goal struct{ State, Reason, Conclusion string }
	if err := json.Unmarshal(b, &goal); err != nil {
		return err
	}
	if asJSON {
		fmt.Fprintf(e.stdout, "%s\n", bytes.TrimSpace(b))
	} else {
		fmt.Fprintf(e.stdout, "\n%s\n", record.CleanLine(strings.TrimSpace(goal.State+" "+goal.Reason)))
		for line := range strings.Lines(goal.Conclusion) {
			fmt.Fprintln(e.stdout, record.CleanLine(line))
		}
	}
	if goal.State != "concluded" {
		return errSilent
	}
	return nil
}

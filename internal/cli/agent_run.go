package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"agentsite/internal/app"
	"agentsite/internal/cli/terminal"
	"agentsite/internal/ident"
	"agentsite/internal/linkwire"
	"agentsite/internal/record"
	"agentsite/internal/team/aware"
	"agentsite/internal/textfile"
	"agentsite/internal/weborigin"
)

// agentRun holds the values of the flags that only `agent run` has.
type agentRun struct {
	name, title, description string
	maxTasks                 int
	team                     bool
}

func agentRunFlags(fs *flags) {
	fs.addSetting(&fs.portal, "portal", "AGENTSITE_PORTAL", "`URL` of the portal to connect to; "+portalDefault)
	fs.addSetting(&fs.token, "token", "AGENTSITE_TOKEN",
		"API `TOKEN` of the account that owns the agent, with the scope agents:write")
	fs.hideDefault("token")
	fs.StringVar(&fs.run.name, "name", "", "`NAME` of the agent; it is registered if there is none")
	fs.StringVar(&fs.run.title, "title", "", "its `TITLE`, when it is registered")
	fs.StringVar(&fs.run.description, "description", "", "its `DESCRIPTION`, when it is registered")
	fs.IntVar(&fs.run.maxTasks, "max-tasks", linkwire.DefaultTasks, "most `N` tasks at once")
	fs.BoolVar(&fs.run.team, "team", false, "the command speaks for itself in teams: implies --json, and a task "+
		"with the field team may be answered with a move")
	fs.BoolVar(&fs.json, "json", false, "give the command the whole task on stdin, as JSON: text, parts, "+
		"history, caller")
}

// runAgentRun connects to a portal as an agent that runs a command for each task. It reconnects after a
// broken connection, until a signal stops it or the portal refuses it.
func runAgentRun(ctx context.Context, e env, fs *flags, args []string) error {
	portal, advice := fs.choosePortal(ctx)
	u, err := url.Parse(weborigin.ASCIIAddress(strings.TrimRight(portal, "/")))
	switch {
	case len(args) == 0:
		return usagef("name the command to run, after --; for example: agentsite agent run --name shout -- tr a-z A-Z")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return usagef("--portal %q: write the portal's address, for example https://portal.example", portal)
	case fs.token == "":
		return missingToken(u.String())
	case fs.run.maxTasks < 1 || fs.run.maxTasks > linkwire.MaxTasks:
		return usagef("--max-tasks: use 1 to %d", linkwire.MaxTasks)
	}
	if err := ident.CheckName(fs.run.name); err != nil {
		return usagef("--name %q: %s", fs.run.name, err)
	}
	if _, err := exec.LookPath(args[0]); err != nil {
		return fmt.Errorf("the command %q cannot be run: %w", args[0], err)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // restores the default, so that a second signal ends the process
	out := &shared{w: e.stderr}
	connected, troubled := false, false
	a := &linkwire.Agent{
		Hello: linkwire.Hello{Name: fs.run.name, Title: fs.run.title, Description: fs.run.description,
			Client: "agentsite/" + app.Release(), MaxTasks: fs.run.maxTasks, Team: fs.run.team},
		Dial: func(ctx context.Context) (*linkwire.Socket, error) {
			return linkwire.Dial(ctx, u.String(), fs.token, nil)
		},
		Work: (&worker{args: args, json: fs.json || fs.run.team, team: fs.run.team, stderr: out,
			env: childEnv(os.Environ())}).runTask,
		Connected: func(w linkwire.Welcome) {
			connected, troubled = true, false
			fmt.Fprintf(out, "%s is connected. Ctrl-C stops it.\n", record.CleanLine(w.Agent))
		},
		Lost: func(err error, wait time.Duration) {
			if !troubled { // report a series of failed attempts only once
				fmt.Fprintf(out, "agentsite: no connection to %s (%s)%s; trying again\n", u,
					record.CleanLine(linkTrouble(err, fs.run.name).Error()), advice)
			}
			troubled = true
		},
	}
	if err := a.Run(ctx); err != nil {
		return linkTrouble(err, fs.run.name)
	}
	if connected {
		fmt.Fprintf(out, "%s is not connected any more.\n", fs.run.name)
	}
	return nil
}

// linkTrouble returns the reason for a failed connection, worded for the person at the terminal.
func linkTrouble(err error, name string) error {
	if code, reason := linkwire.CloseReason(err); code != 0 {
		switch code {
		case linkwire.CodeReplaced:
			return fmt.Errorf("another program has connected as %s, so this one stops; each agent is one program", name)
		case linkwire.CodeRevoked:
			return errors.New("the token, its account or its right to this agent has expired or was revoked")
		}
		if _, why, ok := strings.Cut(reason, ": "); ok {
			reason = why
		}
		return errors.New(cmp.Or(reason, "the portal closed the connection"))
	}
	if r, ok := errors.AsType[*linkwire.Refused](err); ok {
		var body struct {
			Error apiError `json:"error"`
		}
		if json.Unmarshal([]byte(r.Body), &body) == nil && body.Error.Message != "" {
			return body.Error
		}
		return fmt.Errorf("it answered with status %d; is it a portal with linked agents?", r.Status)
	}
	if w, ok := errors.AsType[*linkwire.Error](err); ok {
		return w
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	if errors.Is(err, linkwire.ErrGone) {
		return errors.New("the connection broke")
	}
	return err
}

// childEnv returns the environment for the command without AGENTSITE_ variables, because the command
// must not get the token or the portal's settings.
func childEnv(all []string) []string {
	var out []string
	for _, v := range all {
		if !strings.HasPrefix(v, "AGENTSITE_") {
			out = append(out, v)
		}
	}
	return out
}

// shared is a writer that several goroutines may use.
type shared struct {
	mu sync.Mutex // guards w
	w  io.Writer
}

// Write writes p in one piece, so that lines of concurrent writers do not mix.
func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

// worker runs a command for each task, with the text of the task on stdin or, if json is set, the whole
// task.
type worker struct {
	args   []string
	json   bool
	team   bool // it answers a task of a team with a move
	stderr io.Writer
	env    []string
}

// killWait is the time between the signal that stops a command and its kill. It also bounds the time
// for which child processes may hold the command's output open after its end.
const killWait = 3 * time.Second

func (w *worker) runTask(ctx context.Context, t linkwire.Task, out *linkwire.Answer) linkwire.Done {
	cmd := exec.CommandContext(ctx, w.args[0], w.args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = killWait
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.Env = append(w.env[:len(w.env):len(w.env)], "AGENTSITE_TASK="+t.Task, "AGENTSITE_CONVERSATION="+t.Conversation,
		"AGENTSITE_CALLER="+strings.TrimSuffix(t.Caller.Kind+":"+t.Caller.Handle, ":"))
	in := []byte(t.Text)
	document, question := findTeam(t.Parts)
	if document != nil {
		t.Text = question // without the document, which is a part as well
	}
	if w.json {
		b, err := json.Marshal(commandTask{t, document})
		if err != nil {
			return linkwire.Done{State: linkwire.Failed, Reason: "The task could not be encoded."}
		}
		in = b
	}
	if !bytes.HasSuffix(in, []byte("\n")) {
		in = append(in, '\n')
	}
	cmd.Stdin = bytes.NewReader(in)
	text := &textWriter{answer: out, cmd: cmd, hold: w.team && document != nil}
	last := &lastLine{w: w.stderr}
	cmd.Stdout, cmd.Stderr = text, last
	err := cmd.Start()
	if err == nil {
		err = cmd.Wait()
		if ctx.Err() != nil || text.full {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // end child processes that are still running
		}
	}
	undecoded := text.flushRest()
	if move := text.takeMove(); move != nil && err == nil && ctx.Err() == nil {
		return linkwire.Done{State: linkwire.Completed, Parts: []linkwire.Part{{Data: move}}}
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // the command succeeded, but a child process keeps its output open
	}
	switch {
	case text.full:
		return linkwire.Done{State: linkwire.Failed,
			Reason: fmt.Sprintf("The answer is longer than %d KiB and was cut.", linkwire.MaxText>>10)}
	case ctx.Err() != nil:
		return linkwire.Done{State: linkwire.Failed, Reason: "The agent's program was stopped by its owner."}
	case undecoded != nil && err == nil:
		return linkwire.Done{State: linkwire.Failed, Reason: undecodedReason}
	case err != nil:
		return linkwire.Done{State: linkwire.Failed,
			Reason: cmp.Or(last.lastText(), fmt.Sprintf("The agent's program ended with %s.", err))}
	}
	return linkwire.Done{State: linkwire.Completed}
}

// textWriter sends the output of a command as the text of an answer while it arrives. Line breaks are held back,
// because those at the end of the output are dropped. Output that is not UTF-8 is sent at its end, see outputText.
type textWriter struct {
	answer *linkwire.Answer
	cmd    *exec.Cmd
	output outputText
	plain  terminal.Filter
	wait   []byte
	full   bool // the answer is at its maximum size, and the command was killed
	hold   bool // nothing is sent before the end, because it may be a move
	held   strings.Builder
}

// commandTask is a task on the stdin of a command. Team is the document of the extension for teams, nil for others.
type commandTask struct {
	linkwire.Task
	Team json.RawMessage `json:"team,omitempty"`
}

// findTeam returns the document for an agent that speaks for itself in a team, and the text in it; nil for none.
func findTeam(parts []linkwire.Part) (document json.RawMessage, text string) {
	for _, p := range parts {
		var in struct {
			Team json.RawMessage `json:"team"`
		}
		var d aware.Document
		if p.MediaType == aware.MediaType && json.Unmarshal(p.Data, &in) == nil && json.Unmarshal(in.Team, &d) == nil {
			return in.Team, d.Text
		}
	}
	return nil, ""
}

// takeMove ends the hold. It returns the output if that is a move, {"move":{…}}; other output is sent as the answer.
func (w *textWriter) takeMove() json.RawMessage {
	said := w.held.String()
	w.hold = false
	w.held.Reset()
	var in struct {
		Move json.RawMessage `json:"move"`
	}
	if json.Unmarshal([]byte(said), &in) == nil && in.Move != nil {
		return json.RawMessage(said)
	}
	if said != "" {
		w.putText(said)
	}
	return nil
}

// putText adds text to the answer. If the answer is full, it kills the command and drops further output.
func (w *textWriter) putText(s string) {
	if w.hold && w.held.Len()+len(s) <= linkwire.MaxText {
		w.held.WriteString(s)
		return
	}
	if err := w.answer.Text(s); err != nil {
		w.endFull()
	}
}

// endFull kills the command, because its answer has the maximum size.
func (w *textWriter) endFull() {
	if !w.full {
		w.full = true
		_ = syscall.Kill(-w.cmd.Process.Pid, syscall.SIGKILL)
	}
}

// maxHeld is the maximum number of line breaks that are held back.
const maxHeld = 64

// Write implements io.Writer. It never fails, because an error would stop the reading of the output.
func (w *textWriter) Write(p []byte) (int, error) {
	if w.full {
		return len(p), nil
	}
	text, ok := w.output.add(p)
	if !ok {
		w.endFull()
	}
	w.sendText(text)
	return len(p), nil
}

// sendText takes a piece of the output in UTF-8, and sends what is final.
func (w *textWriter) sendText(p []byte) {
	w.wait = append(w.wait, w.plain.Add(p)...)
	n := len(w.wait)
	for n > 0 && len(w.wait)-n < maxHeld && (w.wait[n-1] == '\n' || w.wait[n-1] == '\r') {
		n--
	}
	if n > 0 {
		s := string(w.wait[:n])
		w.wait = append(w.wait[:0], w.wait[n:]...)
		w.putText(s)
	}
}

// flushRest sends the text that is held back, without line breaks at the end. It is called after the
// last Write. It returns errUndecoded if a part of the output was not sent because it is no text.
func (w *textWriter) flushRest() error {
	var err error
	if !w.full {
		var text []byte
		text, err = w.output.end()
		w.sendText(text)
	}
	w.wait = append(w.wait, w.plain.Flush()...)
	if s := strings.TrimRight(string(w.wait), "\r\n"); s != "" {
		w.putText(s)
	}
	w.wait = nil
	return err
}

// lastLine is a writer that passes everything on to w and keeps the last line that is not empty, which
// is the likely reason of a failure.
type lastLine struct {
	w          io.Writer
	now, whole []byte
}

// Write passes p on to w and updates the last line, of which at most linkwire.MaxReason bytes are kept.
func (l *lastLine) Write(p []byte) (int, error) {
	for _, c := range p {
		switch {
		case c == '\n':
			if len(bytes.TrimSpace(l.now)) > 0 {
				l.whole = append(l.whole[:0], l.now...)
			}
			l.now = l.now[:0]
		case len(l.now) < linkwire.MaxReason:
			l.now = append(l.now, c)
		}
	}
	return l.w.Write(p)
}

// lastText returns the last line as the reason of a failure, "" without one or if its encoding is not known.
func (l *lastLine) lastText() string {
	line := l.whole
	if len(bytes.TrimSpace(l.now)) > 0 {
		line = l.now
	}
	text, err := textfile.Decode(line, len(line) == linkwire.MaxReason)
	if err != nil {
		return ""
	}
	return linkwire.Line(terminal.LastText(text), linkwire.MaxReason)
}

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	driver "agentsite/agentruntime/link"
	door "agentsite/handlers/link"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/linkwire"
	"agentsite/internal/task"
	"agentsite/internal/team/aware"
	"agentsite/internal/testing/agenttest"
)

// linked is the real door and driver, with one account whose token is good.
type linked struct {
	*driver.Driver
	url  string
	seen chan string
}

// Observe implements driver.Observer.
func (l *linked) Observe(_ context.Context, id string, v hub.Liveness) {
	l.seen <- id + " " + string(v.State)
}

// ada is the only account. Every agent that is not named taken is hers.
type ada struct{}

func (ada) AuthenticateProgram(_ *http.Request, token string) (ident.Actor, error) {
	if token != ident.TokenPrefix+"good" {
		return ident.Actor{}, fault.New(fault.Unauthenticated, "Your token is\nunknown \u001b[31mhere.")
	}
	return ident.Actor{Kind: ident.Person, ID: "ada"}, nil
}

func (ada) Guard(ctx context.Context, _ ident.Actor) (context.Context, func()) {
	return context.WithCancel(ctx)
}

func (ada) Claim(_ context.Context, a ident.Actor, h linkwire.Hello) (task.Attached, error) {
	if h.Name == "taken" {
		return task.Attached{}, fault.New(fault.Conflict, "The name taken is taken.")
	}
	return task.Attached{AgentID: h.Name, Name: h.Name, OwnerID: a.ID}, nil
}

func (ada) Holds(context.Context, ident.Actor, task.Attached) error { return nil }

func newLinked(t *testing.T) *linked {
	l := &linked{seen: make(chan string, 100)}
	l.Driver = driver.New(driver.Config{Portal: "portal.example", Observer: l})
	srv := httptest.NewServer(door.New(door.Config{Callers: ada{}, Accounts: ada{}, Agents: ada{}, Attach: l.Driver}))
	t.Cleanup(func() { l.Close(); srv.Close() })
	l.url = srv.URL
	return l
}

// serve runs `agent run` with a command until the test ends, and waits until
// it is connected.
func (l *linked) serve(t *testing.T, args ...string) (stop func() int) {
	t.Helper()
	stderr := &shared{w: t.Output()}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	go func() {
		done <- Run(ctx, append([]string{"agent", "run", "--portal", l.url, "--token", ident.TokenPrefix + "good", "--name", "worker"}, args...), os.Getenv, strings.NewReader(""), stderr, stderr)
	}()
	once := sync.OnceValue(func() int { cancel(); return <-done })
	t.Cleanup(func() { once() })
	select {
	case <-l.seen:
	case <-time.After(2 * time.Minute):
		t.Fatal("it does not connect")
	}
	return once
}

func (l *linked) ask(ctx context.Context, text string) (task.Result, *agenttest.Recorder, error) {
	rec := &agenttest.Recorder{}
	res, err := l.Run(ctx, question(text), rec)
	return res, rec, err
}

func question(text string) task.Call {
	return task.Call{TaskID: ident.NewID(), ConversationID: ident.NewID(), MessageID: ident.NewID(), Attempt: 1, Agent: task.Target{ID: "worker", Name: "worker"},
		Caller: task.Caller{Kind: "person", Handle: "bob"}, Parts: []task.Part{task.TextPart(text)}, History: []task.Turn{{Speaker: "bob", Parts: []task.Part{task.TextPart("before")}}}}
}

func (l *linked) want(t *testing.T, text string, state task.State, answer, reason string) {
	t.Helper()
	res, rec, err := l.ask(t.Context(), text)
	if err != nil || res.State != state || task.PlainText(res.Parts) != answer || res.Reason != reason || rec.Shown() != answer {
		t.Errorf("%q: %s %.100q %q %v, shown %.100q; want %s %.100q %q", text, res.State, task.PlainText(res.Parts), res.Reason, err, rec.Shown(), state, answer, reason)
	}
}

func TestAgentRun_AnswersAreWhatTheCommandSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script, ask string
		state             task.State
		answer, reason    string
	}{
		{"repeats", `cat`, "Grüße,\n  世界", task.Completed, "Grüße,\n  世界", ""},
		{"a line is complete", `read line; printf %s "$line!"`, "one", task.Completed, "one!", ""},
		{"line breaks at the end go", `printf 'a\n\nb\r\n\n\n'`, "x", task.Completed, "a\n\nb", ""},
		{"nothing", `true`, "x", task.Completed, "", ""},
		{"no text", `printf 'a\377b\303'`, "x", task.Failed, "a", undecodedReason},
		{"Latin-1", `printf 'Die Stra\337e ist gesperrt, '; sleep 0.1; printf 'f\344hrt langsam \374ber die Br\374cke.\n'`, "x",
			task.Completed, "Die Straße ist gesperrt, fährt langsam über die Brücke.", ""},
		{"UTF-16 with a mark", `printf '\377\376h\0i\0\344\0\n\0'`, "x", task.Completed, "hiä", ""},
		{"UTF-8 with a mark", `printf '\357\273\277hi'`, "x", task.Completed, "hi", ""},
		{"a cut character at the end", `printf 'Gr\303\274\303'`, "x", task.Failed, "Grü", undecodedReason},
		{"two encodings", `printf 'Gr\303\274\337e'`, "x", task.Failed, "Grü", undecodedReason},
		{"a zero byte", `printf 'a\000b\n'`, "x", task.Completed, "ab", ""},
		{"fails and says why in Latin-1", `printf 'Der Schl\374ssel f\374r die Datei wurde nicht gefunden\n' >&2; exit 1`, "x",
			task.Failed, "", "Der Schlüssel für die Datei wurde nicht gefunden."},
		{"fails and says no text", `printf '\377\201\377\n' >&2; exit 3`, "x", task.Failed, "",
			"The agent's program ended with exit status 3."},
		{"cut characters", `printf '\342'; sleep 0.2; printf '\230'; sleep 0.2; printf '\203'`, "x", task.Completed, "☃", ""},
		{"fails and says why", `echo half; echo first >&2; echo 'disk [31mfull' >&2; exit 1`, "x", task.Failed, "half", "disk [31mfull."},
		{"fails without a word", `exit 7`, "x", task.Failed, "", "The agent's program ended with exit status 7."},
		{"does not read", `exec 0<&-; echo fine`, strings.Repeat("a", 200_000), task.Completed, "fine", ""},
		{"leaves something behind", `sleep 60 & echo fine`, "x", task.Completed, "fine", ""},
		{"who asks", `echo $AGENTSITE_CALLER`, "x", task.Completed, "person:bob", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLinked(t)
			l.serve(t, "--", "sh", "-c", c.script)
			l.want(t, c.ask, c.state, c.answer, c.reason)
		})
	}
}

func TestAgentRun_EndlessAnswerIsCut(t *testing.T) {
	t.Parallel()
	l := newLinked(t)
	l.serve(t, "--", "sh", "-c", "trap '' TERM; yes")
	res, rec, err := l.ask(t.Context(), "go")
	if err != nil || res.State != task.Failed || !strings.Contains(res.Reason, "256 KiB") || len(rec.Shown()) > linkwire.MaxText || len(rec.Shown()) < linkwire.MaxText/2 {
		t.Errorf("%s %q %v, %d bytes", res.State, res.Reason, err, len(rec.Shown()))
	}
}

func TestAgentRun_JSON(t *testing.T) {
	t.Parallel()
	l := newLinked(t)
	l.serve(t, "--json", "--", "cat")
	res, _, err := l.ask(t.Context(), "now")
	var got linkwire.Task
	if err != nil || json.Unmarshal([]byte(task.PlainText(res.Parts)), &got) != nil {
		t.Fatalf("%+v %v", res, err)
	}
	if got.Text != "now" || len(got.History) != 1 || got.History[0].Parts[0].Text != "before" || got.Caller.Handle != "bob" {
		t.Errorf("%+v", got)
	}
}

// A command that speaks for itself gets the document of the team, and its move is one part of data. Other output stays text.
func TestAgentRun_Team(t *testing.T) {
	t.Parallel()
	document, err := aware.EncodeDocument(aware.Document{Kind: aware.Task, You: "worker", Text: "Add 1 and 2.", Legal: []string{aware.Result}})
	if err != nil {
		t.Fatal(err)
	}
	for script, want := range map[string]string{
		`grep -q '"text":"Add 1 and 2.",.*"team":{"kind":"task","you":"worker"' && printf '%s' '{"move":{"kind":"result",' && sleep 0.1 && echo '"text":"3"}}'`: `{"move":{"kind":"result","text":"3"}}`,
		`printf 'plain words\n'`: "plain words", `echo '{"move":'`: `{"move":`, `echo '{"board":1}'`: `{"board":1}`,
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			l := newLinked(t)
			l.serve(t, "--team", "--", "sh", "-c", script)
			call := question("Add 1 and 2.")
			call.Parts = append(call.Parts, task.Part{Data: document, MediaType: aware.MediaType})
			res, err := l.Run(t.Context(), call, &agenttest.Recorder{})
			if err != nil || res.State != task.Completed || len(res.Parts) != 1 || task.PlainText(res.Parts) != want ||
				(len(res.Parts[0].Data) > 0) != strings.HasPrefix(want, `{"move":{`) {
				t.Errorf("%+v, %v", res, err)
			}
			if !strings.HasPrefix(script, "grep") { // outside of teams all output is text
				l.want(t, "What?", task.Completed, want, "")
			}
		})
	}
}

// talking tells of each piece of text.
type talking struct {
	agenttest.Recorder
	said chan string
}

// Text implements task.Sink.
func (r *talking) Text(delta string) {
	r.Recorder.Text(delta)
	r.said <- delta
}

// gone waits until nothing holds the pipe that the path names any more: the
// command and all that it started have ended.
func gone(t *testing.T, path string) {
	t.Helper()
	end := make(chan error, 1)
	go func() {
		b, err := os.ReadFile(path) // until the last writer has closed it
		_ = b
		end <- err
	}()
	select {
	case err := <-end:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * time.Minute):
		t.Error("something of the command lives on")
	}
}

func TestAgentRun_StopReachesAllThatTheCommandStarted(t *testing.T) {
	for _, end := range []string{"the task", "the program"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			l := newLinked(t)
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Skip(err)
			}
			script := fmt.Sprintf("exec 3>%s; sleep 600 & echo begun; trap '' TERM; wait; sleep 600; wait", pipe)
			stop := l.serve(t, "--", "sh", "-c", script)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			rec := &talking{said: make(chan string, 100)}
			done := make(chan task.Result, 1)
			reader := make(chan struct{})
			go func() { defer close(reader); gone(t, pipe) }()
			go func() {
				res, err := l.Run(ctx, question("go"), rec)
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				done <- res
			}()
			<-rec.said
			if end == "the task" {
				cancel()
				<-done
			} else {
				if status := stop(); status != 0 {
					t.Errorf("exit status %d", status)
				}
				if res := <-done; res.State != task.Failed || !strings.Contains(res.Reason, "stopped by its owner") {
					t.Errorf("%+v", res)
				}
			}
			<-reader
		})
	}
}

func TestAgentRun_RefusalsAreOneLine(t *testing.T) {
	t.Parallel()
	l := newLinked(t)
	good := ident.TokenPrefix + "good"
	for _, c := range []struct {
		args   string
		status int
		says   string
	}{
		{"--token x --name ok -- cat", exitFailed, "agentsite: Your token is unknown [31mhere.\n"},
		{"--token " + good + " --name taken -- cat", exitFailed, "agentsite: The name taken is taken.\n"},
		{"--token " + good + " --name ok -- no-such-program", exitFailed, "agentsite: the command \"no-such-program\" cannot be run"},
		{"--token " + good + " --name ok", exitUsage, "agentsite: name the command"},
		{"--token " + good + " -- cat", exitUsage, "agentsite: --name"},
		{"--name ok -- cat", exitUsage, "agentsite: --token"},
		{"--token " + good + " --name ok --max-tasks 0 -- cat", exitUsage, "agentsite: --max-tasks"},
		{"--token " + good + " --name ok --portal nowhere -- cat", exitUsage, "agentsite: --portal"},
	} {
		args := append([]string{"agent", "run", "--portal", l.url}, strings.Fields(c.args)...)
		status, _, stderr := run(t, nil, "", args...)
		if status != c.status || !strings.HasPrefix(stderr, c.says) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: %d %q", c.args, status, stderr)
		}
	}
}

func TestAgentRun_TokenStaysOut(t *testing.T) {
	t.Parallel()
	got := childEnv([]string{"A=b", "AGENTSITE_TOKEN=ags_x", "AGENTSITE_PORTAL=p"})
	if strings.Join(got, " ") != "A=b" {
		t.Error(got)
	}
}

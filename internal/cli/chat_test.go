package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestChat_PutsStdinAfterTheText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("line of a log\n", 10_000)
	for name, c := range map[string]struct{ text, stdin, said, file string }{
		"after the text": {"what is wrong?", "line 1\nline 2\n", "what is wrong?\n\nline 1\nline 2", ""},
		"nothing comes":  {"what is wrong?", " \n", "what is wrong?", ""},
		"long":           {"what is wrong?", long, "", long},
		"no text":        {"what is it?", "\xff\x00\xfe", "", "\xff\x00\xfe"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := script(t, done("ok"))
			code, out, errs := run(t, nil, c.stdin, "chat", "--portal", p.URL, "guide", c.text)
			if code != 0 || out != "ok\n" || errs != "" || p.said[0] != c.said || p.files["stdin.txt"] != c.file {
				t.Fatalf("%d %q %q, said %q, a file of %d bytes", code, out, errs, p.said, len(p.files["stdin.txt"]))
			}
			if c.file != "" {
				if parts := fmt.Sprint(p.bodies[0]["parts"]); parts != "[map[text:"+c.text+"] map[filename:stdin.txt mediaType:text/plain url:/files/stdin.txt]]" {
					t.Errorf("parts %s", parts)
				}
			}
		})
	}
}

func TestChat_SendsFilesAlong(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b.txt")
	if err := os.WriteFile(path, []byte("held"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := script(t, done("ok"))
	code, _, errs := run(t, nil, "", "chat", "guide", "look", "--file", path, "--portal", p.URL)
	if code != 0 || p.files["a b.txt"] != "held" || !strings.Contains(fmt.Sprint(p.bodies[0]["parts"]), "filename:a b.txt") {
		t.Errorf("%d %q %v %v", code, errs, p.files, p.bodies)
	}
	if code, _, errs = run(t, nil, "", "chat", "guide", "look", "--file", path+".not", "--portal", p.URL); code != 1 || !strings.Contains(errs, "no such file") {
		t.Errorf("%d %q", code, errs)
	}
}

func TestChat_GoesOnInAConversation(t *testing.T) {
	t.Parallel()
	one := `{"id":"room","members":[{"kind":"agent","handle":"calc"},{"kind":"person","handle":"ada"}]}`
	two := `{"id":"room","members":[{"kind":"agent","handle":"calc"},{"kind":"agent","handle":"guide"}]}`
	for _, c := range []struct{ room, args, said string }{
		{one, "2 + 2", "2 + 2"}, {one, "calc 2 + 2", "2 + 2"}, {two, "calc 2 + 2", "@calc 2 + 2"}, {two, "@guide who?", "@guide who?"}, {two, "hello calc", "hello calc"},
	} {
		p := script(t, done("ok"))
		p.room = c.room
		code, out, errs := run(t, map[string]string{"AGENTSITE_TOKEN": "ags_x"}, "", append([]string{"chat", "--portal", p.URL, "--conversation", "room"}, strings.Fields(c.args)...)...)
		if code != 0 || out != "ok\n" || len(p.members) != 0 || p.said[0] != c.said {
			t.Errorf("%s: %d %q %q, said %q", c.args, code, out, errs, p.said)
		}
	}
}

func TestChat_TellsGuestsWhereTextGoes(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]string{"": "echo sends your messages to far.example.\n", "ags_x": ""} {
		p := script(t, done("ok"))
		p.room = `{"id":"room","members":[{"kind":"agent","handle":"echo","remote":"far.example"},{"kind":"agent","handle":"calc"}]}`
		code, out, errs := run(t, map[string]string{"AGENTSITE_TOKEN": token}, "", "chat", "--portal", p.URL, "echo", "hi")
		if told := p.bodies[0]["told"]; code != 0 || out != "ok\n" || errs != want || (want == "") != (told == nil) {
			t.Errorf("token %q: %d %q %q, told %v", token, code, out, errs, told)
		}
	}
}

func TestChat_PrintsTheAnswersOfSeveralInTurn(t *testing.T) {
	t.Parallel()
	other := strings.ReplaceAll(done("Second."), `"T"`, `"U"`)
	p := script(t, delta(0, "Fir")+other+delta(3, "st.")+message(3, "text", "completed", "", "First."))
	p.tasks = `[{"id":"T","agent":"calc"},{"id":"U","agent":"guide"}]`
	code, out, errs := run(t, nil, "", "chat", "--portal", p.URL, "calc", "hi")
	if code != 0 || out != "First.\nSecond.\n" || errs != "calc:\nguide:\n" {
		t.Errorf("%d %q %q", code, out, errs)
	}
}

func TestChat_PrintsEventsAsTheyCome(t *testing.T) {
	t.Parallel()
	p := script(t, delta(0, "a")+message(2, "text", "failed", "It broke.", "a"))
	code, out, errs := run(t, nil, "", "chat", "--json", "--portal", p.URL, "calc", "hi")
	lines := strings.Split(out, "\n")
	if code != 1 || len(lines) != 4 || lines[0] != `{"type":"conversation","id":"room"}` || !strings.Contains(lines[1], `"type":"delta"`) || !strings.Contains(lines[2], `"type":"message"`) || errs != "agentsite: failed: It broke.\n" {
		t.Errorf("%d %q %q", code, out, errs)
	}
}

func TestChat_StopsTheAnswerUpstream(t *testing.T) {
	t.Parallel()
	for token, path := range map[string]string{"": "/api/v1/tasks/T/cancel", "narrow": "/api/v1/conversations/room/stop"} {
		ctx, press := context.WithCancel(t.Context())
		p := script(t)
		asked := ""
		p.live = func(w http.ResponseWriter) {
			io.WriteString(w, delta(0, "Half"))
			w.(http.Flusher).Flush()
			press()
			asked = <-p.stopped
			io.WriteString(w, message(2, "text", "canceled", "Stopped.", "Half"))
		}
		var out, errs bytes.Buffer
		code := Run(ctx, []string{"chat", "--portal", p.URL, "calc", "hi"}, func(k string) string {
			return map[string]string{"AGENTSITE_TOKEN": token}[k]
		}, strings.NewReader(""), &out, &errs)
		if code != 1 || asked != path || out.String() != "Half\n" || errs.String() != "agentsite: canceled: Stopped.\n" {
			t.Errorf("token %q: %d, stopped %q, %q %q", token, code, asked, out.String(), errs.String())
		}
	}
}

// TestChat_HasNothingToSay is not told from one that was: scripts would go on.
func TestChat_HasNothingToSay(t *testing.T) {
	t.Parallel()
	p := script(t, done("ok"))
	code, out, errs := run(t, nil, " \n", "chat", "--portal", p.URL, "guide")
	if code != exitUsage || out != "" || !strings.Contains(errs, "there is no message") || len(p.said) != 0 {
		t.Errorf("%d %q %q, said %q", code, out, errs, p.said)
	}
}

func TestIsTerminal_IsNotWhateverIsADevice(t *testing.T) {
	t.Parallel()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if isTerminal(null) {
		t.Error("the empty device is taken for a person")
	}
}

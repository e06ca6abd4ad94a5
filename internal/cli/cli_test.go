package cli

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentsite/internal/app"
)

// run executes a command line as a user would.
func run(t *testing.T, vars map[string]string, stdin string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	status = Run(ctx, args, func(k string) string { return vars[k] }, strings.NewReader(stdin), &out, &errs)
	return status, out.String(), errs.String()
}

func parsed(t *testing.T, vars map[string]string, declare func(*flags), args ...string) (*flags, []string, error) {
	t.Helper()
	fs := newFlags(env{getenv: func(k string) string { return vars[k] }, stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}, command{name: "x"})
	declare(fs)
	rest, err := fs.parseArgs(args)
	return fs, rest, err
}

func TestFlags_BeforeBetweenAndAfterArguments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, rest string }{
		{"--portal http://x a b", "a b"}, {"a --portal http://x b", "a b"}, {"a b --portal=http://x", "a b"}, {"a -portal http://x b", "a b"},
		{"a --portal http://x -- --b -c", "a --b -c"}, {"--portal http://x -- a", "a"}, {"--portal http://x", ""}, {"a --portal http://x 6 - 7", "a 6 - 7"},
	} {
		fs, rest, err := parsed(t, nil, portalFlags, strings.Fields(c.line)...)
		if err != nil || strings.Join(rest, " ") != c.rest || fs.portal != "http://x" {
			t.Errorf("%s: %q %s %v", c.line, rest, fs.portal, err)
		}
	}
	for _, line := range []string{"--nope", "a --nope", "--limit x", "--limit", "a b --portal"} {
		_, _, err := parsed(t, nil, searchFlags, strings.Fields(line)...)
		if _, ok := errors.AsType[errUsage](err); !ok {
			t.Errorf("%s: %v", line, err)
		}
	}
	if _, _, err := parsed(t, nil, portalFlags, "a", "--help"); !errors.Is(err, flag.ErrHelp) {
		t.Error(err)
	}
}

func TestFlags_DefaultsComeFromTheEnvironment(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"AGENTSITE_PORTAL": "http://env", "AGENTSITE_TOKEN": "ags_env", "AGENTSITE_DATA": "/env", "AGENTSITE_URL": "https://env.example",
		"AGENTSITE_ACCOUNTS": "closed", "AGENTSITE_SMTP": "smtp://u:hunter2@x.example", "AGENTSITE_LISTEN": ""}
	fs, _, err := parsed(t, vars, portalFlags)
	if err != nil || fs.portal != "http://env" || fs.token != "ags_env" {
		t.Error(fs.portal, fs.token, err)
	}
	fs, _, err = parsed(t, vars, portalFlags, "--portal", "http://flag", "--token=")
	if err != nil || fs.portal != "http://flag" || fs.token != "" {
		t.Error(fs.portal, fs.token, err)
	}
	fs, _, err = parsed(t, vars, serveFlags, "--data", "/flag")
	want := app.Defaults()
	want.Data, want.URL, want.Accounts, want.SMTP = "/flag", "https://env.example", "closed", "smtp://u:hunter2@x.example"
	if err != nil || !reflect.DeepEqual(fs.cfg, want) {
		t.Errorf("%+v %v", fs.cfg, err)
	}
	for _, c := range []string{"serve", "chat"} {
		status, out, errs := run(t, vars, "", c, "--help")
		if status != 0 || errs != "" || strings.Contains(out, "hunter2") || strings.Contains(out, "ags_env") || !strings.Contains(out, "AGENTSITE_") {
			t.Errorf("%s: %d %s %s", c, status, out, errs)
		}
	}
}

func TestRun_ExitStatusAndOneLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		line   string
		status int
		says   string // in stdout for 0, in stderr else
	}{
		{"help", 0, "user add NAME"}, {"--help", 0, "Usage:"}, {"-h", 0, "Usage:"}, {"version", 0, "schema "}, {"chat --help", 0, "--token"}, {"user add -h", 0, "--admin"},
		{"fly", 2, `no command "fly"`}, {"user", 2, "user add, user list"}, {"user fly high", 2, `"user fly"`},
		{"peers --help", 0, "peers deny PORTAL"}, {"user -h", 0, "let a disabled account"}, {"keys help", 0, "keys COMMAND --help"}, {"agent", 2, "agent run, agent register"}, {"token", 2, "token add"}, {"peers --json", 2, "peers --help"},
		{"chat", 2, "usage: agentsite chat AGENT"}, {"search", 2, "usage: agentsite search [QUERY]"},
		{"serve now", 2, "usage: agentsite serve"}, {"user add", 2, "usage"}, {"user add a b", 2, "usage"}, {"backup", 2, "usage"}, {"restore a b", 2, "usage"}, {"verify a b", 2, "usage"}, {"version 1", 2, "usage"},
		{"token add", 1, "there is no portal in"}, {"token add --user a --expires never", 2, "90d"}, {"search x --limit many", 2, "--help"},
		{"chat a b --portal ftp://x", 2, "--portal"}, {"chat a b --portal nowhere", 2, "--portal"}, {"serve --listen 0.0.0.0:0", 2, "give --url"}, {"--accounts maybe", 2, "open, invite or closed"},
		{"user list", 1, "there is no portal in"}, {"verify", 1, "there is no portal in"}, {"token add --user ada", 1, "there is no portal"}, {"search x --portal http://127.0.0.1:1", 1, "does not answer"},
		{"agent list --portal http://127.0.0.1:1", 2, "AGENTSITE_TOKEN"}, {"agent remove a --portal http://127.0.0.1:1", 2, "http://127.0.0.1:1/account"},
		{"restore nothing.tar", 1, "nothing.tar"}, {"verify nothing.tar", 1, "nothing.tar"},
	} {
		args := strings.Fields(c.line)
		status, out, errs := run(t, map[string]string{"AGENTSITE_DATA": filepath.Join(dir, "none"), "AGENTSITE_LISTEN": "127.0.0.1:0"}, "", args...)
		where := out
		if c.status != 0 {
			where = errs
			if out != "" || strings.Count(errs, "\n") != 1 || !strings.HasPrefix(errs, "agentsite: ") {
				t.Errorf("%s prints %q and %q", c.line, out, errs)
			}
		} else if errs != "" {
			t.Errorf("%s: %q", c.line, errs)
		}
		if status != c.status || !strings.Contains(where, c.says) {
			t.Errorf("%s: %d %q %q", c.line, status, out, errs)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); !os.IsNotExist(err) {
		t.Error("a failed command made a data folder")
	}
	if status, _, errs := run(t, nil, "", "evil\x1b[31m\nline"); status != 2 || strings.ContainsAny(strings.TrimSuffix(errs, "\n"), "\x1b\n") {
		t.Errorf("%d %q", status, errs)
	}
}

func TestRun_AccountsOnAFolder(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"AGENTSITE_DATA": filepath.Join(t.TempDir(), "d")}
	ok := func(stdin string, args ...string) string {
		t.Helper()
		status, out, errs := run(t, vars, stdin, args...)
		if status != 0 || errs != "" {
			t.Fatalf("%v: %d %s", args, status, errs)
		}
		return out
	}
	if out := ok("correct horse battery\r\nrest", "user", "add", "--admin", "Ada", "--password-stdin"); out != "added ada\n" {
		t.Error(out)
	}
	for _, stdin := range []string{"", "\n", "short\n"} {
		if status, _, errs := run(t, vars, stdin, "user", "add", "bob"); status != 1 || !strings.Contains(errs, "password: use 10 to 256 characters") {
			t.Error(status, errs)
		}
	}
	if out := ok("", "user", "list"); !strings.Contains(out, "ada   operator  active") {
		t.Error(out)
	}
	token := func(args ...string) {
		t.Helper()
		if out := ok("", append([]string{"token", "add"}, args...)...); !strings.HasPrefix(out, "ags_") || len(out) != 4+43+1 {
			t.Errorf("%v: %s", args, out)
		}
	}
	token("--user", "ada")
	token("--user", "ada", "--scope", "chat:read", "--scope", "tasks")
	token("--scope", "chat:read", "chat:write", "tasks", "--user", "ada", "--expires", "12h")
	token("--scope=chat:read,chat:write", "--user=ada", "--expires=366d")
	status, _, errs := run(t, vars, "", "token", "add", "--user", "ada", "--scope", "chat:read", "fly")
	if status != 1 || !strings.Contains(errs, `"fly" is no scope`) || strings.Count(errs, "\n") != 1 {
		t.Error(status, errs)
	}
	if out := ok("", "user", "reset", "ada", "--url", "https://x.example/"); !strings.HasPrefix(out, "https://x.example/reset?link=agsl_") {
		t.Error(out)
	}
	if status, out, errs := run(t, vars, "", "user", "disable", "ada"); status != 0 || out != "disabled ada\n" || !strings.Contains(errs, "no operator is left") {
		t.Error(status, out, errs)
	}
	if status, _, errs := run(t, vars, "", "user", "disable", "nob\x1b]0;x\aody"); status != 1 || strings.Contains(errs, "\x1b") {
		t.Errorf("%q", errs)
	}
	if out := ok("", "user", "list"); !strings.Contains(out, "disabled") {
		t.Error(out)
	}
	if out := ok("", "verify"); !strings.Contains(out, "is whole: 1 accounts") {
		t.Error(out)
	}
	if status, _, errs := run(t, vars, "", "user", "remove", "ada", "--yes"); status != 1 || !strings.Contains(errs, "last operator") {
		t.Error(status, errs)
	}
	ok("correct horse battery\n", "user", "add", "carl")
	archive := filepath.Join(t.TempDir(), "carl.zip")
	if out := ok("", "user", "export", "carl", archive); !strings.HasPrefix(out, "exported carl to "+archive) {
		t.Error(out)
	}
	if z, err := zip.OpenReader(archive); err != nil || len(z.File) < 3 {
		t.Error("the archive is damaged", err)
	} else {
		z.Close()
	}
	if status, _, errs := run(t, vars, "", "user", "export", "nobody", archive); status != 1 || !strings.Contains(errs, "no account") {
		t.Error(status, errs)
	}
	if status, _, errs := run(t, vars, "karl\n", "user", "remove", "carl"); status != 2 || !strings.Contains(errs, "nothing was removed") {
		t.Error(status, errs)
	}
	if status, out, errs := run(t, vars, "carl\n", "user", "remove", "carl"); status != 0 ||
		!strings.HasPrefix(out, "removed carl, 0 conversations, 0 agents\n") || !strings.Contains(out, "Backups") {
		t.Error(status, out, errs)
	}
	if status, _, errs := run(t, vars, "correct horse battery\n", "user", "add", "carl"); status != 1 || !strings.Contains(errs, "taken") {
		t.Error(status, errs)
	}
	if status, _, errs := run(t, vars, "", "user", "enable", "carl"); status != 1 || !strings.Contains(errs, "no account") {
		t.Error(status, errs)
	}
	if out := ok("", "verify"); !strings.Contains(out, "is whole: 1 accounts") {
		t.Error(out)
	}
}

func TestScopes_RepeatedSpacedOrWithCommas(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{"--scope a --scope b": "a,b", "--scope a,b": "a,b", "--scope=a, --scope=,b": "a,b", "--scope a b": "a", "": ""} {
		fs, _, err := parsed(t, nil, tokenFlags, strings.Fields(line)...)
		if err != nil || fs.scopes.String() != want {
			t.Errorf("%s: %v %v", line, fs.scopes, err)
		}
	}
}

func TestExpires(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]time.Duration{"90d": 90 * 24 * time.Hour, "12h": 12 * time.Hour, "0.5d": 12 * time.Hour, "366d": 366 * 24 * time.Hour, "8784h": 366 * 24 * time.Hour,
		"1h30m": 90 * time.Minute, "1s": time.Second} {
		fs, _, err := parsed(t, nil, tokenFlags, "--expires", in)
		if got := fs.expires.toDuration(); err != nil || got.Round(time.Microsecond) != want {
			t.Errorf("%s: %v %v", in, got, err)
		}
	}
	for _, in := range []string{"", "0", "0d", "-1d", "-5h", "367d", "8785h", "90", "NaNd", "Infd", "-Infd", "1e300d", "1e-9d", "1ns", "d", "90 d", "1y"} {
		if fs, _, err := parsed(t, nil, tokenFlags, "--expires", in); err == nil {
			t.Errorf("%q is %v", in, fs.expires.toDuration())
		}
	}
	fs, _, err := parsed(t, nil, tokenFlags)
	if err != nil || fs.expires.toDuration() != 90*24*time.Hour || fs.expires.String() != "90d" {
		t.Error(fs.expires, err)
	}
}

func TestVisible_StripsWhatSteersATerminal(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\n\ttext": "plain\n\ttext", "\x1b[31mred\x1b[0m": "[31mred[0m", "\x1b]0;title\a": "]0;title", "a\rb": "ab", "a\bb": "ab", "\u009b31m": "31m", "\x7f": "",
		"\u202eevil\u202c\u2066x\u2069": "evilx", "a\u200eb\u200f\u061c": "ab", "é 翻 👩\u200d💻": "é 翻 👩\u200d💻", "\x00": "",
	} {
		if got := cleanText(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
	if got := cleanText("\xff\x9b31m"); (strings.Contains(got, "\x9b") || strings.Contains(got, "\xff")) && !strings.Contains(got, "\ufffd") {
		t.Errorf("%q", got)
	}
}

func TestPassphrase_FirstLineOfAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for content, want := range map[string]string{"open sesame\nrest\n": "open sesame", "open sesame": "open sesame", "open\r\n": "open", "": "", "\nx": ""} {
		file := filepath.Join(dir, "p")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := passphraseOf(&flags{passphrase: file})
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q %v", content, got, err)
		}
	}
	if _, err := passphraseOf(&flags{passphrase: filepath.Join(dir, "none")}); err == nil {
		t.Error("a missing file is no passphrase")
	}
	if s, err := passphraseOf(&flags{}); s != "" || err != nil {
		t.Error(s, err)
	}
}

func TestChoosePortal_SaysWhatToDoWithoutOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fs := newFlags(env{getenv: func(name string) string {
		if name == "AGENTSITE_DATA" {
			return dir
		}
		return ""
	}}, command{name: "chat"})
	portalFlags(fs)
	address, advice := fs.choosePortal(t.Context())
	if address != usualPortal || !strings.Contains(advice, dir) || !strings.Contains(advice, "agentsite serve") ||
		!strings.Contains(advice, "--portal") {
		t.Errorf("%q %q", address, advice)
	}
	fs.portal = "https://portal.example"
	if address, advice := fs.choosePortal(t.Context()); address != "https://portal.example" || advice != "" {
		t.Errorf("the given portal: %q %q", address, advice)
	}
	c := client{base: "http://portal.invalid", advice: "; start one", http: &http.Client{Transport: refusing{}}}
	if err := c.callJSON(t.Context(), http.MethodGet, "/", nil, nil); err == nil ||
		err.Error() != "the portal http://portal.invalid does not answer: refused; start one" {
		t.Error(err)
	}
}

// refusing is a network that no request passes.
type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("refused") }

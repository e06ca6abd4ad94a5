package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"agentsite/internal/testing/pgtest"
)

// TestManual_PostgreSQL runs the commands of docs/operate/postgresql.md, from the creation of the role to
// the recovery to a point in time, on a server and a portal of its own.
func TestManual_PostgreSQL(t *testing.T) {
	page, err := os.ReadFile("docs/operate/postgresql.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 10 || !strings.Contains(blocks[6][1], "recovery_target_time") {
		t.Fatalf("the page has %d blocks of commands, or recovers elsewhere", len(blocks))
	}
	script := "source ./before.sh\n"
	for i, b := range blocks[:7] {
		if i == 6 {
			script += "source ./meanwhile.sh\n"
		}
		script += b[1]
	}
	// The portal of the page is on the server already, so it moves back first.
	there, cancel, back := blocks[7][1], blocks[8][1], blocks[9][1]
	script += "source ./after.sh\n" + back + "source ./moved-back.sh\n" + there + "if " + cancel + "then exit 1; fi\n" +
		"source ./moved-there.sh\n"
	server := pgtest.NewStopped(t)
	// Names, places and times of the page become those of the test.
	script = strings.NewReplacer(
		"./agentsite serve", "serve", "./agentsite ", "agentsite ",
		"db.example.org", "localhost", "10.0.0.0/8", "127.0.0.1/32", "listen_addresses = '*'", "listen_addresses = 'localhost'",
		"/var/lib/postgresql", server.Dir, "base-$(date +%F)", "base-2026-11-26",
		"'CONF'", "CONF", "2026-11-26 17:05:00+00", "$target",
	).Replace(script)
	rules := "local all,replication postgres trust\n" // all others by the rule that the page adds
	// Debian's package names certificates of its own in its settings.
	for name, text := range map[string]string{"pg_hba.conf": rules,
		"postgresql.conf": "ssl_cert_file = '/nowhere/cert.pem'\nssl_key_file = '/nowhere/key.pem'\n"} {
		if err := server.WriteFile(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/postgresql",
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, "HOME="+e.WorkDir, "SERVER="+server.Dir, fmt.Sprintf("PGPORT=%d", server.Port))
			return os.WriteFile(filepath.Join(e.WorkDir, "page.sh"), []byte(script), 0o600)
		},
	})
}

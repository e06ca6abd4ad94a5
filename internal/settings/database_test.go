package settings

import (
	"fmt"
	"strings"
	"testing"
)

func TestDatabase_IsAURLOfPostgreSQL(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"": true, "postgres://db/agentsite": true, "postgresql://u:secret@db:5433/agentsite?sslmode=verify-full": true,
		"postgres:///agentsite?host=/var/run/postgresql": true, "mysql://u:secret@db/x": false, "postgres://": false,
		"host=db password=secret": false, "/var/lib/secret.db": false, "postgres://u:secret@db:port/x": false,
	} {
		c := Defaults()
		c.Database = text
		_, err := c.Parse()
		if (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil && (strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "postgres://")) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestRedacted_HidesTheDatabasePassword(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"postgres://ada:secret@db/x?sslmode=verify-full":     "postgres://ada@db/x?sslmode=verify-full",
		"postgres://db/x?user=ada&password=secret":           "postgres://db/x?user=ada",
		"postgres://db/x?sslpassword=secret&sslmode=disable": "postgres://db/x?sslmode=disable",
		"postgres://a%3Asecret:secret@db:bad port/x":         "…",
		"": "",
	} {
		if got := HidePassword(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		c := Defaults()
		c.Database = text
		if line := fmt.Sprint(Settings{Config: c}.Redacted()...); strings.Contains(line, "secret") {
			t.Errorf("%q: %s", text, line)
		}
	}
}

func TestKeyFile_IsOutsideTheDataFolder(t *testing.T) {
	t.Parallel()
	for file, ok := range map[string]bool{
		"": true, "/etc/agentsite/portal.key": true, "data.key": true, "../portal.key": true,
		"data/portal.key": false, "./data/x/../portal.key": false,
	} {
		c := Defaults()
		c.Data, c.KeyFile = "data", file
		if _, err := c.Parse(); (err == nil) != ok {
			t.Errorf("%q: %v", file, err)
		}
	}
}

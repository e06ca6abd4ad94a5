package postgres

import (
	"log/slog"
	"testing"

	"agentsite/internal/testing/pgtest"
)

// A server must notice soon that the machine of a portal is gone, because another one waits for its lock.
func TestOpen_LetsTheServerNoticeALostMachine(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), pgtest.NewDatabase(t), Portal(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	for name, want := range map[string]string{"tcp_keepalives_idle": "30", "tcp_keepalives_interval": "10", "tcp_keepalives_count": "3"} {
		var got string
		if err := d.conn.GetContext(t.Context(), &got, `SELECT current_setting($1)`, name); err != nil || got != want {
			t.Errorf("%s: %s %v", name, got, err)
		}
	}
}

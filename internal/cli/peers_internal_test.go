package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

func TestCalm_SaysTheSameAndSteersNothing(t *testing.T) {
	t.Parallel()
	const name = "a\u009b31mb\u0085c\u007fd\u202ee\u2066 é"
	raw := `{"name":"` + name + "\"}\n"
	out := escapeControls(raw)
	if strings.ContainsFunc(out, func(r rune) bool { return r != '\n' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) {
		t.Errorf("%q", out)
	}
	var p peer
	if err := json.Unmarshal([]byte(out), &p); err != nil || p.Name != name {
		t.Errorf("%q, %v", p.Name, err)
	}
}

// A folder that the line names is not exchanged for a portal of the environment:
// decisions would be made at another portal.
func TestPeers_NamedFolderCountsMoreThanTheEnvironment(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"AGENTSITE_PORTAL": "http://127.0.0.1:1", "AGENTSITE_TOKEN": "ags_env"}
	folder := t.TempDir()
	if _, _, stderr := run(t, vars, "", "peers", "list", "--data", folder); !strings.Contains(stderr, folder) {
		t.Errorf("not of the folder: %s", stderr)
	}
	if _, _, stderr := run(t, vars, "", "peers", "list"); !strings.Contains(stderr, "127.0.0.1:1") {
		t.Errorf("not of the portal: %s", stderr)
	}
	if status, _, stderr := run(t, nil, "", "peers", "list", "--data", folder, "--portal", "http://127.0.0.1:1"); status != exitUsage || !strings.Contains(stderr, "use one of them") {
		t.Errorf("%d %s", status, stderr)
	}
}

func TestPeer_SaysWhatKeepsThePortalsApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		peer peer
		want string
	}{
		{peer{}, ""},
		{peer{Reason: "It does not\nanswer."}, "It does not answer."},
		{peer{Bars: "denied", Words: "Go\x1b away."}, "It refuses this portal (denied): Go away."},
		{peer{Reason: "Silent.", Bars: "pending", Words: "Wait."}, "Silent. It refuses this portal (pending): Wait."},
	} {
		if got := c.peer.refusalReason(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.peer, got, c.want)
		}
	}
}

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The receiver that the manual shows takes what the specification of Standard
// Webhooks gives as its example, and nothing else. It is left out where there
// is no Python, unless the environment says that there must be.
func TestWebhooks_SnippetTellsTheGenuine(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, ok := strings.Cut(string(page), "```python\n")
	code, _, closed := strings.Cut(code, "```")
	if !ok || !closed || !strings.Contains(code, "def genuine(") || strings.Count(code, "\n") > 10 {
		t.Fatalf("the manual shows %q", code)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		if strings.Contains(os.Getenv("AGENTSITE_TEST_REQUIRE"), "python3") {
			t.Fatal(err)
		}
		t.Skip("python3 is not here")
	}
	code += `
secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'
headers = {"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330", "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}
assert not genuine(secret, headers, body), "an old one"
time.time = lambda: 1614265331
assert genuine(secret, headers, body)
assert genuine(secret, headers | {"webhook-signature": "v1,AAAA " + headers["webhook-signature"]}, body), "while keys change"
assert not genuine(secret, headers, body + b" ")
assert not genuine(secret, headers | {"webhook-id": "msg_x"}, body)
assert not genuine("whsec_AAAA", headers, body)
`
	file := filepath.Join(t.TempDir(), "receiver.py")
	if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), python, "-I", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

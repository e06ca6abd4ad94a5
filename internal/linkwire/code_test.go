package linkwire

import (
	"testing"

	"github.com/coder/websocket"
)

// A program comes back after some ends and stays away after others: docs/link.md.
func TestCode_OfEveryReason(t *testing.T) {
	for reason, want := range map[string]websocket.StatusCode{
		ReasonReplaced: CodeReplaced, ReasonRevoked: CodeRevoked,
		ReasonRestart: websocket.StatusServiceRestart, ReasonProve: websocket.StatusServiceRestart,
	} {
		if got := closeCode(reason); got != want {
			t.Errorf("%q closes with %d, want %d", reason, got, want)
		}
	}
}

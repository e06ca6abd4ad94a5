package handlers

import (
	"log/slog"
	"testing"

	"agentsite/handlers/markup"
	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/task"
)

// What cannot be encoded, whatever goes wrong with it, is left out: it is
// encoded where a panic would end the process.
func TestEncoded_APanicLeavesOneOut(t *testing.T) {
	t.Parallel()
	d := &Door{hub: hub.New(hub.Ports{}, hub.Config{Portal: "portal.test"}), markup: markup.New(), log: slog.New(slog.DiscardHandler)}
	good := chat.Update{Message: &chat.Message{Seq: 1, Kind: chat.Text, Parts: []task.Part{task.TextPart("hi")}}}
	for _, form := range []int{plainFrame, htmlFrame, plainEvent, htmlEvent} {
		want := string(d.encoded(form, []chat.Update{good}))
		if got := string(d.encoded(form, []chat.Update{{}, good})); got != want || want == "" {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

package live

import (
	"log/slog"
	"testing"

	"agentsite/handlers/address"
	"agentsite/handlers/markup"
	"agentsite/handlers/pages"
	"agentsite/handlers/pages/message"
	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/task"
)

// What cannot be encoded, whatever goes wrong with it, is left out: it is
// encoded where a panic would end the process.
func TestEncoded_APanicLeavesOneOut(t *testing.T) {
	t.Parallel()
	log, renderer, agents := slog.New(slog.DiscardHandler), markup.New(), hub.New(hub.Ports{}, hub.Config{Portal: "portal.test"})
	site := pages.NewSite(address.Portal{}, nil, agents, nil, renderer, log)
	d := New(nil, nil, nil, message.New(agents, site, renderer, log), nil, log)
	good := chat.Update{Message: &chat.Message{Seq: 1, Kind: chat.Text, Parts: []task.Part{task.TextPart("hi")}}}
	for _, form := range []int{plainFrame, htmlFrame, plainEvent, htmlEvent} {
		want := string(d.encodeAll(form, []chat.Update{good}))
		if got := string(d.encodeAll(form, []chat.Update{{}, good})); got != want || want == "" {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

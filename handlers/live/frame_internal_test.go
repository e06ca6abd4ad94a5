package live

import (
	"log/slog"
	"strings"
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
	site := pages.NewSite(address.Portal{}, nil, agents, nil, nil, renderer, log)
	d := New(nil, nil, nil, message.New(agents, nil, site, renderer, log), nil, log)
	good := chat.Update{Message: &chat.Message{Seq: 1, Kind: chat.Text, Parts: []task.Part{task.TextPart("hi")}}}
	for _, form := range []int{plainFrame, htmlFrame, plainEvent, htmlEvent} {
		want := string(d.encodeAll(form, []chat.Update{good}))
		if got := string(d.encodeAll(form, []chat.Update{{}, good})); got != want || want == "" {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A socket that ends for an unknown field says which one.
func TestHandleFrame_NamesTheUnknownField(t *testing.T) {
	t.Parallel()
	f := &frameReader{}
	for frame, want := range map[string]string{
		`{"type":"typing","sequence":1}`:                       "sequence: is not a field here; did you mean seq?",
		`{"Type":"typing"}`:                                    "Type: is not a field here; did you mean type?",
		`{"type":"typing","type":"read"}`:                      notUnderstood,
		`{"type":"read","to":"x"}`:                             "to: is not a field here; the fields are type, seq",
		`{"` + strings.Repeat("ä", 200) + `":1,"type":"read"}`: strings.Repeat("ä", 40) + "…: is not a field here; the fields are ty",
	} {
		if got := f.handleFrame(t.Context(), []byte(frame)); got != want || len(got) > maxReason {
			t.Errorf("%s: %q, want %q", frame, got, want)
		}
	}
}

package templates

import (
	"strings"
	"testing"
)

// The open chat shows its work itself, and its row would keep the dots after the answer. Other rows have them.
func TestChatsBeside_OnlyOtherChatsAreAnswering(t *testing.T) {
	rows := []ConversationRow{{ID: "open", Working: true}, {ID: "other", Working: true}, {ID: "quiet"}}
	v := ConversationView{ID: "open", Beside: ChatsBeside{Groups: []ChatGroup{{Name: "Today", Rows: rows}}}}
	var b strings.Builder
	if err := chatsBeside(v).Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	_, open, _ := strings.Cut(b.String(), `href="/chat/open"`)
	open, other, found := strings.Cut(open, `href="/chat/other"`)
	other, quiet, _ := strings.Cut(other, `href="/chat/quiet"`)
	for name, c := range map[string]struct {
		row   string
		works bool
	}{"open": {open, false}, "other": {other, true}, "quiet": {quiet, false}} {
		if !found || strings.Contains(c.row, "is answering") != c.works {
			t.Errorf("%s: %s", name, c.row)
		}
	}
}

package message

import (
	"testing"

	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// What an agent said stays when its portal is shut out, or forgotten.
func TestSpeakers_OfPortalsThatAreNotShown(t *testing.T) {
	d := &Renderer{hub: hub.New(hub.Ports{}, hub.Config{Portal: "here.example"})}
	who := d.Speakers(t.Context(), ident.Actor{})
	got := who(chat.Sender{Kind: "agent", ID: "p1gone/1", Handle: "ghost@gone.example"}).Provenance
	if got.Portal != "gone.example" || got.Verified || got.Live != string(hub.Unknown) {
		t.Errorf("%+v", got)
	}
}

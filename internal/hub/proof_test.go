package hub_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// witness finds what it was told is there.
type witness struct {
	mu     sync.Mutex               // guards tokens
	tokens map[string]bool          // origin and token
	signed map[string]hub.Described // signed cards by endpoint
}

func (w *witness) HasToken(_ context.Context, origin, token string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tokens[origin+" "+token] {
		return nil
	}
	return fault.New(fault.Invalid, "There is no token at %s.", origin)
}

func (w *witness) SignedCard(_ context.Context, t hub.Target) (hub.Described, error) {
	if card, ok := w.signed[t.Endpoint]; ok {
		return card, nil
	}
	return hub.Described{}, fault.New(fault.Invalid, "The card is not signed.")
}

// Nobody need wait for a check to be told what is shown of an address.
func TestPublish_SaysWhatIsProvedAtFirst(t *testing.T) {
	t.Parallel()
	w := open(t)
	kind := hub.Link
	a, err := w.Publish(t.Context(), w.ada, hub.Draft{Name: ptr("dialer"), Description: ptr("Dials in."), Kind: &kind})
	if err != nil || a.Proof.State != hub.Hosted {
		t.Errorf("%+v %v", a.Proof, err)
	}
	for kind, want := range map[hub.Kind]string{hub.Builtin: hub.Hosted, hub.Prompt: hub.Hosted, hub.A2A: hub.Unproven, hub.OpenAI: hub.Unproven, hub.MCP: hub.Unproven} {
		if got := hub.FirstProof(kind).State; got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
	}
}

func TestProve_SignedCardProvesOnlyWhatItSays(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	w.reader.says = hub.Described{Name: "signed", Title: "Bank", Description: "Helps.", Kind: hub.A2A, Endpoint: "https://bank.example/a2a",
		Config: json.RawMessage(`{"binding":"JSONRPC","version":"1.0"}`), Skills: []hub.Skill{{ID: "pay", Name: "Pay"}}}
	w.witness.signed["https://bank.example/a2a"] = w.reader.says
	w.publish(w.ada, hub.Draft{Endpoint: ptr("https://bank.example"), Title: ptr("Your bank, send your PIN")})
	_, err := w.Proofs.Prove(ctx, w.ada, "signed")
	kind(t, "other words than the card's", err, fault.Invalid)
	_, err = w.Update(ctx, w.ada, "signed", hub.Draft{Title: ptr("Bank")})
	must(t, err)
	a, err := w.Proofs.Prove(ctx, w.ada, "signed")
	if err != nil || a.Proof.Method != hub.ProofCard || a.Proof.State != hub.Proved {
		t.Fatalf("%+v, %v", a.Proof, err)
	}
	if a, err = w.Update(ctx, w.ada, "signed", hub.Draft{Limits: &hub.Limits{PerDay: 5}}); err != nil || a.Proof.State != hub.Proved {
		t.Errorf("a limit ended the proof: %+v, %v", a.Proof, err)
	}
	if a, err = w.Update(ctx, w.ada, "signed", hub.Draft{Description: ptr("Send your PIN.")}); err != nil || a.Proof.State != hub.Unproven {
		t.Errorf("other words kept the proof: %+v, %v", a.Proof, err)
	}
}

func TestProve_TokenOrCard(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	a := w.publish(w.ada, draft("helper"))
	if a.Proof.State != hub.Unproven {
		t.Errorf("at first: %+v", a.Proof)
	}
	_, err := w.Proofs.Prove(ctx, w.ada, "helper")
	kind(t, "nothing there", err, fault.Invalid)

	// Another's token proves nothing for Ada.
	w.witness.tokens["https://models.example "+w.Proofs.OwnerToken(w.bob)] = true
	_, err = w.Proofs.Prove(ctx, w.ada, "helper")
	kind(t, "another's token", err, fault.Invalid)
	if w.Proofs.OwnerToken(w.ada) == w.Proofs.OwnerToken(w.bob) || !strings.HasPrefix(w.Proofs.OwnerToken(w.ada), "agentsite-owner=") || w.Proofs.OwnerToken(ident.Actor{}) != "" {
		t.Error("tokens are not told apart")
	}
	w.witness.tokens["https://models.example "+w.Proofs.OwnerToken(w.ada)] = true
	a, err = w.Proofs.Prove(ctx, w.ada, "helper")
	if err != nil || a.Proof.State != hub.Proved || a.Proof.Method != hub.ProofToken || a.Proof.Origin != "https://models.example" {
		t.Fatalf("%+v, %v", a.Proof, err)
	}
	page, err := w.Search(ctx, ident.Actor{}, hub.Query{Text: "helper", Proofs: []string{hub.Proved}})
	if err != nil || len(page.Results) != 1 {
		t.Errorf("the search does not know the proof: %v", err)
	}
	if a, err = w.Update(ctx, w.ada, "helper", hub.Draft{Title: ptr("Same place")}); err != nil || a.Proof.State != hub.Proved {
		t.Errorf("an edit elsewhere ended the proof: %+v, %v", a.Proof, err)
	}
	if a, err = w.Update(ctx, w.ada, "helper", hub.Draft{Endpoint: ptr("https://evil.example/v1")}); err != nil || a.Proof.State != hub.Unproven {
		t.Errorf("the proof went along to another address: %+v, %v", a.Proof, err)
	}
	if a, err = w.Update(ctx, w.ada, "helper", hub.Draft{Endpoint: ptr("https://models.example/v1")}); err != nil || a.Proof.State != hub.Unproven {
		t.Errorf("the proof came back by itself: %+v, %v", a.Proof, err)
	}
	if _, err = w.Proofs.Prove(ctx, w.ada, "helper"); err != nil {
		t.Fatal(err)
	}
	// The token was Ada's: a new owner starts anew.
	must(t, w.Offer(ctx, w.ada, "helper", "boss"))
	must(t, w.Answer(ctx, w.boss, "helper", true))
	if a, err = w.Get(ctx, w.boss, "helper"); err != nil || a.Proof.State != hub.Unproven {
		t.Errorf("the proof was given away: %+v, %v", a.Proof, err)
	}
}

func TestPublisher_OnlyOfProvedDomains(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	w.publish(w.ada, draft("helper"))
	_, err := w.Update(ctx, w.ada, "helper", hub.Draft{Publisher: ptr("example.org")})
	if fault.As(err).Fields["publisher"] == "" {
		t.Errorf("a domain nobody showed: %v", err)
	}
	for _, bad := range []string{"", "a b", "https://example.org/path", "http://example.org", "ftp://example.org", "me@example.org", "10.0.0.1"} {
		kind(t, bad, w.Proofs.ProveDomain(ctx, w.ada, bad), fault.Invalid)
	}
	kind(t, "no token there", w.Proofs.ProveDomain(ctx, w.ada, "example.org"), fault.Invalid)
	w.witness.tokens["https://example.org "+w.Proofs.OwnerToken(w.ada)] = true
	must(t, w.Proofs.ProveDomain(ctx, w.ada, " HTTPS://Example.org/ "))
	a, err := w.Update(ctx, w.ada, "helper", hub.Draft{Publisher: ptr("Example.org")})
	if err != nil || a.Publisher != "example.org" {
		t.Fatal(a.Publisher, err)
	}
	page, err := w.Search(ctx, ident.Actor{}, hub.Query{Publishers: []string{"example.org"}})
	if err != nil || len(page.Results) != 1 {
		t.Errorf("not found by its publisher: %v", err)
	}
	must(t, w.Proofs.RemoveDomain(ctx, w.ada, "example.org"))
	if a, err = w.Get(ctx, w.ada, "helper"); err != nil || a.Publisher != "" {
		t.Errorf("still published under %q, %v", a.Publisher, err)
	}
}

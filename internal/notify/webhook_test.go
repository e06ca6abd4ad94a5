package notify_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/notify"
)

// kept is a store of webhooks in memory.
type kept struct {
	*shelf
	pushes []notify.Hook
}

func (k *kept) AddWebhook(_ context.Context, h notify.Hook, _ int) error {
	k.hooks[h.ID] = h
	return nil
}

func (k *kept) Webhook(_ context.Context, accountID, id string) (notify.Hook, error) {
	h, ok := k.hooks[id]
	if !ok || h.OwnerID != accountID {
		return notify.Hook{}, fault.New(fault.NotFound, "Not found.")
	}
	return h, nil
}

func (k *kept) SetWebhook(_ context.Context, h notify.Hook) error {
	k.hooks[h.ID] = h
	return nil
}

func (k *kept) PutPush(_ context.Context, h notify.Hook, _ int) (notify.Hook, error) {
	k.pushes = append(k.pushes, h)
	return h, nil
}

func (k *kept) Pushes(context.Context, string) ([]notify.Hook, error) { return k.pushes, nil }

func (k *kept) DropPush(context.Context, string, string) error {
	k.pushes = nil
	return nil
}

func person(id string) ident.Actor { return ident.Actor{Kind: ident.Person, ID: id, Name: id} }

func kind(t *testing.T, what string, err error, want fault.Kind) {
	t.Helper()
	if !fault.Is(err, want) {
		t.Errorf("%s: %v, want %s", what, err, want)
	}
}

func TestWebhook_IsItsOwnersAlone(t *testing.T) {
	t.Parallel()
	k, w := &kept{shelf: newShelf()}, new(wire)
	s := service(k, w, nil)
	address, some := "https://x.example/hook", []notify.Type{notify.MessageSaid, notify.TaskEnded, notify.MessageSaid}
	d := notify.Draft{URL: &address, Events: &some}
	h, secret, err := s.AddWebhook(t.Context(), person("ada"), d)
	if err != nil || !strings.HasPrefix(secret, "whsec_") || h.Host != "x.example" || len(h.Events) != 2 || h.Events[0] != notify.TaskEnded {
		t.Fatalf("%+v %q %v", h, secret, err)
	}
	narrow := person("ada")
	narrow.Narrowed, narrow.Scopes = true, []ident.Scope{ident.ChatWrite, ident.Admin}
	for want, actor := range map[fault.Kind]ident.Actor{fault.NotFound: person("bob"), fault.Unauthenticated: {Kind: ident.Guest, ID: "ada"}, fault.Forbidden: narrow} {
		_, err := s.Webhook(t.Context(), actor, h.ID)
		kind(t, "get", err, want)
		_, err = s.SetWebhook(t.Context(), actor, h.ID, notify.Draft{})
		kind(t, "set", err, want)
		_, err = s.SendTest(t.Context(), actor, h.ID)
		kind(t, "test", err, want)
		_, err = s.Deliveries(t.Context(), actor, h.ID, 10)
		kind(t, "deliveries", err, want)
	}
	if len(w.all()) != 0 {
		t.Error("somebody else had it called")
	}

	a, err := s.SendTest(t.Context(), person("ada"), h.ID)
	if err != nil || a.Status != 200 || a.Error != "" || len(k.attempts) != 1 {
		t.Fatalf("%+v %v", a, err)
	}
	// What a receiver does to be sure.
	g := w.all()[0]
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(g.Header.Get("webhook-id") + "." + g.Header.Get("webhook-timestamp") + "." + g.body))
	if g.Header.Get("webhook-signature") != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) || !strings.Contains(g.body, `"type":"webhook.test"`) {
		t.Errorf("%+v %s", g.Header, g.body)
	}
	w.answer = func(context.Context, got) (int, http.Header, error) { return 0, nil, errors.New("secret inside") }
	if a, err := s.SendTest(t.Context(), person("ada"), h.ID); err != nil || a.Status != 0 || a.Error == "" || strings.Contains(a.Error, "secret") {
		t.Errorf("%+v %v", a, err)
	}
	for range 10 {
		_, err = s.SendTest(t.Context(), person("ada"), h.ID)
	}
	kind(t, "much", err, fault.RateLimited)
}

func TestWebhook_ChecksWhatItIsGiven(t *testing.T) {
	t.Parallel()
	k := &kept{shelf: newShelf()}
	s := service(k, new(wire), nil)
	rob := person("rob")
	rob.Kind = ident.Operator
	for name, c := range map[string]struct {
		url, label string
		events     []notify.Type
		field      string
	}{
		"nowhere":      {"", "", []notify.Type{notify.TaskEnded}, "url"},
		"not https":    {"http://x.example", "", []notify.Type{notify.TaskEnded}, "url"},
		"nothing":      {"https://x.example", "", nil, "events"},
		"strange":      {"https://x.example", "", []notify.Type{"all"}, "events"},
		"hidden":       {"https://x.example", "", []notify.Type{notify.TaskState}, "events"},
		"reports":      {"https://x.example", "", []notify.Type{notify.AgentReported}, "events"},
		"a long label": {"https://x.example", strings.Repeat("x", 61), []notify.Type{notify.TaskEnded}, "label"},
	} {
		d := notify.Draft{URL: &c.url, Label: &c.label, Events: &c.events}
		_, _, err := s.AddWebhook(t.Context(), person("ada"), d)
		if f := fault.As(err); f == nil || f.Kind != fault.Invalid || f.Fields[c.field] == "" {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := s.AddWebhook(t.Context(), rob, d); name == "reports" && err != nil {
			t.Error(err)
		}
	}
	if len(k.hooks) != 1 {
		t.Errorf("%d are kept", len(k.hooks))
	}
}

func TestPush_SealsForOneOriginAndHidesFromOthers(t *testing.T) {
	t.Parallel()
	k := &kept{shelf: newShelf()}
	s := service(k, new(wire), nil)
	d := notify.PushDraft{TaskID: "t1", Version: "1.0", URL: "https://x.example/hook", Token: "tok", Scheme: "Bearer", Credentials: "cred"}
	h, err := s.SetPush(t.Context(), person("ada"), d)
	if err != nil || h.Name == "" || h.OwnerID != "ada" || h.Host != "x.example" {
		t.Fatalf("%+v %v", h, err)
	}
	if !strings.HasPrefix(string(h.Sealed), "push/t1/"+h.Name+" https://x.example\x00") {
		t.Errorf("%q", h.Sealed)
	}
	_, err = s.SetPush(t.Context(), person("bob"), d)
	kind(t, "set", err, fault.NotFound)
	_, err = s.Pushes(t.Context(), person("bob"), "t1")
	kind(t, "list", err, fault.NotFound)
	kind(t, "drop", s.DropPush(t.Context(), person("bob"), "t1", h.Name), fault.NotFound)
	if list, err := s.Pushes(t.Context(), person("ada"), "t1"); err != nil || len(list) != 1 || list[0].ID != h.ID {
		t.Errorf("%+v %v", list, err)
	}
	for field, bad := range map[string]notify.PushDraft{
		"url": {URL: "http://x.example"}, "id": {URL: d.URL, Name: "a\nb"}, "token": {URL: d.URL, Token: "a\r\nX-Evil: yes"},
		"authentication.scheme": {URL: d.URL, Credentials: "x"}, "authentication.credentials": {URL: d.URL, Scheme: "Bearer", Credentials: "ä"},
	} {
		bad.TaskID = "t1"
		_, err := s.SetPush(t.Context(), person("ada"), bad)
		if f := fault.As(err); f == nil || f.Fields[field] == "" {
			t.Errorf("%s: %v", field, err)
		}
		kind(t, field, s.CheckPush(bad), fault.Invalid)
	}
}

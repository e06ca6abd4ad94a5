package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// PushDraft is the caller's request for push notifications of a task. A draft with the Name of an
// earlier one replaces it.
type PushDraft struct {
	TaskID  string
	Name    string // generated if empty; unique within the task
	Version string // version of A2A for the JSON of the bodies
	URL     string
	// Token is sent back in a header of its own. Scheme and Credentials make the Authorization header,
	// if Credentials are not empty.
	Token, Scheme, Credentials string
}

// pushSecret is the content of a push hook's sealed field: the values that authenticate this portal
// to the receiver.
type pushSecret struct {
	Token       string `json:"token,omitempty"`
	Credentials string `json:"credentials,omitempty"`
}

// maxCredential bounds a token and credentials, in bytes.
const maxCredential = 4096

func (d PushDraft) checkDraft(s *Service) error {
	var c fault.Check
	c.Field(d.URL != "", "url", "give the address for the notifications")
	if d.URL != "" {
		err := s.cfg.Addresses.CheckURL(d.URL)
		c.Field(err == nil, "url", "%v", err)
	}
	c.Field(len(d.Name) <= 200 && isPrintable(d.Name), "id", "use at most 200 printable characters")
	c.Field(len(d.Token) <= maxCredential && isPrintable(d.Token), "token", "use at most %d printable characters",
		maxCredential)
	c.Field(len(d.Credentials) <= maxCredential && isPrintable(d.Credentials), "authentication.credentials",
		"use at most %d printable characters", maxCredential)
	c.Field(d.Credentials == "" || d.Scheme != "", "authentication.scheme",
		"name the scheme of the credentials, such as Bearer")
	c.Field(len(d.Scheme) <= 40 && strings.IndexFunc(d.Scheme, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-')
	}) < 0, "authentication.scheme", "is not the name of a scheme of HTTP, such as Bearer")
	return c.Err()
}

// isPrintable reports whether s consists of printable ASCII, so that it may be the value of a
// header field.
func isPrintable(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// SetPush stores a push hook for a task of the actor. It returns a NotFound fault if the task is not
// the actor's.
func (s *Service) SetPush(ctx context.Context, actor ident.Actor, d PushDraft) (Hook, error) {
	if actor.Kind == ident.Portal { // the other portal checks this right at each request
		return Hook{}, fault.New(fault.Forbidden, "Portals get no push notifications; they subscribe to tasks.")
	}
	t, err := s.Chat.OwnTask(ctx, actor, d.TaskID)
	if err != nil {
		return Hook{}, err
	}
	if err := d.checkDraft(s); err != nil {
		return Hook{}, err
	}
	key := actor.ID
	if actor.Kind == ident.Guest {
		key = actor.Addr
	}
	if wait, ok := s.pushes.Allow(key); !ok {
		return Hook{}, fault.Limited(wait, "You requested very many notifications in a short time. Wait a moment.")
	}
	now := clock.Now()
	h := Hook{ID: ident.NewID(), Kind: Push, OwnerKind: t.CallerKind, OwnerID: t.CallerID, TaskID: t.ID, Name: d.Name,
		Version: d.Version,
		URL:     d.URL, Host: hostOf(d.URL), Scheme: d.Scheme, State: Active, CreatedAt: now, UpdatedAt: now}
	if h.Name == "" {
		h.Name = h.ID
	}
	plain, err := json.Marshal(pushSecret{d.Token, d.Credentials})
	if err != nil {
		return Hook{}, fmt.Errorf("encode the secrets of a push hook: %w", err)
	}
	h.Sealed = s.Sealer.Seal(string(plain), h.sealContext())
	return s.Store.PutPush(ctx, h, MaxPushes)
}

// CheckPush checks a draft before its task exists, so that a request with an invalid draft starts
// no task.
func (s *Service) CheckPush(d PushDraft) error { return d.checkDraft(s) }

// Pushes lists the push hooks of one of the actor's tasks, by name. It returns a NotFound fault if
// the task is not the actor's.
func (s *Service) Pushes(ctx context.Context, actor ident.Actor, taskID string) ([]Hook, error) {
	if _, err := s.Chat.Task(ctx, actor, taskID); err != nil {
		return nil, err
	}
	return s.Store.Pushes(ctx, taskID)
}

// DropPush deletes a push hook of one of the actor's tasks. It returns no error if the hook does
// not exist, and a NotFound fault if the task is not the actor's.
func (s *Service) DropPush(ctx context.Context, actor ident.Actor, taskID, name string) error {
	if _, err := s.Chat.OwnTask(ctx, actor, taskID); err != nil {
		return err
	}
	return s.Store.DropPush(ctx, taskID, name)
}

// openSecret decrypts the sealed field of a push hook. It fails if the origin of the hook's URL was
// changed since.
func (s *Service) openSecret(h Hook) (out pushSecret, err error) {
	plain, err := s.Sealer.Open(h.Sealed, h.sealContext())
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal([]byte(plain), &out)
}

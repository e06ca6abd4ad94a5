package liveness_test

import (
	"context"
	"encoding/json"
	"sync"

	"agentsite/internal/hub"
)

// reader describes every address alike.
type reader struct {
	mu   sync.Mutex // guards the rest
	says hub.Described
	err  error
	read []string
}

// set makes the reader say something else from now on.
func (r *reader) set(says hub.Described, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.says, r.err = says, err
}

// reads is how often it was asked.
func (r *reader) reads() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.read)
}

func (r *reader) ReadAs(ctx context.Context, t hub.Target) (hub.Described, error) {
	return r.Read(ctx, t.Endpoint)
}

func (r *reader) Read(_ context.Context, address string) (hub.Described, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read = append(r.read, address)
	return r.says, r.err
}

func ptr[T any](v T) *T { return &v }

// draft is a whole agent, changed by edit.
func draft(name string, edit ...func(*hub.Draft)) hub.Draft {
	d := hub.Draft{Name: &name, Description: ptr("It helps."), Kind: ptr(hub.OpenAI),
		Endpoint: ptr("https://models.example/v1"), Config: map[string]json.RawMessage{"model": json.RawMessage(`"m-1"`)}}
	for _, e := range edit {
		e(&d)
	}
	return d
}

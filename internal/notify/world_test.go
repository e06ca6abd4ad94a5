package notify_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/notify"
	"agentsite/internal/task"
)

// shelf is a store in memory of one hook each with events that wait.
type shelf struct {
	notify.Hooks
	mu       sync.Mutex // guards the rest
	hooks    map[string]notify.Hook
	events   map[string][]notify.Event
	settled  []notify.Outcome
	attempts []notify.Attempt
}

func newShelf(hooks ...notify.Hook) *shelf {
	s := &shelf{hooks: make(map[string]notify.Hook), events: make(map[string][]notify.Event)}
	for _, h := range hooks {
		h.State = notify.Active
		s.hooks[h.ID] = h
	}
	return s
}

func (s *shelf) add(id string, e notify.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hooks[id]; len(s.events[id]) == 0 && h.Failures == 0 {
		h.NextAt = time.Now()
		s.hooks[id] = h
	}
	e.Seq, e.At = int64(len(s.events[id])+len(s.settled)+1), time.Now()
	s.events[id] = append(s.events[id], e)
}

func (s *shelf) DueHooks(_ context.Context, now time.Time, busy notify.Busy, limit int) (due []notify.Hook, later time.Time, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	skip := make(map[string]bool)
	for _, x := range slices.Concat(busy.IDs, busy.Hosts) {
		skip[x] = true
	}
	for id, h := range s.hooks {
		switch {
		case len(s.events[id]) == 0 || h.State != notify.Active:
		case h.NextAt.After(now):
			if later.IsZero() || h.NextAt.Before(later) {
				later = h.NextAt
			}
		case !skip[id] && !skip[h.Host] && !slices.Contains(busy.Owners, h.OwnerID) && (!busy.Trying || h.Failures == 0):
			due = append(due, h)
		}
	}
	slices.SortFunc(due, func(a, b notify.Hook) int { return cmp.Or(a.NextAt.Compare(b.NextAt), strings.Compare(a.ID, b.ID)) })
	return due[:min(len(due), limit)], later, nil
}

func (s *shelf) NextEvent(_ context.Context, id string) (notify.Hook, notify.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hooks[id]
	if len(s.events[id]) == 0 || h.State != notify.Active {
		return notify.Hook{}, notify.Event{}, fault.New(fault.NotFound, "Nothing.")
	}
	return h, s.events[id][0], nil
}

func (s *shelf) Settle(_ context.Context, o notify.Outcome) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled = append(s.settled, o)
	h := s.hooks[o.HookID]
	h.Failures, h.FailingSince, h.NextAt, h.Reason = o.Failures, o.FailingSince, o.NextAt, o.Reason
	if o.Gone {
		s.events[o.HookID] = s.events[o.HookID][1:]
	}
	if o.Failed {
		h.State = notify.Failed
	}
	s.hooks[o.HookID] = h
	return nil
}

func (s *shelf) AddAttempt(_ context.Context, _ string, a notify.Attempt) error {
	s.attempts = append(s.attempts, a)
	return nil
}

func (s *shelf) Attempts(context.Context, string, int) ([]notify.Attempt, error) {
	return s.attempts, nil
}

func (s *shelf) hook(id string) notify.Hook {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hooks[id]
}

// plain seals nothing, and opens only what is bound as it was.
type plain struct{}

func (plain) Seal(p, bound string) []byte { return []byte(bound + "\x00" + p) }

func (plain) Open(b []byte, bound string) (string, error) {
	p, ok := strings.CutPrefix(string(b), bound+"\x00")
	if !ok {
		return "", errors.New("bound to something else")
	}
	return p, nil
}

// people are accounts by id; "gone" is disabled, "rob" an operator.
type people struct{}

func (people) AccountByID(_ context.Context, id string) (account.Account, error) {
	a := account.Account{ID: id, Name: id, Operator: id == "rob"}
	if id == "gone" {
		a.DisabledAt = time.Now()
	}
	return a, nil
}

// talk is a conversation of ada's, and her task.
type talk struct{}

func (talk) Message(_ context.Context, actor ident.Actor, _ string, seq int64) (chat.Message, error) {
	if actor.ID != "ada" {
		return chat.Message{}, fault.New(fault.NotFound, "No.")
	}
	m := chat.Message{Seq: seq, ID: "m1", Kind: chat.Text, Sender: chat.Sender{Kind: "operator", Handle: "bob"}, Parts: []task.Part{task.TextPart("Hello <you>")}}
	if seq == 2 {
		m.Now.UnsaidAt = time.Now()
	}
	if seq == 3 {
		m.Parts = []task.Part{task.TextPart(strings.Repeat("ä", 8000))}
	}
	return m, nil
}

func (talk) Task(_ context.Context, actor ident.Actor, id string) (task.Task, error) {
	if actor.ID != "ada" {
		return task.Task{}, fault.New(fault.NotFound, "No.")
	}
	return task.Task{ID: id, ConversationID: "c1", AgentHandle: "helper", CallerKind: "person", CallerID: "ada", State: task.Completed, Artifacts: []task.Artifact{{ID: "a"}}}, nil
}

func (t talk) OwnTask(ctx context.Context, actor ident.Actor, id string) (task.Task, error) {
	return t.Task(ctx, actor, id)
}

// got is a request as its receiver sees it.
type got struct {
	*http.Request
	body string
	at   time.Time
}

// wire is a network in memory: answer says what a request is answered with.
type wire struct {
	mu     sync.Mutex // guards sent
	sent   []got
	answer func(ctx context.Context, r got) (status int, header http.Header, err error)
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	g := got{r, string(b), time.Now()}
	w.mu.Lock()
	w.sent = append(w.sent, g)
	w.mu.Unlock()
	status, header := http.StatusOK, http.Header{}
	if w.answer != nil {
		if status, header, err = w.answer(r.Context(), g); err != nil {
			return nil, err
		}
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader("never looked at"))}, nil
}

func (w *wire) all() []got {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]got{}, w.sent...)
}

// hook is an active webhook of ada's at a host.
func hook(id, host string) notify.Hook {
	const key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	return notify.Hook{ID: id, Kind: notify.Webhook, OwnerKind: "person", OwnerID: "ada", URL: "https://" + host + "/hook", Host: host, Events: notify.Types,
		Sealed: plain{}.Seal(key, "webhook/"+id)}
}

func service(s notify.Store, w *wire, wake <-chan struct{}) *notify.Service {
	return notify.New(notify.Ports{Store: s, Chat: talk{}, Accounts: people{}, Sealer: plain{}, Transport: w, Wake: wake,
		Push: func(_ context.Context, _ ident.Actor, t task.Task, version string) ([]any, error) {
			return []any{map[string]any{"version": version, "artifacts": len(t.Artifacts)}, map[string]any{"state": t.State}}, nil
		}}, notify.Config{URL: "https://portal.example", Addresses: secureOnly{}})
}

// secureOnly is an address policy that demands https.
type secureOnly struct{}

func (secureOnly) CheckURL(s string) error {
	if !strings.HasPrefix(s, "https://") {
		return errors.New("use https")
	}
	return nil
}

// anyAddress is an address policy without limits.
type anyAddress struct{}

func (anyAddress) CheckURL(string) error { return nil }

// run keeps a service running until the test ends.
func run(t *testing.T, s *notify.Service) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

package acting

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/task"
	"agentsite/internal/weborigin"
)

// Bounds of the tools of one task.
const (
	// sessionTime bounds the validity of a token. The budget of the work may end it earlier.
	sessionTime = 15 * time.Minute
	maxAsked    = 16 // questions to agents, over all runs
	maxCalls    = 64 // calls in one run
	maxOpen     = 8  // questions at the same time
)

// tokenPurpose separates the marks of tokens from other marks of the portal's key.
const tokenPurpose = "agentsite/tools/1"

// Sessions gives agents that run elsewhere the tools find and ask. A token names its task and its end, and has a mark
// that only the portal's key can make of agent, task and end, so that none is stored. It counts only while the task
// runs in this process. Create it with NewSessions; it is safe for concurrent use.
type Sessions struct {
	tools   *Tools
	address string
	mark    func(purpose, subject string) string

	mu   sync.Mutex          // guards open
	open map[string]*session // by the id of the task
}

var _ task.ToolServer = (*Sessions)(nil)

// NewSessions returns the sessions of a portal. address is that of the MCP server with the tools; if it is neither
// https nor on this machine, no agent gets it, because the token would be readable on the way. mark returns a text that
// depends on purpose and subject and that only this portal can compute.
func NewSessions(t *Tools, address string, mark func(purpose, subject string) string) *Sessions {
	if !weborigin.IsConfidential(address) {
		address = ""
	}
	return &Sessions{tools: t, address: address, mark: mark, open: make(map[string]*session)}
}

// toolsOf returns the tools of the portal that the settings of an agent name. Programs that run here call them without
// the address.
func (s *Sessions) toolsOf(a task.Target) []string {
	var elsewhere hub.A2AConfig
	var linked hub.LinkConfig
	var hosted hub.WasmConfig
	switch hub.Kind(a.Kind) {
	case hub.A2A:
		if s.address != "" && json.Unmarshal(a.Config, &elsewhere) == nil && elsewhere.TakesTools &&
			weborigin.IsConfidential(a.Endpoint) {
			return elsewhere.Tools
		}
	case hub.Link: // It connects to the portal's own address, which NewSessions checks.
		if s.address != "" && json.Unmarshal(a.Config, &linked) == nil {
			return linked.Tools
		}
	case hub.Wasm:
		if json.Unmarshal(a.Config, &hosted) == nil {
			return hosted.Tools
		}
	}
	return nil
}

// OpenTools implements task.ToolServer.
func (s *Sessions) OpenTools(ctx context.Context, call task.Call, out task.ToolSink,
	state json.RawMessage) (task.ToolSession, bool, error) {
	names := s.toolsOf(call.Agent)
	if len(names) == 0 {
		return nil, false, nil
	}
	x := &session{owner: s, call: call, out: out, until: clock.Now().Add(sessionTime)}
	if b := call.Budget; b.IsSet() && b.Until.Before(x.until) {
		x.until = b.Until
	}
	if len(state) > 0 {
		if err := json.Unmarshal(state, &x.st); err != nil {
			return nil, false, fault.Wrap(fault.Unavailable, err,
				"The portal cannot read where this was interrupted. Ask again.")
		}
	}
	var err error
	if x.tools, err = s.tools.Offer(ctx, call, names); err != nil {
		return nil, false, err
	}
	if err := x.takeAnswer(ctx); err != nil {
		return nil, false, err
	}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	x.token = s.tokenOf(call, x.until)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[call.TaskID] = x
	return x, true, nil
}

// tokenOf returns the token for a call that is valid until a time: the id of the task, the time in seconds, and the
// mark of agent, task and time.
func (s *Sessions) tokenOf(c task.Call, until time.Time) string {
	end := strconv.FormatInt(until.Unix(), 36)
	return tokenPrefix + c.TaskID + "." + end + "." + s.mark(tokenPurpose, c.Agent.ID+" "+c.TaskID+" "+end)
}

// tokenPrefix begins each token, so that it is recognized where it should not be.
const tokenPrefix = "agtools_"

// ByToken returns the tools that a token is for. All tokens that do not count are the same Unauthenticated fault.
func (s *Sessions) ByToken(token string) (task.ToolCalls, error) {
	none := fault.New(fault.Unauthenticated, "The token is for no task that runs here now.")
	rest, ok := strings.CutPrefix(token, tokenPrefix)
	parts := strings.Split(rest, ".")
	if !ok || len(parts) != 3 {
		return nil, none
	}
	s.mu.Lock()
	x := s.open[parts[0]]
	s.mu.Unlock()
	end, err := strconv.ParseInt(parts[1], 36, 64)
	if x == nil || err != nil || !clock.Now().Before(time.Unix(end, 0)) {
		return nil, none
	}
	want := s.tokenOf(x.call, time.Unix(end, 0))
	if subtle.ConstantTimeCompare([]byte(want), []byte(token)) != 1 || x.ctx.Err() != nil {
		return nil, none
	}
	return x, nil
}

var (
	_ task.ToolSession = (*session)(nil)
	_ task.ToolCalls   = (*session)(nil)
)

// errToolsEnded is the cause of the end of calls that are under way when the task ends.
var errToolsEnded = errors.New("the task has ended")

const askedText = "Not called yet: the person is asked. End your turn with input-required. After the answer you are " +
	"continued, and can call again."

const deniedText = "Not called: the person does not allow this. Do not ask again."

package replication

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/internal/strictjson"
)

const (
	// shortTimeout bounds requests with short answers, longTimeout requests for a page of a log.
	shortTimeout = 10 * time.Second
	longTimeout  = 30 * time.Second
	// maxShort bounds a short answer, such as a head with its card, in bytes.
	maxShort = 256 << 10
	// maxLong bounds a page of a log, in bytes: the limit for the sender plus one record.
	maxLong = federation.MaxAnswer + 128<<10
)

// refusedError is returned when a portal answered with an error status. reason is the machine-readable
// cause, "" if it gave none; after is its Retry-After.
type refusedError struct {
	status int
	reason string
	after  time.Duration
}

func (e *refusedError) Error() string {
	if e.reason == "" {
		return fmt.Sprintf("it answered with status %d", e.status)
	}
	return fmt.Sprintf("it answered with status %d, %s", e.status, e.reason)
}

// errSkipped is returned without sending a request, while a portal that refused one by its rate limit has
// asked for a pause.
var errSkipped = errors.New("it asked to be left alone for a while")

// askPortal sends a signed request to a portal with a known card and returns its answer if the status is
// 200. Another status is a *refusedError. It sends nothing to a portal that the policy denies or that asked
// for a pause. A failed connection marks the portal as down for rankSource.
func (s *Syncer) askPortal(ctx context.Context, portal record.PortalID, method, path string, body any,
	timeout time.Duration, limit int64) (*federation.Answer, error) {
	if !s.Registry.Decide(ctx, portal, "").In {
		return nil, errors.New("rules or policy keep it out")
	}
	if s.peers.isResting(portal) {
		return nil, errSkipped
	}
	origin, err := s.originOf(ctx, portal)
	if err != nil {
		return nil, err
	}
	var b []byte
	if body != nil {
		if b, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	a, err := s.Caller.Do(ctx, origin, portal, method, path, b, limit)
	if outer.Err() != nil {
		return nil, outer.Err()
	}
	if err != nil {
		s.peers.noteDown(portal)
		return nil, err
	}
	s.Met(portal)
	if a.Status == http.StatusOK {
		return a, nil
	}
	e := refusedBy(a)
	if e.reason == string(federation.ReasonLimit) {
		s.peers.noteRest(portal, max(e.after, time.Second))
	}
	return nil, e
}

// Met reports that a portal is reachable. If it did not answer before, heads are compared with it soon. It
// does not block.
func (s *Syncer) Met(portal record.PortalID) {
	if s.peers.noteUp(portal) {
		s.diffSoon(portal)
	}
}

// refusedBy builds the error for an answer with an error status. A body that cannot be decoded gives no
// reason.
func refusedBy(a *federation.Answer) *refusedError {
	e := &refusedError{status: a.Status, after: a.RetryAfter()}
	var v struct {
		Error struct {
			Reason string `json:"reason"`
		} `json:"error"`
	}
	if len(a.Body) <= maxShort && json.Unmarshal(a.Body, &v) == nil && len(v.Error.Reason) <= 40 {
		e.reason = v.Error.Reason
	}
	return e
}

// fetchHead requests the head and the card of portal from source, unverified.
func (s *Syncer) fetchHead(ctx context.Context, portal, source record.PortalID) (t federation.Told, err error) {
	a, err := s.askPortal(ctx, source, http.MethodGet, "/peering/v1/portals/"+string(portal)+"/head", nil, shortTimeout,
		maxShort)
	if err == nil {
		err = readAnswer(a, &t)
	}
	return t, err
}

// readAnswer decodes an answer that must be exactly one JSON value into v, which must be a pointer.
func readAnswer(a *federation.Answer, v any) error {
	if err := strictjson.Check(a.Body); err != nil {
		return fmt.Errorf("the answer has %w", err)
	}
	if err := json.Unmarshal(a.Body, v); err != nil {
		return fmt.Errorf("the answer does not fit the question: %w", err)
	}
	return nil
}

// readLines splits an NDJSON answer into its first line and the others. It returns an error if there are
// more than most others, or if the last line does not end in a newline, which means that the answer was cut
// off.
func readLines(a *federation.Answer, most int) (first []byte, rest [][]byte, err error) {
	body := a.Body
	for len(body) > 0 {
		line, next, ok := bytes.Cut(body, []byte{'\n'})
		if !ok {
			return nil, nil, errors.New("the answer was cut off")
		}
		body = next
		switch {
		case first == nil:
			first = line
		case len(rest) == most:
			return nil, nil, fmt.Errorf("the answer has more than %d lines", most)
		default:
			rest = append(rest, line)
		}
	}
	if first == nil {
		return nil, nil, errors.New("the answer is empty")
	}
	return first, rest, nil
}

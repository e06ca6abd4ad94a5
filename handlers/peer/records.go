package peer

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/internal/federation"
	"agentsite/internal/federation/archive"
	"agentsite/internal/federation/guard"
	"agentsite/internal/limit"
	"agentsite/internal/record"
)

// Limits of each portal on the routes that transfer records, see docs/design/peering.md.
const (
	diffEvery = 10 * time.Second
	diffBurst = 3 // for one comparison at the start and one after a reconnection
	hintEvery = time.Second / 5
	hintBurst = 30
	maxLogs   = 2
	// maxLogBytes bounds the bytes of logs that one portal gets in a minute, before compression. With it,
	// the first synchronization of a million records takes five minutes from one portal, and less from
	// several.
	maxLogBytes = 256 << 20
	maxInt      = 1<<53 - 1
	maxID       = 200 // bytes of an agent's network id
)

// Records answers portals that compare heads and pull logs: heads/diff, heads/hint,
// portals/{id}/… and agents/…. Create it with NewRecords; it is safe for concurrent use.
type Records struct {
	archive  *archive.Archive
	listener federation.Listener
	bytes    *limit.Keyed // limits bytes of logs by portal, in KiB
}

// NewRecords returns Records that read from archive. Signed statements in requests are passed to
// listener.
func NewRecords(archive *archive.Archive, listener federation.Listener) *Records {
	return &Records{archive, listener, limit.New(time.Minute/(maxLogBytes>>10), maxLogBytes>>10, maxCounted)}
}

// Handles is the part of Door to which routes are added.
type Handles interface {
	Handle(method, pattern string, h Handler, l Limits)
}

// Routes adds the routes for heads, logs and agents to a Door, each with its limits.
func (s *Records) Routes(d Handles) {
	logs := Limits{AtOnce: maxLogs}
	d.Handle(http.MethodPost, "/heads/diff", s.serveDiff, Limits{Every: diffEvery, Burst: diffBurst})
	d.Handle(http.MethodPost, "/heads/hint", s.takeHint, Limits{Every: hintEvery, Burst: hintBurst})
	d.Handle(http.MethodGet, "/portals/{id}/head", s.serveHead, Limits{})
	d.Handle(http.MethodGet, "/portals/{id}/summary", s.serveSummary, Limits{AtOnce: maxSummaries})
	d.Handle(http.MethodGet, "/portals/{id}/log", s.serveLog, logs)
	d.Handle(http.MethodGet, "/portals/{id}/leaves", s.serveLeaves, logs)
	d.Handle(http.MethodGet, "/portals/{id}/agents", s.serveAgents, logs)
	d.Handle(http.MethodGet, "/portals/{id}/proof", s.serveProof, logs)
	d.Handle(http.MethodGet, "/agents/{portal}/{id}", s.serveAgent, logs)
}

func refuseMalformed(format string, args ...any) error {
	return federation.Refuse(federation.ReasonMalformed, format, args...)
}

func (s *Records) serveDiff(ctx context.Context, from guard.Asker, _ *http.Request, body []byte) (any, error) {
	s.listener.Met(from.Portal)
	var q federation.DiffQuestion
	if err := Decode(body, &q); err != nil {
		return nil, err
	}
	return s.archive.Diff(ctx, q)
}

func (s *Records) takeHint(ctx context.Context, from guard.Asker, _ *http.Request, body []byte) (any, error) {
	var h federation.Hint
	if err := Decode(body, &h); err != nil {
		return nil, err
	}
	if len(h.Heads) > federation.MaxHints {
		return nil, refuseMalformed("A hint has at most %d heads.", federation.MaxHints)
	}
	s.listener.Met(from.Portal)
	refused, err := s.listener.Take(ctx, from.Portal, h.Heads)
	if err != nil {
		return nil, err
	}
	if refused == nil {
		refused = []federation.Unfit{}
	}
	return struct {
		Refused []federation.Unfit `json:"refused"`
	}{refused}, nil
}

func portalOf(r *http.Request, name string) record.PortalID {
	return record.PortalID(chi.URLParam(r, name))
}

func (s *Records) serveHead(ctx context.Context, _ guard.Asker, r *http.Request, _ []byte) (any, error) {
	told, _, err := s.archive.Head(ctx, portalOf(r, "id"))
	if err != nil {
		return nil, err
	}
	return JSON(fmt.Appendf(nil, `{"card":%s,"head":%s}`+"\n", told.Card, told.Head)), nil
}

// queryNumber returns an integer of the query from lowest to highest, or def if the parameter is missing.
// Any other text is a refusal.
func queryNumber(r *http.Request, name string, def, lowest, highest int64) (int64, error) {
	v := r.URL.Query().Get(name)
	if v == "" {
		return def, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < lowest || n > highest {
		return 0, refuseMalformed("%s is a number from %d to %d.", name, lowest, highest)
	}
	return n, nil
}

func (s *Records) serveLog(ctx context.Context, from guard.Asker, r *http.Request, _ []byte) (any, error) {
	epoch, err := queryNumber(r, "epoch", 0, 0, maxInt)
	if err != nil {
		return nil, err
	}
	after, err := queryNumber(r, "after", 0, 0, maxInt)
	if err != nil {
		return nil, err
	}
	most, err := queryNumber(r, "limit", federation.MaxEntries, 1, federation.MaxEntries)
	if err != nil {
		return nil, err
	}
	return s.sendPage(from, func() (*archive.Page, error) {
		return s.archive.Log(ctx, portalOf(r, "id"), epoch, after, int(most))
	})
}

func (s *Records) serveLeaves(ctx context.Context, from guard.Asker, r *http.Request, _ []byte) (any, error) {
	var first record.Hash
	if v := r.URL.Query().Get("from"); v != "" {
		if err := first.UnmarshalText([]byte(v)); err != nil {
			return nil, refuseMalformed("from is a key, 43 characters of base64url.")
		}
	}
	most, err := queryNumber(r, "limit", federation.MaxEntries, 1, federation.MaxEntries)
	if err != nil {
		return nil, err
	}
	return s.sendPage(from, func() (*archive.Page, error) {
		return s.archive.Leaves(ctx, portalOf(r, "id"), first, int(most))
	})
}

func (s *Records) serveAgents(ctx context.Context, from guard.Asker, r *http.Request, _ []byte) (any, error) {
	list := r.URL.Query()["key"]
	if len(list) == 0 || len(list) > federation.MaxFetch {
		return nil, refuseMalformed("Give 1 to %d keys.", federation.MaxFetch)
	}
	keys := make([]record.Hash, len(list))
	for i, v := range list {
		if err := keys[i].UnmarshalText([]byte(v)); err != nil {
			return nil, refuseMalformed("key is one of an agent, 43 characters of base64url.")
		}
	}
	return s.sendPage(from, func() (*archive.Page, error) { return s.archive.Fetch(ctx, portalOf(r, "id"), keys) })
}

// sendPage answers with a page of a log as lines: the head, then the entries. The limit of bytes is
// checked before the page is read and again with its size.
func (s *Records) sendPage(from guard.Asker, page func() (*archive.Page, error)) (any, error) {
	tooMuch := func(wait time.Duration) error {
		return federation.RefuseFor(federation.ReasonLimit, max(wait, time.Second),
			"Your portal gets at most %d MiB of logs a minute. Continue after a while, or ask other portals.",
			maxLogBytes>>20)
	}
	portion := 1 // each byte counts ten times for a portal that is not verified at its address
	if from.Decision.Unproved {
		portion = 10
	}
	if wait, ok := s.bytes.AllowN(string(from.Portal), portion); !ok {
		return nil, tooMuch(wait)
	}
	p, err := page()
	if err != nil {
		return nil, err
	}
	size := len(p.Head)
	for _, e := range p.Entries {
		size += len(e) + 1
	}
	if wait, ok := s.bytes.AllowN(string(from.Portal), portion*(size>>10)); !ok {
		return nil, tooMuch(wait)
	}
	return Lines{List: append([][]byte{p.Head}, p.Entries...), More: p.More}, nil
}

func (s *Records) serveProof(ctx context.Context, _ guard.Asker, r *http.Request, _ []byte) (any, error) {
	id := r.URL.Query().Get("agent")
	if id == "" || len(id) > maxID {
		return nil, refuseMalformed("agent is the id of an agent in the network.")
	}
	p, err := s.archive.Prove(ctx, portalOf(r, "id"), id)
	if err != nil {
		return nil, err
	}
	p.Card = nil
	return p, nil
}

func (s *Records) serveAgent(ctx context.Context, _ guard.Asker, r *http.Request, _ []byte) (any, error) {
	portal := portalOf(r, "portal")
	p, err := s.archive.Prove(ctx, portal, record.AgentID(portal, chi.URLParam(r, "id")))
	if err != nil {
		return nil, err
	}
	if p.Record == nil {
		return nil, federation.Refuse(federation.ReasonAbsent,
			"This portal has no record of the agent that it may show.")
	}
	return p, nil
}

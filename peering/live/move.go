package live

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

const (
	// pullEvery is the mean interval of pulls from a random portal. A portal that was never asked is asked
	// at once.
	pullEvery = time.Minute
	// pullPages bounds the pages of one pull; the next pull continues.
	pullPages = 16
	pageLimit = 1000
	maxPage   = 4 << 20 // largest page, in bytes
	// moveTimeout bounds one request; movesAtOnce bounds the concurrent ones that send records.
	moveTimeout = 15 * time.Second
	movesAtOnce = 8
	pullsAtOnce = 4 // concurrent pulls from portals that were never asked; others are pulled one at a time
	// maxOutbox bounds the records that wait to be sent. The oldest is dropped; other portals get it by a
	// pull.
	maxOutbox = 512
	// How many portals a record is sent to: all for one that only this portal has and all need, some for a
	// report that others may have too, few for a record that came from another portal.
	allPeers  = 1 << 20
	somePeers = 32
	fewPeers  = 8
)

// parcel is an encoded record in the outbox and the number of portals to send it to.
type parcel struct {
	wire []byte
	to   int
}

// queueRecord queues a record to be sent to that many portals in the next step.
func (s *Service) queueRecord(wire []byte, to int) {
	s.outbox = append(s.outbox, parcel{wire, to})
	if extra := len(s.outbox) - maxOutbox; extra > 0 {
		s.outbox = slices.Delete(s.outbox, 0, extra)
	}
}

// cursor is the number of the last record read from a portal. The numbers restart when that portal loses
// its Replica; it then starts a new epoch of its log.
type cursor struct{ epoch, after int64 }

// moves starts requests to other portals and limits how many run at once.
type moves struct {
	s     *Service
	slots chan struct{}
	pulls chan struct{}
}

func newMoves(s *Service) *moves {
	return &moves{s, make(chan struct{}, movesAtOnce), make(chan struct{}, pullsAtOnce)}
}

// startMoves sends the queued records, and starts a pull if one is due. It does not wait; wg counts its
// goroutines.
func (m *moves) startMoves(ctx context.Context, wg *sync.WaitGroup) {
	s := m.s
	var there []record.PortalID
	peers := *s.peers.Load()
	for id, p := range peers {
		if p.here && p.in && p.origin != "" {
			there = append(there, id)
		}
	}
	m.pushParcels(ctx, wg, peers, there)
	pull := func(id record.PortalID) bool {
		select {
		case m.pulls <- struct{}{}:
		default:
			return false
		}
		wg.Go(func() {
			defer func() { <-m.pulls }()
			s.pullRecords(ctx, id, peers[id])
		})
		return true
	}
	for _, id := range there {
		if s.wasAsked(id) {
			continue
		}
		if !pull(id) {
			return
		}
		s.setCursor(id, cursor{})
	}
	if len(there) > 0 && len(m.pulls) == 0 && !time.Now().Before(s.pullNext) {
		s.pullNext = time.Now().Add(pullEvery/2 + rand.N(pullEvery))
		pull(there[rand.N(len(there))])
	}
}

// wasAsked reports whether a pull from the portal was started since the start of the process.
func (s *Service) wasAsked(id record.PortalID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.cursors[id]
	return ok
}

// setCursor records up to which number the records of a portal were read. It never goes back in one epoch.
func (s *Service) setCursor(id record.PortalID, c cursor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.cursors[id]; ok && old.epoch == c.epoch && old.after > c.after {
		return
	}
	if len(s.cursors) >= maxCursors {
		clear(s.cursors) // all are read again; known records cost no signature checks
	}
	s.cursors[id] = c
}

// pushParcels sends the queued records in batches, each record to portals chosen at random.
func (m *moves) pushParcels(ctx context.Context, wg *sync.WaitGroup, peers map[record.PortalID]peer,
	there []record.PortalID) {
	s := m.s
	if len(there) == 0 || len(s.outbox) == 0 {
		return // keep the records until a portal is reachable
	}
	parcels := make(map[record.PortalID][][]byte)
	for _, p := range s.outbox {
		rand.Shuffle(len(there), func(i, j int) { there[i], there[j] = there[j], there[i] })
		for _, id := range there[:min(p.to, len(there))] {
			parcels[id] = append(parcels[id], p.wire)
		}
	}
	s.outbox = nil
	for id, wires := range parcels {
		wg.Go(func() {
			select {
			case m.slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			defer func() { <-m.slots }()
			for part := range splitBatches(wires) {
				if err := s.postRecords(ctx, id, peers[id], part); err != nil {
					if ctx.Err() == nil {
						s.cfg.Log.Debug("send records to a portal", "portal", id, "error", err)
						s.cfg.Registry.Failed(id, err)
					}
					return
				}
			}
		})
	}
}

// maxBody is the largest request body that portals accept, in bytes.
const maxBody = 256 << 10

// splitBatches yields the records in batches of at most MaxRecords and about maxBody bytes, each for one
// request.
func splitBatches(wires [][]byte) func(yield func([][]byte) bool) {
	return func(yield func([][]byte) bool) {
		for from := 0; from < len(wires); {
			to, size := from, 100
			for to < len(wires) && to-from < MaxRecords && (to == from || size+len(wires[to]) < maxBody) {
				size += len(wires[to]) + 1
				to++
			}
			if !yield(wires[from:to]) {
				return
			}
			from = to
		}
	}
}

func (s *Service) postRecords(ctx context.Context, id record.PortalID, p peer, wires [][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	body := struct {
		Records []json.RawMessage `json:"records"`
	}{}
	for _, w := range wires {
		body.Records = append(body.Records, w)
	}
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	a, err := s.cfg.Caller.Do(ctx, p.origin, id, http.MethodPost, "/peering/v1/attest", b, 64<<10)
	if err != nil {
		return err
	}
	if a.Status == http.StatusOK {
		s.cfg.Registry.Seen(id, a.Took)
	}
	return nil // any answer counts as reached: the portal may refuse single records
}

// pullRecords reads the records that a portal got since the last pull, at most pullPages pages.
func (s *Service) pullRecords(ctx context.Context, id record.PortalID, p peer) {
	s.mu.Lock()
	c := s.cursors[id]
	s.mu.Unlock()
	if c.epoch != p.epoch {
		c = cursor{epoch: p.epoch}
	}
	for range pullPages {
		after, more, err := s.pullPage(ctx, id, p, c.after)
		if err != nil {
			if ctx.Err() == nil {
				s.cfg.Log.Debug("pull records from a portal", "portal", id, "error", err)
			}
			break
		}
		c.after = after
		if !more {
			break
		}
	}
	s.setCursor(id, c)
}

// maxCursors bounds the stored cursors; when it is reached all are dropped.
const maxCursors = 20_000

// pullPage requests the page of records after a number and stores them. next is the last number of the
// page; more is true if another page follows.
func (s *Service) pullPage(ctx context.Context, id record.PortalID, p peer, after int64) (next int64, more bool,
	err error) {
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	path := "/peering/v1/attests?after=" + strconv.FormatInt(after, 10) + "&limit=" + strconv.Itoa(pageLimit)
	a, err := s.cfg.Caller.Do(ctx, p.origin, id, http.MethodGet, path, nil, maxPage+record.MaxWire)
	if err != nil {
		s.cfg.Registry.Failed(id, err)
		return after, false, err
	}
	if a.Status != http.StatusOK {
		return after, false, fmt.Errorf("it answered with status %d", a.Status)
	}
	s.cfg.Registry.Seen(id, a.Took)
	next, wires, err := readPage(a.Body, after)
	if err != nil {
		s.cfg.Registry.Fault(id, "malformed")
		return after, false, err
	}
	for part := range slices.Chunk(wires, MaxRecords) {
		if _, err := s.Take(ctx, id, part); err != nil {
			return after, false, err
		}
	}
	return next, a.Header.Get("Agentsite-More") == "true" && next > after, nil
}

// line is one line of a page: a record and its number at the portal that sends it.
type line struct {
	N      int64           `json:"n"`
	Record json.RawMessage `json:"record"`
}

// readPage decodes a page. The numbers must increase and be larger than after. next is the last number, or
// after if the page is empty.
func readPage(body []byte, after int64) (next int64, wires [][]byte, err error) {
	next = after
	for l := range eachLine(body) {
		var x line
		if err := json.Unmarshal(l, &x); err != nil || len(x.Record) == 0 || x.N <= next || len(wires) >= pageLimit {
			return after, nil, fmt.Errorf("line %d is not a record with a larger number than the line before",
				len(wires)+1)
		}
		next = x.N
		wires = append(wires, x.Record)
	}
	return next, wires, nil
}

// eachLine yields the lines of a body that are not empty.
func eachLine(body []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(body) > 0 {
			l := body
			if i := bytes.IndexByte(body, '\n'); i >= 0 {
				l, body = body[:i], body[i+1:]
			} else {
				body = nil
			}
			if len(l) > 0 && !yield(l) {
				return
			}
		}
	}
}

// After returns the records that arrived in the Replica after a number, for another portal: at most limit
// records and 4 MiB, as NDJSON in the form of docs/design/peering.md. It leaves out records that passesOn
// refuses. more is true if further records may follow.
func (s *Service) After(ctx context.Context, after int64, limit int) (out []byte, more bool, err error) {
	limit = min(max(limit, 1), pageLimit)
	now := clock.Now().UnixMilli()
	peers := *s.peers.Load()
	shows := make(map[record.PortalID]bool)
	show := func(id record.PortalID) bool {
		ok, seen := shows[id]
		if !seen {
			ok = id == s.cfg.Signer.ID() || s.cfg.Registry.Decide(ctx, id, peers[id].origin).Show
			shows[id] = ok
		}
		return ok
	}
	// A page of the Replica may consist of left-out records, so pages are read until the answer is full:
	// its last number is where the next request continues.
	for lines := 0; lines < limit; {
		list, err := s.cfg.Replica.Others(ctx, types, after, limit)
		if err != nil || len(list) == 0 {
			return out, false, err
		}
		for _, n := range list {
			if lines == limit || len(out)+len(n.Wire) > maxPage-64 && lines > 0 {
				return out, true, nil
			}
			after = n.Number
			if r, err := record.Open(s.cfg.Signer.Network(), n.Wire); err != nil || r.Expires <= now ||
				!passesOn(r, show) {
				continue
			}
			out = fmt.Appendf(out, "{\"n\":%d,\"record\":%s}\n", n.Number, n.Wire)
			lines++
		}
		if len(list) < limit {
			return out, false, nil
		}
	}
	return out, true, nil
}

// passesOn reports whether a record is sent to other portals: the policy must allow to display the portal
// that signed it, and for a liveness report also the portal of the agents. The accused of a fork proof does
// not matter.
func passesOn(r *record.Record, show func(record.PortalID) bool) bool {
	if !show(r.Portal) {
		return false
	}
	l, ok := r.Body.(*record.Live)
	return !ok || show(l.Subject)
}

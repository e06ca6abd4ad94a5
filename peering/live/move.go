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
	// pullEvery is the interval at which one random portal is asked for new records. Portals that
	// were never asked come first.
	pullEvery = time.Minute
	// pullPages bounds the pages of one pull.
	pullPages = 16
	pageLimit = 1000
	maxPage   = 4 << 20 // bytes
	// moveTimeout bounds one request.
	moveTimeout = 15 * time.Second
	movesAtOnce = 8
	pullsAtOnce = 4 // of portals that were never asked; 1 for others
	// maxOutbox bounds the records that wait to be sent. The oldest is dropped; other portals pull
	// it later.
	maxOutbox = 512
	// The number of portals that get a record at once: all for one that only this portal has and
	// all need, some for a report that others may have, too, few for a record that came from
	// others.
	allPeers  = 1 << 20
	somePeers = 32
	fewPeers  = 8
)

// parcel is a record to send and the number of portals that get it.
type parcel struct {
	wire []byte
	to   int
}

// queueRecord queues a record for the next step.
func (s *Service) queueRecord(wire []byte, to int) {
	s.outbox = append(s.outbox, parcel{wire, to})
	if extra := len(s.outbox) - maxOutbox; extra > 0 {
		s.outbox = slices.Delete(s.outbox, 0, extra)
	}
}

// cursor is the position up to which the records of a portal were read. The numbers start again
// when the portal loses its Replica, and then its log starts a new epoch.
type cursor struct{ epoch, after int64 }

// moves are the requests in flight.
type moves struct {
	s     *Service
	slots chan struct{}
	pulls chan struct{}
}

func newMoves(s *Service) *moves {
	return &moves{s, make(chan struct{}, movesAtOnce), make(chan struct{}, pullsAtOnce)}
}

// startMoves sends the queued records, and pulls from a portal when it is time.
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

// wasAsked reports whether a portal was asked before.
func (s *Service) wasAsked(id record.PortalID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.cursors[id]
	return ok
}

// setCursor notes the position up to which the records of a portal were read.
func (s *Service) setCursor(id record.PortalID, c cursor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.cursors[id]; ok && old.epoch == c.epoch && old.after > c.after {
		return
	}
	if len(s.cursors) >= maxCursors {
		clear(s.cursors) // they are read again, which costs no signatures
	}
	s.cursors[id] = c
}

// pushParcels sends all queued records in batches, each record to portals chosen at random.
func (m *moves) pushParcels(ctx context.Context, wg *sync.WaitGroup, peers map[record.PortalID]peer,
	there []record.PortalID) {
	s := m.s
	if len(there) == 0 || len(s.outbox) == 0 {
		return // the records wait until a portal is active
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

// maxBody is the size of a request that portals accept, in bytes.
const maxBody = 256 << 10

// splitBatches splits records into requests.
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
	return nil // the portal answered; it may refuse records for its own reasons
}

// pullRecords asks a portal for its records since the last pull.
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

// maxCursors bounds the remembered cursors.
const maxCursors = 20_000

// pullPage requests and processes one page.
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

// line is one line of an answer.
type line struct {
	N      int64           `json:"n"`
	Record json.RawMessage `json:"record"`
}

// readPage decodes an answer: lines with growing numbers above after.
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

// eachLine yields the lines of an answer that are not empty.
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

// After returns the records that arrived after a number, for another portal: at most limit and 4
// MiB, as lines of docs/design/peering.md. Records of portals that are hidden here are left out.
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
	// Left-out records must not end the answer: the last number is the place where the next request
	// starts.
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

// passesOn reports whether a record is passed on: the policy shows the portal that signed it and the
// portal that it is about. A fork proof is passed on whatever portal it warns of.
func passesOn(r *record.Record, show func(record.PortalID) bool) bool {
	if !show(r.Portal) {
		return false
	}
	l, ok := r.Body.(*record.Live)
	return !ok || show(l.Subject)
}

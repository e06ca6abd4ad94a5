package guard

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/limit"
)

const (
	// maxProofs bounds the origins of unknown portals that are asked at the same time. Each is a request
	// of this portal to an address that the stranger chose, and may take until its timeout.
	maxProofs = 128
	// maxNetworkProofs bounds those that were started from one network, see networkOf.
	maxNetworkProofs = 8
)

// errDisplaced is the cause of a canceled proof that made room for another.
var errDisplaced = errors.New("newer handshakes took its place")

// proofs bounds the proofs that handshakes of unknown portals start. A stranger whose origin never answers
// does not keep others out: when all slots are taken, the proof that has been running longest is canceled.
type proofs struct {
	held limit.Held // by network

	mu      sync.Mutex // guards running
	running *list.List // of context.CancelCauseFunc, the oldest first
}

func newProofs() *proofs { return &proofs{running: list.New()} }

// begin starts a proof for a handshake from a network and returns its context, whose cause is errDisplaced
// once another proof has taken its slot. The caller must call end.
func (p *proofs) begin(ctx context.Context, network string, most int) (proving context.Context, end func(),
	err error) {
	hold, full := p.held.Take(limit.Share{Key: network, Most: most})
	if full != "" {
		return nil, nil, federation.RefuseFor(federation.ReasonLimit, 5*time.Second,
			"Too many portals of your network say hello at the same time. Ask again later.")
	}
	proving, cancel := context.WithCancelCause(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running.Len() >= maxProofs {
		p.running.Remove(p.running.Front()).(context.CancelCauseFunc)(errDisplaced)
	}
	own := p.running.PushBack(cancel)
	return proving, func() {
		p.mu.Lock()
		p.running.Remove(own) // does nothing if it was displaced
		p.mu.Unlock()
		cancel(nil)
		hold.Release()
	}, nil
}

package archive

import (
	"context"
	"encoding/json"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/record"
)

// MaxSummary is the largest answer with a summary, in bytes: the head and the enveloped summary with its
// payload in base64.
const MaxSummary = 64 << 10

// Summarized is a portal's head with the summary whose hash the head contains, both in wire form.
type Summarized struct {
	Head    json.RawMessage `json:"head"`
	Summary json.RawMessage `json:"summary"`
}

// Summary returns the head of a portal with the summary whose hash the head contains. A NotFound fault
// means that there is none or it is hidden, an Unavailable fault that the stored summary is not that of
// the head at present.
func (a *Archive) Summary(ctx context.Context, portal record.PortalID) (*Summarized, error) {
	for range maxTries {
		told, head, err := a.Head(ctx, portal)
		if err != nil {
			return nil, err
		}
		wire, err := a.replica.Held(ctx, record.Slot{Type: record.TypeSummary, Portal: portal})
		if err != nil || wire == nil || head.Summary == (record.Hash{}) {
			return nil, orAbsent(err)
		}
		r, err := record.Open(a.network, wire)
		if err != nil {
			return nil, err
		}
		if r.Hash == head.Summary {
			return &Summarized{Head: told.Head, Summary: wire}, nil
		}
	}
	f := fault.New(fault.Unavailable, "The summary of that portal that is held here is not the one of its newest head. Ask the portal itself, or again.")
	f.RetryAfter = 5 * time.Second
	return nil, f
}

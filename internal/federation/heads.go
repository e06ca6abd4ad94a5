package federation

import (
	"context"
	"encoding/json"

	"agentsite/internal/record"
)

// Bounds of messages about heads, see docs/design/peering.md.
const (
	// MaxHints bounds the heads in one hint.
	MaxHints = 64
	// MaxHeads and MaxAnswer bound the answer to a vector of heads, in portals
	// and bytes; MaxAnswer also bounds a piece of a log.
	MaxHeads  = 1000
	MaxAnswer = 4 << 20
	// MaxEntries bounds the entries in a piece of a log, and of leaves.
	MaxEntries = 10_000
	// MaxFetch bounds how many agents are asked for by key at once.
	MaxFetch = 64
)

// Told is a head that another portal reported, with the card of its portal if the receiver may not
// have it.
type Told struct {
	Card json.RawMessage `json:"card,omitempty"`
	Head json.RawMessage `json:"head"`
	// Bare: the sender does not hold the log that the head covers.
	Bare bool `json:"bare,omitempty"`
}

// DiffQuestion asks which heads are newer than those the asking portal holds,
// among marks from From to To, both included.
type DiffQuestion struct {
	Have string `json:"have"`
	From *Mark  `json:"from,omitempty"`
	To   *Mark  `json:"to,omitempty"`
	// Bare asks also for heads whose logs the asked portal does not hold.
	Bare bool `json:"bare,omitempty"`
}

// DiffAnswer is the answer to a DiffQuestion: heads that are newer here or unknown to the asker,
// and the marks of portals of which the asker holds a newer head.
type DiffAnswer struct {
	Heads  []Told `json:"heads"`
	Behind []Mark `json:"behind"`
	More   bool   `json:"more"`
}

// Hint announces new heads.
type Hint struct {
	Heads []Told `json:"heads"`
}

// Unfit names a refused record of a request, by its index, and the reason.
type Unfit struct {
	N      int    `json:"n"`
	Reason string `json:"reason"`
}

// Listener receives the statements of other portals about heads.
type Listener interface {
	// Take takes in heads that a portal reported. It returns once they are admitted or refused;
	// pulls that follow from them run later.
	Take(ctx context.Context, from record.PortalID, told []Told) ([]Unfit, error)
	// Met notes that a portal sent a request.
	Met(from record.PortalID)
}

package federation

import (
	"context"
	"encoding/json"

	"agentsite/internal/record"
)

// Bounds of what is said of heads, see docs/design/peering.md.
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

// Told is a head that somebody told of, with the card of its portal if the
// other may not have it.
type Told struct {
	Card json.RawMessage `json:"card,omitempty"`
	Head json.RawMessage `json:"head"`
	// Bare: who tells of it does not hold the log that it covers.
	Bare bool `json:"bare,omitempty"`
}

// DiffQuestion asks which heads are newer than those the asking portal holds,
// among marks from From to To, both included.
type DiffQuestion struct {
	Have string `json:"have"`
	From *Mark  `json:"from,omitempty"`
	To   *Mark  `json:"to,omitempty"`
	// Bare asks also for heads of which the asked portal does not hold what they
	// cover.
	Bare bool `json:"bare,omitempty"`
}

// DiffAnswer answers it: heads that are newer or unknown there, and the marks
// of portals of which the one who asked holds a newer one.
type DiffAnswer struct {
	Heads  []Told `json:"heads"`
	Behind []Mark `json:"behind"`
	More   bool   `json:"more"`
}

// Hint tells of heads.
type Hint struct {
	Heads []Told `json:"heads"`
}

// Unfit says which record of a request was refused, by its place, and why.
type Unfit struct {
	N      int    `json:"n"`
	Reason string `json:"reason"`
}

// Listener is told what other portals say of heads.
type Listener interface {
	// Take takes in heads that a portal told of. It returns once they are
	// admitted or refused; what they lead to goes on later.
	Take(ctx context.Context, from record.PortalID, told []Told) ([]Unfit, error)
	// Met tells that a portal asked something.
	Met(from record.PortalID)
}

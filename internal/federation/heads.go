package federation

import (
	"context"
	"encoding/json"

	"agentsite/internal/record"
)

// Limits on messages about heads, see docs/design/peering.md.
const (
	// MaxHints is the number of heads in one hint.
	MaxHints = 64
	// MaxHeads and MaxAnswer limit the answer to a vector of heads, in portals and in bytes; MaxAnswer
	// also limits one page of a log.
	MaxHeads  = 1000
	MaxAnswer = 4 << 20
	// MaxEntries is the number of entries in one page of a log or of leaves.
	MaxEntries = 10_000
	// MaxFetch is how many agents can be requested by key at once.
	MaxFetch = 64
)

// Told is a head in a message, with the card of its portal if the receiver may lack it.
type Told struct {
	Card json.RawMessage `json:"card,omitempty"`
	Head json.RawMessage `json:"head"`
	// Bare: the sender does not store the log that the head covers, so the receiver must pull the log elsewhere.
	Bare bool `json:"bare,omitempty"`
}

// DiffQuestion asks for heads that are newer than those in Have (an encoded Vector), for marks between
// From and To, inclusive; nil is no bound.
type DiffQuestion struct {
	Have string `json:"have"`
	From *Mark  `json:"from,omitempty"`
	To   *Mark  `json:"to,omitempty"`
	// Bare asks also for heads whose logs the answering portal does not store.
	Bare bool `json:"bare,omitempty"`
}

// DiffAnswer is the answer to a DiffQuestion: heads that are newer than the asker's or unknown to it,
// and the marks of portals of which the asker has a newer head.
type DiffAnswer struct {
	Heads  []Told `json:"heads"`
	Behind []Mark `json:"behind"`
	More   bool   `json:"more"`
}

// Hint is an unsigned notice of new heads; it only causes pulls.
type Hint struct {
	Heads []Told `json:"heads"`
}

// Unfit reports a refused record of a request: its index N and the reason.
type Unfit struct {
	N      int    `json:"n"`
	Reason string `json:"reason"`
}

// Listener receives heads that other portals report.
type Listener interface {
	// Take admits heads that a portal reported and returns the refused ones. The pulls that follow run later.
	Take(ctx context.Context, from record.PortalID, told []Told) ([]Unfit, error)
	// Met notes that a portal sent a valid request, which shows that it is reachable.
	Met(from record.PortalID)
}

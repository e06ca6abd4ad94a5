package chat

import "time"

// Share says what of a conversation goes along to an agent elsewhere beside
// the message itself.
type Share string

// ShareAll is what was said before, as far as the asker sees it; ShareOwn only
// what was said to and by that agent; ShareNothing the message alone.
const (
	ShareAll     Share = "all"
	ShareOwn     Share = "own"
	ShareNothing Share = "nothing"
)

// Disclosure says that a person knows where their text to an agent goes.
type Disclosure struct {
	AgentID string
	Agent   string // handle
	Host    string
	Share   Share
	// ToldAt is zero while they were not told, or were told of another host.
	ToldAt time.Time
}

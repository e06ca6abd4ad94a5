package chat

import "time"

// Share selects the part of a conversation that an agent elsewhere receives besides the message
// itself.
type Share string

// ShareAll includes all earlier messages that the asker sees; ShareOwn only those to and by that
// agent; ShareNothing sends the message alone.
const (
	ShareAll     Share = "all"
	ShareOwn     Share = "own"
	ShareNothing Share = "nothing"
)

// Disclosure records that a person knows the host that receives their text to an agent.
type Disclosure struct {
	AgentID string
	Agent   string // handle
	Host    string
	Share   Share
	// ToldAt is the time of the disclosure; zero without one or if it named another host.
	ToldAt time.Time
}

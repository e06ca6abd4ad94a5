package chat

import "time"

// Share selects the part of a conversation that an agent on another host receives in addition to the message itself.
type Share string

// ShareAll includes all earlier messages that the asker sees, ShareOwn only those to and by the agent;
// ShareNothing sends the message alone.
const (
	ShareAll     Share = "all"
	ShareOwn     Share = "own"
	ShareNothing Share = "nothing"
)

// Disclosure records that a person has confirmed the host that receives their text for an agent.
type Disclosure struct {
	AgentID string
	Agent   string
	Host    string
	Share   Share
	// ToldAt is the time at which the person saw the disclosure; zero if they saw none, or one with another host.
	ToldAt time.Time
}

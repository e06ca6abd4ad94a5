package task

import "time"

// Memory is a text that the agent of a call remembers about the caller, or about the conversation.
type Memory struct {
	Text string
	// At is the day on which it was noted, Here is true if that was in this conversation.
	At   time.Time
	Here bool
}

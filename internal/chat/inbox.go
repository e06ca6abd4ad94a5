package chat

import (
	"time"
)

// Prefs are a person's notification settings.
type Prefs struct {
	Notify Notify
	// Notifications pause from QuietFrom to QuietTo, minutes of the day in Zone (an IANA name, UTC
	// if empty); they never pause if the two are equal.
	QuietFrom, QuietTo int
	Zone               string
}

// News is a message that a person may be notified of.
type News struct {
	ConversationID string
	Title          string
	Seq            int64
	From           string
	Snippet        string
	Mention        bool
	// Quiet is true when the person does not want to be disturbed by it.
	Quiet bool
}

// Found is a message that a search found.
type Found struct {
	ConversationID string
	Title          string
	Message        Message
	// Snippet is the text around the words.
	Snippet string
}

// Typing is how long a sign of typing holds.
const TypingHolds = 6 * time.Second

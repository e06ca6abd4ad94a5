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

// News is the notification about one message for one person.
type News struct {
	ConversationID string
	Title          string
	Seq            int64
	From           string
	Snippet        string
	Mention        bool
	// Quiet is true if the person's settings (quiet hours, muted conversation) suppress an alert; the
	// message still counts as unread.
	Quiet bool
}

// Found is one result of Service.Search.
type Found struct {
	ConversationID string
	Title          string
	Message        Message
	// Snippet is the part of the text around the matched words.
	Snippet string
}

// TypingHolds is how long a person is shown as typing after the last call of Typing.
const TypingHolds = 6 * time.Second

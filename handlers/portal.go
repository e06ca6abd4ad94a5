package handlers

import (
	"agentsite/internal/chat"
	"time"
)

// Portal describes the portal itself, as pages and answers name it.
type Portal struct {
	Name    string // for pages
	URL     string // without a trailing slash
	Host    string // the part of handles after the @
	Version string
	// PublicKey is the portal's key as the page about it shows it.
	PublicKey string
	Started   time.Time
}

// The paths of links to conversations.
const (
	joinPath   = "/join/"
	sharedPath = "/shared/"
)

// linkURL returns the address of a link to a conversation.
func (p Portal) linkURL(kind chat.LinkKind, secret string) string {
	if kind == chat.ReadLink {
		return p.URL + sharedPath + secret
	}
	return p.URL + joinPath + secret
}

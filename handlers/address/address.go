// Package address holds the addresses of the portal and of its pages, as pages
// and the API write them.
package address

import (
	"net/url"
	"strconv"
	"time"

	"agentsite/internal/chat"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
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
	SharedPath = "/shared/"
)

// LinkURL returns the address of a link to a conversation.
func (p Portal) LinkURL(kind chat.LinkKind, secret string) string {
	if kind == chat.ReadLink {
		return p.URL + SharedPath + secret
	}
	return p.URL + joinPath + secret
}

// IconPath is where an agent's picture is; it changes with the picture.
func IconPath(a hub.Agent) string { return "/agents/" + a.Handle() + "/icon?v=" + a.Icon }

// PeerRef returns the name of a portal in the addresses of pages.
func PeerRef(p federation.Peer) string {
	if p.ID == "" {
		return p.Host()
	}
	return string(p.ID)
}

// ChatPath leads to a conversation, messagePath to a message in it.
func ChatPath(id string) string { return "/chat/" + id }

func MessagePath(id string, seq int64) string {
	n := strconv.FormatInt(seq, 10)
	return ChatPath(id) + "?at=" + n + "#m" + n
}

func NetworkPath(p federation.Peer) string { return "/network/" + url.PathEscape(PeerRef(p)) }

// Package address builds the addresses of the portal and of its pages. Pages and the API use it, so that
// an address has one form everywhere.
package address

import (
	"net/url"
	"strconv"
	"time"

	"agentsite/internal/adjust"
	"agentsite/internal/chat"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
)

// Portal describes this portal to the packages that render pages and answers.
type Portal struct {
	URL     string // public address, without a trailing slash
	Host    string // the part of handles after the @
	Version string
	// PublicKey is the portal's public key in the form that the page about the portal shows.
	PublicKey string
	Started   time.Time
	// Settings has the name of the portal, which operators change while it runs.
	Settings *adjust.Snapshot
	// Goals are examples of goals for teams.
	Goals []string
	// Meanings is the operator's server of embeddings.
	Meanings Meanings
}

// Name returns the name that pages show: the one that operators gave, else the host.
func (p Portal) Name() string { return p.Settings.NameOr(p.Host) }

// Meanings is a server of embeddings, with the model for searches by meaning. The zero Meanings is none.
type Meanings struct {
	// Host gets the texts of searches and of listed agents; "" if they stay on this machine. Private is true if it
	// also gets texts of conversations and goals.
	Host    string
	Private bool
	// State is nil without a server.
	State MeaningsState
}

// MeaningsState returns the state of a server of embeddings as a sentence for the operator, and whether it can be
// used.
type MeaningsState interface {
	Describe() (text string, ok bool)
}

// Path prefixes of links to conversations; the secret of the link follows.
const (
	joinPath   = "/join/"
	SharedPath = "/shared/"
)

// LinkURL returns the full address of a link to a conversation. The secret in it gives access: do not log
// it.
func (p Portal) LinkURL(kind chat.LinkKind, secret string) string {
	if kind == chat.ReadLink {
		return p.URL + SharedPath + secret
	}
	return p.URL + joinPath + secret
}

// IconPath returns the path of an agent's picture. The query contains the picture's hash, so a changed
// picture has another path and the old one may be cached for long.
func IconPath(a hub.Agent) string { return "/agents/" + a.Handle() + "/icon?v=" + a.Icon }

// PeerRef returns the name of a peer in addresses of pages: its network id, or its host as long as the id
// is unknown.
func PeerRef(p federation.Peer) string {
	if p.ID == "" {
		return p.Host()
	}
	return string(p.ID)
}

// ChatPath returns the path of a conversation, MessagePath the path that scrolls to a message in it.
func ChatPath(id string) string { return "/chat/" + id }

func MessagePath(id string, seq int64) string {
	n := strconv.FormatInt(seq, 10)
	return ChatPath(id) + "?at=" + n + "#m" + n
}

func NetworkPath(p federation.Peer) string { return "/network/" + url.PathEscape(PeerRef(p)) }

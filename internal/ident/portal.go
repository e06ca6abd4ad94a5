package ident

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// OfPortal is somebody for whom another portal asks: portal is its id in the
// network, which was proved, host what its handles end in, and mark and name
// what it calls them there. The same two are the same actor for ever; another
// portal cannot be them, whatever it says. An empty mark is the portal itself.
// A name that nobody could have is not repeated.
func OfPortal(portal, host, mark, name string) Actor {
	id, handle := portal+"/", host
	if mark != "" {
		sum := sha256.Sum256([]byte("agentsite/visitor/1\n" + portal + "\n" + mark))
		id += base64.RawURLEncoding.EncodeToString(sum[:16])
		if name, _, _ = strings.Cut(name, "@"); CheckForm(name) != nil {
			name = "somebody"
		}
		handle = name + "@" + host
	}
	return Actor{Kind: Portal, ID: id, Name: handle, Credential: PortalCredential(portal), Addr: PortalCredential(portal)}
}

// PortalCredential names the right of a portal to ask, as Actor.Credential and
// as what limits count of all for whom it asks.
func PortalCredential(portal string) string { return "portal " + portal }

// PortalOf is the portal that asks for an actor of kind Portal, by their id.
func PortalOf(actorID string) string {
	portal, _, _ := strings.Cut(actorID, "/")
	return portal
}

package ident

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// PortalActor returns the actor for a person of another portal. portal is that portal's verified network
// id, host its part of handles, mark its id for the person and name its name for the person. Equal
// portal and mark give the same actor, and no other portal can produce it. An empty mark means the
// portal itself. An invalid name is replaced.
func PortalActor(portal, host, mark, name string) Actor {
	id, handle := portal+"/", host
	if mark != "" {
		sum := sha256.Sum256([]byte("agentsite/visitor/1\n" + portal + "\n" + mark))
		id += base64.RawURLEncoding.EncodeToString(sum[:16])
		if name, _, _ = strings.Cut(name, "@"); CheckForm(name) != nil {
			name = "somebody"
		}
		handle = name + "@" + host
	}
	return Actor{Kind: Portal, ID: id, Name: handle, Credential: PortalCredential(portal),
		Addr: PortalCredential(portal)}
}

// PortalCredential returns the value of Actor.Credential for all people of a portal, so that limits
// count them together.
func PortalCredential(portal string) string { return "portal " + portal }

// PortalOf returns the network id of the portal that calls on behalf of an actor of kind Portal, given
// the actor's id.
func PortalOf(actorID string) string {
	portal, _, _ := strings.Cut(actorID, "/")
	return portal
}

package ident

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// PortalActor returns the actor for a person of another portal. portal is the verified network id of
// that portal, host the end of its handles, mark and name the other portal's id and name for the
// person. The same portal and mark always give the same actor, and another portal cannot produce it. An
// empty mark is the portal itself. An invalid name is replaced.
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

// PortalCredential returns the credential of a portal. Actor.Credential holds it, and limits count all
// people of the portal under it.
func PortalCredential(portal string) string { return "portal " + portal }

// PortalOf returns the portal that calls for an actor of kind Portal, from the actor's id.
func PortalOf(actorID string) string {
	portal, _, _ := strings.Cut(actorID, "/")
	return portal
}

// Package peering moves what portals sign between them: it publishes this
// portal's agents as records, takes in those of others and shows them in the
// directory, and asks other portals. What it says on the wire is written down
// in docs/design/peering.md; whom it talks to at all is decided by
// federation.Gatekeeper, and what it believes by record.Gate. It knows no
// routes and no SQL.
package peering

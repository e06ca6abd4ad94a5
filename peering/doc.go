// Package peering exchanges signed records between portals: it publishes this portal's agents as
// records, accepts those of other portals and shows them in the directory, and queries other portals.
// docs/design/peering.md documents the wire format; federation.Gatekeeper decides which portals it
// talks to, and record.Gate which records are valid. It knows no routes and no SQL.
package peering

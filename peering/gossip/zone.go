package gossip

import (
	"encoding/binary"
	"strconv"

	"agentsite/internal/record"
)

// A network larger than a pool is split into zones by the first bits of the portals' ids, which are hashes
// of keys and so spread evenly. Each portal derives the number of bits from its own estimate of the
// network's size. Two portals with different estimates still meet, because the smaller zone is part of the
// larger one.

// leadingBits returns the first 64 bits of the digest in a portal's id, 0 for an invalid id.
func leadingBits(id record.PortalID) uint64 {
	d, _ := id.Digest()
	return binary.BigEndian.Uint64(d[:8])
}

func sameZone(a, b record.PortalID, bits int) bool {
	return (leadingBits(a)^leadingBits(b))>>(64-bits) == 0
}

// zoneBits returns the number of id bits that define a zone in a network of that size. now is the present
// number: it changes only if the zone is above zoneFrom or below zoneTo.
func zoneBits(size, now int) int {
	for now < maxZoneBits && size>>now > zoneFrom {
		now++
	}
	for now > 0 && size>>now < zoneTo {
		now--
	}
	return now
}

// updateZone computes the zone from the present size of the network and reports whether it changed.
func (g *Gossip) updateZone() bool {
	bits := zoneBits(g.cfg.Size(), g.currentBits())
	g.mu.Lock()
	defer g.mu.Unlock()
	if bits == g.zone {
		return false
	}
	g.zone = bits
	return true
}

func (g *Gossip) currentBits() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.zone
}

// zoneName returns the zone for display: its id bits as a binary number, "" for the whole network.
func (g *Gossip) zoneName() string {
	bits := g.currentBits()
	if bits == 0 {
		return ""
	}
	s := strconv.FormatUint(1<<bits|leadingBits(g.cfg.Self)>>(64-bits), 2)
	return s[1:]
}

package gossip

import (
	"encoding/binary"
	"strconv"

	"agentsite/internal/record"
)

// A network that is larger than a pool may be is parted into zones by the first
// bits of the portals' ids, which are hashes of their keys and so spread evenly.
// How many bits, each portal works out from its own guess of the size. Two that
// guess differently still meet: the smaller zone is part of the larger one.

// top is the first bits of a portal's id.
func top(id record.PortalID) uint64 {
	d, _ := id.Digest()
	return binary.BigEndian.Uint64(d[:8])
}

func sameZone(a, b record.PortalID, bits int) bool {
	return (top(a)^top(b))>>(64-bits) == 0
}

// zoneBits is how many bits a zone has, by how many portals there are and how
// many bits it has now.
func zoneBits(size, now int) int {
	for now < maxZoneBits && size>>now > zoneFrom {
		now++
	}
	for now > 0 && size>>now < zoneTo {
		now--
	}
	return now
}

// rezone works out the zone again and reports whether it is another.
func (g *Gossip) rezone() bool {
	bits := zoneBits(g.cfg.Size(), g.bits())
	g.mu.Lock()
	defer g.mu.Unlock()
	if bits == g.zone {
		return false
	}
	g.zone = bits
	return true
}

func (g *Gossip) bits() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.zone
}

// zoneName is the zone as people read it: "" for the whole network, else its
// bits.
func (g *Gossip) zoneName() string {
	bits := g.bits()
	if bits == 0 {
		return ""
	}
	s := strconv.FormatUint(1<<bits|top(g.cfg.Self)>>(64-bits), 2)
	return s[1:]
}

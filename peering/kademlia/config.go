package kademlia

import (
	"math/rand/v2"
	"time"
)

// Config holds the settings of a Node. A zero field means the default that its comment names; New
// works on a copy and leaves the caller's value unchanged.
type Config struct {
	// Rand is the only source of randomness. It is required, and after New only the Node uses it.
	Rand *rand.Rand
	// Values decides which values may be stored and returned by lookups. nil refuses all.
	Values Validator
	// Mine are the records that this node publishes: it stores them at other nodes once in each Period. nil
	// means none.
	Mine Source
	// Admits reports whether this node uses a contact: other contacts are not asked, not kept in the table
	// and not named to other nodes. nil admits all.
	Admits func(*Contact) bool

	K     int // number of nodes that store a key; size of a bucket; default 20
	Alpha int // concurrent requests of one path; default 3
	Paths int // disjoint paths of a lookup if the first finds nothing; default 2
	Acks  int // nodes that must store a record until Put.Enough; default 3/4 of K

	// A request becomes soft after 5/4 of the 95th percentile of this node's recent response times, within
	// SoftMin (200 ms) and SoftMax (600 ms): another request is sent in parallel, and the late answer still
	// counts. After Hard (2.5 s) it counts as failed.
	SoftMin, SoftMax, Hard time.Duration
	// Whole bounds the duration of a lookup: 8 s.
	Whole time.Duration

	// Refresh is how long a bucket may be without a lookup before one is started to refresh it: 10 min. The
	// interval grows while the contacts of the bucket stay the same, up to RefreshMost: 30 min.
	Refresh, RefreshMost time.Duration
	Self                 time.Duration // interval of lookups of this node's own id; default 30 min
	// Republish is the longest interval at which all records of Mine are stored again: 12 h. It is shorter
	// if nodes disappear sooner, see Node.Period.
	Republish time.Duration

	// Limits of contacts of one Group: in a bucket (2), in the table (6), and among the nodes in an answer
	// or the nearest nodes of a lookup (3).
	GroupBucket, GroupTable, GroupAnswer int

	Store StoreConfig
}

const (
	spares  = 20 // contacts of a bucket that answered and wait for a free place
	maxFail = 2  // consecutive failures after which a contact loses its place
)

func (c Config) withDefaults() Config {
	or := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	span := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	or(&c.K, 20)
	or(&c.Alpha, 3)
	or(&c.Paths, 2)
	or(&c.Acks, (c.K*3+3)/4)
	span(&c.SoftMin, 200*time.Millisecond)
	span(&c.SoftMax, 600*time.Millisecond)
	span(&c.Hard, 2500*time.Millisecond)
	span(&c.Whole, 8*time.Second)
	span(&c.Refresh, 10*time.Minute)
	span(&c.RefreshMost, 30*time.Minute)
	span(&c.Self, 30*time.Minute)
	span(&c.Republish, 12*time.Hour)
	or(&c.GroupBucket, 2)
	or(&c.GroupTable, 6)
	or(&c.GroupAnswer, 3)
	if c.Admits == nil {
		c.Admits = func(*Contact) bool { return true }
	}
	c.Store = c.Store.withDefaults()
	return c
}

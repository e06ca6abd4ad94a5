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
	// Values decides which values may be stored. If it is nil, nothing is stored.
	Values Validator
	// Mine are the records of this node itself: it stores them at other nodes again and again. nil
	// means none.
	Mine Source
	// Admits reports whether this node deals with a contact: one that is not admitted is not asked,
	// not kept and not named to other nodes. nil admits all.
	Admits func(*Contact) bool

	K     int // how many nodes keep a key, how many a bucket holds: 20
	Alpha int // requests of one path in flight: 3
	Paths int // disjoint paths of a lookup that finds nothing on its first: 2
	Acks  int // of K, after which a record counts as stored: 15

	// A request is soft once it took 5/4 of the 95th percentile of the recent requests of this
	// node, within SoftMin (200 ms) and SoftMax (600 ms): another request is sent beside it, and
	// its answer still counts. After Hard (2.5 s) it failed.
	SoftMin, SoftMax, Hard time.Duration
	// Whole bounds the duration of a lookup: 8 s.
	Whole time.Duration

	// Refresh is the time after which a bucket without lookups is refreshed by one: 10 min. It
	// grows while the contacts of the bucket stay the same, up to RefreshMost: 30 min.
	Refresh, RefreshMost time.Duration
	Self                 time.Duration // between lookups of this node's own id: 30 min
	// Republish is the period in which all records of Mine are stored again: 12 h. It is shorter if
	// nodes die sooner, see Node.Period.
	Republish time.Duration

	// Contacts of one Group: in a bucket (2), in the table (6), among the nodes
	// of an answer and of those that a lookup counts as the nearest (3).
	GroupBucket, GroupTable, GroupAnswer int

	Store StoreConfig
}

const (
	spares  = 20 // answering contacts of a bucket that wait for a free place
	maxFail = 2  // failed requests in a row after which a contact loses its place
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

package kademlia

import (
	"math/rand/v2"
	"time"
)

// Config is what a Node is made with. What is zero has the value that its
// comment names; New does not change it.
type Config struct {
	// Rand is where all chance comes from. It is required, and the Node's own
	// from then on.
	Rand *rand.Rand
	// Values says what may be stored. Without it nothing is.
	Values Validator
	// Mine are the records that this node sees to: they are stored at others
	// again and again. nil for none.
	Mine Source
	// Admits says whom this node deals with: others are not asked, not kept and
	// not named to anybody. nil for everybody.
	Admits func(*Contact) bool

	K     int // how many nodes keep a key, how many a bucket holds: 20
	Alpha int // requests of one path in flight: 3
	Paths int // disjoint paths of a lookup that finds nothing on its first: 2
	Acks  int // of K, after which a record counts as stored: 15

	// A request is soft once it took 5/4 of the 95th percentile of what requests
	// took here, within SoftMin (200 ms) and SoftMax (600 ms): another one is
	// sent beside it, and its answer still counts. After Hard (2.5 s) it failed.
	SoftMin, SoftMax, Hard time.Duration
	// Whole bounds a lookup: 8 s.
	Whole time.Duration

	// Refresh is for how long nothing is looked up in a bucket until something is:
	// 10 min, but as long as nothing changes in it, up to RefreshMost: 30 min.
	Refresh, RefreshMost time.Duration
	Self                 time.Duration // between lookups of the own id: 30 min
	// Republish is the time in which all of Mine are stored anew: 12 h. It is
	// shorter if nodes die sooner, see Node.Period.
	Republish time.Duration

	// Contacts of one Group: in a bucket (2), in the table (6), among the nodes
	// of an answer and of those that a lookup counts as the nearest (3).
	GroupBucket, GroupTable, GroupAnswer int

	Shelf ShelfConfig
}

const (
	spares  = 20 // contacts of a bucket that wait for a place
	maxFail = 2  // requests in a row after which a contact loses its place
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
	c.Shelf = c.Shelf.withDefaults()
	return c
}

package kademlia

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Validator decides which values are valid. The package itself does not interpret values.
type Validator interface {
	// Validate returns the properties of a value under a key, or an error if its signature is not valid, it
	// does not belong under that key, or it has expired.
	Validate(key ID, value []byte) (Entry, error)
}

// Entry holds the properties of a value that a Node needs. Under one key a Node keeps one value of each
// publisher, the one with the highest version.
type Entry struct {
	Publisher ID
	// Major and Minor are the version of the value; Minor is compared if Major is equal.
	Major, Minor int64
	Expires      time.Time
}

// isNewer reports whether e has a higher version than o, so that it replaces o.
func (e Entry) isNewer(o Entry) bool {
	if e.Major != o.Major {
		return e.Major > o.Major
	}
	return e.Minor > o.Minor
}

// Value is a value with the properties that the Validator found.
type Value struct {
	Entry
	Bytes []byte
}

// StoreConfig bounds the values that a node keeps for others. A zero field means the default that
// its comment names.
type StoreConfig struct {
	Records   int   // largest number of records; default 1,000,000
	Bytes     int64 // largest size of all values together; default 512 MiB
	PerKey    int   // largest number of publishers of one key; default 256
	Publisher int   // constant part of a publisher's limit; default 512
	// Agents is the largest number of keys that one publisher is expected to have: 50,000. Of n nodes that
	// store k copies of a key each stores k/n of these keys; a publisher may have four times as many here,
	// see publisherShare.
	Agents int
	// Answer is the largest number of values of one key in an answer: 64. If there are more, they are
	// chosen at random.
	Answer int
	// Rank is how far this node may be from a key, in multiples of k: it refuses a key if it knows Rank × k
	// nodes that are nearer. Default 3.
	Rank int
}

func (c StoreConfig) withDefaults() StoreConfig {
	or := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	or(&c.Records, 1_000_000)
	if c.Bytes == 0 {
		c.Bytes = 512 << 20
	}
	or(&c.PerKey, 256)
	or(&c.Publisher, 512)
	or(&c.Agents, 50_000)
	or(&c.Answer, 64)
	or(&c.Rank, 3)
	return c
}

// valueStore stores values of other nodes until they expire. The zero value with a cfg is ready.
type valueStore struct {
	cfg   StoreConfig
	keys  map[ID][]Value
	of    map[ID]int // number of values of each publisher
	count int
	bytes int64
	// ends holds the keys to sweep in each time slot, because a value under them expires before its end.
	ends map[int64]map[ID]struct{}
	// dirty are the keys with values stored since the last call of Node.Changed.
	dirty map[ID]struct{}
	// swept is the last slot that sweepExpired has processed.
	swept int64
}

// slot is the interval at which expired values are removed. Lookups ignore expired values independently of
// it.
const slot = 5 * time.Minute

func slotOf(t time.Time) int64 { return t.UnixMilli() / slot.Milliseconds() }

// putValue stores a validated value if the limits allow it. share is the limit for the records of its
// publisher.
func (s *valueStore) putValue(key ID, v Value, share int, now time.Time) Code {
	if !v.Expires.After(now) {
		return Invalid
	}
	if s.keys == nil {
		s.keys, s.of = make(map[ID][]Value), make(map[ID]int)
		s.ends, s.dirty = make(map[int64]map[ID]struct{}), make(map[ID]struct{})
		s.swept = slotOf(now)
	}
	list := s.keys[key]
	if i := slices.IndexFunc(list, func(h Value) bool { return h.Publisher == v.Publisher }); i >= 0 {
		have := &list[i]
		if have.isNewer(v.Entry) {
			return Old
		}
		if !v.isNewer(have.Entry) {
			// Two values of one version: the first is kept, so that nodes which differ can prove that the
			// publisher signed both.
			return Stored
		}
		if s.bytes+int64(len(v.Bytes)-len(have.Bytes)) > s.cfg.Bytes {
			return Full
		}
		s.bytes += int64(len(v.Bytes) - len(have.Bytes))
		*have = v
		s.markFresh(key, v)
		return Stored
	}
	if s.count >= s.cfg.Records || s.bytes+int64(len(v.Bytes)) > s.cfg.Bytes || len(list) >= s.cfg.PerKey ||
		s.of[v.Publisher] >= share {
		return Full
	}
	s.keys[key] = append(list, v)
	s.of[v.Publisher]++
	s.count++
	s.bytes += int64(len(v.Bytes))
	s.markFresh(key, v)
	return Stored
}

// markFresh registers a new value for Changed and for sweepExpired.
func (s *valueStore) markFresh(key ID, v Value) {
	s.dirty[key] = struct{}{}
	at := slotOf(v.Expires) + 1
	if s.ends[at] == nil {
		s.ends[at] = make(map[ID]struct{})
	}
	s.ends[at][key] = struct{}{}
}

// getValues returns the unexpired values under a key, at most cfg.Answer of them, chosen at random. The
// caller must not change the slice, which may be the stored one.
func (s *valueStore) getValues(key ID, now time.Time, rand *rand.Rand) []Value {
	list := s.keys[key]
	if len(list) <= s.cfg.Answer && !slices.ContainsFunc(list, func(v Value) bool { return !v.Expires.After(now) }) {
		return list
	}
	out := slices.DeleteFunc(slices.Clone(list), func(v Value) bool { return !v.Expires.After(now) })
	if len(out) > s.cfg.Answer {
		rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		out = out[:s.cfg.Answer]
	}
	return out
}

// sweepExpired removes the values that have expired, one time slot after the other.
func (s *valueStore) sweepExpired(now time.Time) {
	for upTo := slotOf(now); s.ends != nil && s.swept < upTo; {
		s.swept++
		for key := range s.ends[s.swept] {
			s.dropValues(key, func(v Value) bool { return !v.Expires.After(now) })
		}
		delete(s.ends, s.swept)
	}
}

// dropPublisher removes all values that a publisher signed.
func (s *valueStore) dropPublisher(publisher ID) {
	if s.of[publisher] == 0 {
		return
	}
	for key := range s.keys {
		s.dropValues(key, func(v Value) bool { return v.Publisher == publisher })
	}
}

func (s *valueStore) dropValues(key ID, gone func(Value) bool) {
	list := s.keys[key]
	kept := make([]Value, 0, len(list))
	for _, v := range list {
		if !gone(v) {
			kept = append(kept, v)
			continue
		}
		s.count--
		s.bytes -= int64(len(v.Bytes))
		if s.of[v.Publisher]--; s.of[v.Publisher] == 0 {
			delete(s.of, v.Publisher)
		}
	}
	switch {
	case len(kept) == len(list):
	case len(kept) == 0:
		delete(s.keys, key)
		delete(s.dirty, key)
	default:
		s.keys[key] = kept
	}
}

package kademlia

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Validator knows what values mean.
type Validator interface {
	// Validate returns what a value is that was given for a key, or an error if
	// it is not genuine, does not belong there, or is over.
	Validate(key ID, value []byte) (Entry, error)
}

// Entry is what a Node has to know of a value. Of one publisher a key has one
// value, that with the highest version.
type Entry struct {
	Publisher ID
	// Major and Minor are its version: Minor counts where Major is equal.
	Major, Minor int64
	Expires      time.Time
}

// newer reports whether e replaces o.
func (e Entry) newer(o Entry) bool {
	if e.Major != o.Major {
		return e.Major > o.Major
	}
	return e.Minor > o.Minor
}

// Value is a value with what it is.
type Value struct {
	Entry
	Bytes []byte
}

// ShelfConfig bounds what a node keeps for others. What is zero has the value
// that its comment names.
type ShelfConfig struct {
	Records   int   // 1,000,000
	Bytes     int64 // 512 MiB
	PerKey    int   // publishers of one key: 256
	Publisher int   // records of one publisher, beside its fair share: 512
	// Agents is how many keys of its own a publisher is expected to have at
	// most: of n nodes that keep k copies each keeps k/n of them. The share is
	// four times that: 50,000.
	Agents int
	// Answer is how many values of a key are in an answer, at random: 64.
	Answer int
	// Rank is how many times k nodes may be nearer to a key than this one by its
	// table, before it refuses the key: 3.
	Rank int
}

func (c ShelfConfig) withDefaults() ShelfConfig {
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

// shelf keeps values for others until they expire.
type shelf struct {
	cfg   ShelfConfig
	keys  map[ID][]Value
	of    map[ID]int // records by publisher
	count int
	bytes int64
	// ends has keys by the slot of time in which something under them expires.
	ends map[int64]map[ID]struct{}
	// dirty are keys under which something is new since it was last asked.
	dirty map[ID]struct{}
	// swept is the slot up to which all that expired was let go.
	swept int64
}

// slot is how exactly it is noticed that something expired; what is given out
// is checked to the second.
const slot = 5 * time.Minute

func slotOf(t time.Time) int64 { return t.UnixMilli() / slot.Milliseconds() }

// put keeps a value, which was validated. share is how many records its
// publisher may have here.
func (s *shelf) put(key ID, v Value, share int, now time.Time) Code {
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
		if have.newer(v.Entry) {
			return Old
		}
		if !v.newer(have.Entry) {
			// Of one version the first is kept: a publisher that signs two is
			// noticed by who sees both.
			return Stored
		}
		if s.bytes+int64(len(v.Bytes)-len(have.Bytes)) > s.cfg.Bytes {
			return Full
		}
		s.bytes += int64(len(v.Bytes) - len(have.Bytes))
		*have = v
		s.fresh(key, v)
		return Stored
	}
	if s.count >= s.cfg.Records || s.bytes+int64(len(v.Bytes)) > s.cfg.Bytes || len(list) >= s.cfg.PerKey || s.of[v.Publisher] >= share {
		return Full
	}
	s.keys[key] = append(list, v)
	s.of[v.Publisher]++
	s.count++
	s.bytes += int64(len(v.Bytes))
	s.fresh(key, v)
	return Stored
}

// fresh notes that a value is new under a key.
func (s *shelf) fresh(key ID, v Value) {
	s.dirty[key] = struct{}{}
	at := slotOf(v.Expires) + 1
	if s.ends[at] == nil {
		s.ends[at] = make(map[ID]struct{})
	}
	s.ends[at][key] = struct{}{}
}

// get returns values under a key that have not expired, at most Answer of them,
// chosen at random.
func (s *shelf) get(key ID, now time.Time, rand *rand.Rand) []Value {
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

// sweep lets go of what expired.
func (s *shelf) sweep(now time.Time) {
	for upTo := slotOf(now); s.ends != nil && s.swept < upTo; {
		s.swept++
		for key := range s.ends[s.swept] {
			s.drop(key, func(v Value) bool { return !v.Expires.After(now) })
		}
		delete(s.ends, s.swept)
	}
}

// forget lets go of all of a publisher.
func (s *shelf) forget(publisher ID) {
	if s.of[publisher] == 0 {
		return
	}
	for key := range s.keys {
		s.drop(key, func(v Value) bool { return v.Publisher == publisher })
	}
}

func (s *shelf) drop(key ID, gone func(Value) bool) {
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

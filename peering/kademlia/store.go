package kademlia

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Validator knows the meaning of values.
type Validator interface {
	// Validate returns the properties of a value that was given for a key, or an error if it is not
	// genuine, does not belong there, or has expired.
	Validate(key ID, value []byte) (Entry, error)
}

// Entry holds the properties of a value that a Node needs. A key has one value of each publisher,
// the one with the highest version.
type Entry struct {
	Publisher ID
	// Major and Minor are the version: Minor counts if Major is equal.
	Major, Minor int64
	Expires      time.Time
}

// isNewer reports whether e replaces o.
func (e Entry) isNewer(o Entry) bool {
	if e.Major != o.Major {
		return e.Major > o.Major
	}
	return e.Minor > o.Minor
}

// Value is a value with its properties.
type Value struct {
	Entry
	Bytes []byte
}

// StoreConfig bounds the values that a node keeps for others. A zero field means the default that
// its comment names.
type StoreConfig struct {
	Records   int   // 1,000,000
	Bytes     int64 // 512 MiB
	PerKey    int   // publishers of one key: 256
	Publisher int   // records of one publisher, in addition to its share
	// Agents is the largest number of keys that a publisher is expected to have: of n nodes that
	// keep k copies each keeps k/n of them. The share of a publisher is four times that: 50,000.
	Agents int
	// Answer bounds the values of a key in an answer, chosen at random: 64.
	Answer int
	// Rank: the node refuses a key if, by its table, Rank times k nodes are nearer to the key: 3.
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

// valueStore keeps values for others until they expire.
type valueStore struct {
	cfg   StoreConfig
	keys  map[ID][]Value
	of    map[ID]int // number of records by publisher
	count int
	bytes int64
	// ends holds the keys by the time slot in which a value under them expires.
	ends map[int64]map[ID]struct{}
	// dirty are the keys with new values since the last Changed.
	dirty map[ID]struct{}
	// swept is the last slot whose expired values were removed.
	swept int64
}

// slot is the precision with which expired values are removed. Values in answers are checked to the
// second.
const slot = 5 * time.Minute

func slotOf(t time.Time) int64 { return t.UnixMilli() / slot.Milliseconds() }

// putValue keeps a validated value. share is the number of records that its publisher may have
// here.
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
			// Of one version the first value is kept. A node that sees both can prove that the
			// publisher signed two.
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

// markFresh notes that a value is new under a key.
func (s *valueStore) markFresh(key ID, v Value) {
	s.dirty[key] = struct{}{}
	at := slotOf(v.Expires) + 1
	if s.ends[at] == nil {
		s.ends[at] = make(map[ID]struct{})
	}
	s.ends[at][key] = struct{}{}
}

// getValues returns unexpired values under a key, at most Answer of them, chosen at random.
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

// sweepExpired removes expired values.
func (s *valueStore) sweepExpired(now time.Time) {
	for upTo := slotOf(now); s.ends != nil && s.swept < upTo; {
		s.swept++
		for key := range s.ends[s.swept] {
			s.dropValues(key, func(v Value) bool { return !v.Expires.After(now) })
		}
		delete(s.ends, s.swept)
	}
}

// dropPublisher removes all values of a publisher.
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

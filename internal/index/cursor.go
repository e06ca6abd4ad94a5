package index

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// maxCursorBytes bounds the size of a cursor that a client sends. No cursor made here is longer: a key
// is a name and a host, and a plan has at most 16 words with their alternatives.
const maxCursorBytes = 16 << 10

// cursorHead is the number of bytes before the key: version, hash of the query, rank, length of the key.
const cursorHead = 1 + 8 + 8 + 2

// Versions of the cursor format. behindVersion additionally lists, after the key, the portals that were
// held back. blendVersion has the number of these portals in any case, and before it the blend. modelVersion has the
// blend's model after its other fields. Version 4 was a shorter blend.
const (
	cursorVersion = 2
	behindVersion = 3
	blendVersion  = 5
	modelVersion  = 6
)

// blendBytes is the size of a blend in a cursor, modelBytes that of its model.
const (
	blendBytes = 14
	modelBytes = 4
)

// place is the position where a page goes on: after the agent of that rank and key. The rank is the
// score as bits, the time of the order, or whether the agent is up. The plan keeps the weights of the
// query's words on the first page. Pages do not repeat or skip agents that stay unchanged while others
// come and go.
type place struct {
	rank int64
	key  string
	plan []byte
	// behind lists the portals whose hits were held back on earlier pages, see pageFairly.
	behind []behind
	blend  blend // the zero blend if the query is searched by words only
}

func scoreOf(rank int64) float64 { return math.Float64frombits(uint64(rank)) }

func scoreRank(score float64) int64 { return int64(math.Float64bits(score)) }

func (p *place) after() *bm25.After {
	if p == nil {
		return nil
	}
	return &bm25.After{Score: math.Float64frombits(uint64(p.rank)), Key: p.key}
}

// encodeCursor returns the cursor of the page that begins after at. decodeCursor reads it.
func encodeCursor(q hub.Query, at place) string {
	b := make([]byte, 0, cursorHead+len(at.key)+len(at.plan))
	blended := at.blend != blend{}
	switch {
	case at.blend.model != 0:
		b = append(b, modelVersion)
	case blended:
		b = append(b, blendVersion)
	case len(at.behind) > 0:
		b = append(b, behindVersion)
	default:
		b = append(b, cursorVersion)
	}
	b = binary.BigEndian.AppendUint64(b, queryHash(q))
	b = binary.BigEndian.AppendUint64(b, uint64(at.rank))
	b = binary.BigEndian.AppendUint16(b, uint16(len(at.key)))
	b = append(b, at.key...)
	if blended {
		b = binary.BigEndian.AppendUint32(b, math.Float32bits(at.blend.unit))
		b = binary.BigEndian.AppendUint16(b, uint16(at.blend.reach.Distance))
		b = binary.BigEndian.AppendUint32(b, math.Float32bits(at.blend.reach.Cosine))
		b = binary.BigEndian.AppendUint32(b, at.blend.turn)
	}
	if at.blend.model != 0 {
		b = binary.BigEndian.AppendUint32(b, at.blend.model)
	}
	if blended || len(at.behind) > 0 {
		b = append(b, byte(len(at.behind)))
		for _, o := range at.behind {
			b = binary.BigEndian.AppendUint64(b, uint64(o.rank))
			for _, s := range []string{o.portal, o.key} {
				b = append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
			}
		}
	}
	b = append(b, at.plan...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// decodeCursor returns the place of q.Cursor. A cursor
// that this index did not make for this query is an Invalid fault.
func decodeCursor(q hub.Query) (*place, error) {
	if len(q.Cursor) > maxCursorBytes {
		return nil, badField("cursor", "is too long")
	}
	unknown := badField("cursor", "is not one that a search returned")
	b, err := base64.RawURLEncoding.Strict().DecodeString(q.Cursor)
	if err != nil || len(b) < cursorHead || b[0] < cursorVersion || b[0] > modelVersion || b[0] == 4 {
		return nil, unknown
	}
	if binary.BigEndian.Uint64(b[1:]) != queryHash(q) {
		return nil, badField("cursor", "belongs to another query or order; start again without it")
	}
	at := &place{rank: int64(binary.BigEndian.Uint64(b[9:]))}
	n := int(binary.BigEndian.Uint16(b[17:]))
	version := b[0]
	b = b[cursorHead:]
	if n > len(b) {
		return nil, unknown
	}
	at.key, at.plan = string(b[:n]), b[n:]
	if version >= blendVersion {
		size := blendBytes
		if version == modelVersion {
			size += modelBytes
		}
		if len(at.plan) < size {
			return nil, unknown
		}
		at.blend.unit = math.Float32frombits(binary.BigEndian.Uint32(at.plan))
		at.blend.reach.Distance = int(binary.BigEndian.Uint16(at.plan[4:]))
		at.blend.reach.Cosine = math.Float32frombits(binary.BigEndian.Uint32(at.plan[6:]))
		at.blend.turn = binary.BigEndian.Uint32(at.plan[10:])
		if version == modelVersion {
			at.blend.model = binary.BigEndian.Uint32(at.plan[blendBytes:])
		}
		if at.plan = at.plan[size:]; !at.blend.isValid() || version == modelVersion && at.blend.model == 0 {
			return nil, unknown
		}
	}
	if version >= behindVersion {
		var ok bool
		if at.behind, at.plan, ok = decodeBehind(at.plan, version >= blendVersion); !ok {
			return nil, unknown
		}
	}
	if len(at.plan) == 0 {
		at.plan = nil
	} else if score := scoreOf(at.rank); !bm25.CheckPlan(at.plan) ||
		orderOf(q) == byScore && (math.IsNaN(score) || math.IsInf(score, 0)) {
		return nil, unknown
	}
	return at, nil
}

// decodeBehind reads the list of held-back portals from a cursor and returns the bytes after the list.
// ok is false if b is malformed. The list may be empty only if none is true.
func decodeBehind(b []byte, none bool) (list []behind, rest []byte, ok bool) {
	if len(b) == 0 || b[0] == 0 && !none || b[0] > maxBehind {
		return nil, nil, false
	}
	n := int(b[0])
	b = b[1:]
	text := func() (string, bool) {
		if len(b) < 2 {
			return "", false
		}
		size := int(binary.BigEndian.Uint16(b))
		if b = b[2:]; size > len(b) {
			return "", false
		}
		s := string(b[:size])
		b = b[size:]
		return s, true
	}
	for range n {
		if len(b) < 8 {
			return nil, nil, false
		}
		o := behind{rank: int64(binary.BigEndian.Uint64(b))}
		b = b[8:]
		var named, keyed bool
		if o.portal, named = text(); !named || o.portal == "" {
			return nil, nil, false
		}
		if o.key, keyed = text(); !keyed || math.IsNaN(scoreOf(o.rank)) || math.IsInf(scoreOf(o.rank), 0) {
			return nil, nil, false
		}
		list = append(list, o)
	}
	return list, b, true
}

func badField(field, what string) error {
	return fault.Field(field, what)
}

// queryHash returns a hash of everything in a query that decides which agents match and in which order,
// but not of Limit and Cursor. A cursor carries the hash, so that it is refused for another query. The
// hash function is fixed, because cursors outlive the process.
func queryHash(q hub.Query) uint64 {
	h := fnv.New64a()
	write := func(s string) {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	write(q.Text)
	write(q.Sort)
	if mode := modeKey(&q); mode != "" {
		write(mode)
	}
	for f, values := range filtersOf(&q) {
		write(fmt.Sprint(f, len(values)))
		for _, v := range slices.Sorted(slices.Values(values)) {
			write(normalizeValue(f, v))
		}
	}
	if after := [2]int64{timeNumber(q.CreatedAfter), timeNumber(q.UpdatedAfter)}; after != [2]int64{never, never} {
		// The filters are hashed only if set, so that cursors made before these filters existed stay
		// valid.
		write(fmt.Sprint(after))
	}
	return h.Sum64()
}

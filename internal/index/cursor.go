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

// maxCursorBytes is above the longest cursor made: keys are names and hosts.
const maxCursorBytes = 2048

// cursorHead is the size before the key: version, hash of query, score.
const cursorHead = 1 + 8 + 8

const cursorVersion = 1

// A cursor says after which place of the order a page goes on: the score and
// the key of the last result. In a listing the score is 1 for agents that are
// alive and 0 for others, so that one form serves both. Pages do not repeat
// or skip agents that stay as they are while others come and go.

// encodeCursor returns the cursor that goes on behind a place.
func encodeCursor(q hub.Query, at bm25.After) string {
	b := make([]byte, 0, cursorHead+len(at.Key))
	b = append(b, cursorVersion)
	b = binary.BigEndian.AppendUint64(b, queryHash(q))
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(at.Score))
	b = append(b, at.Key...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// decodeCursor returns the place of q.Cursor, nil for the start. A cursor
// that this index did not make for this query is an Invalid fault.
func decodeCursor(q hub.Query) (*bm25.After, error) {
	if q.Cursor == "" {
		return nil, nil
	}
	if len(q.Cursor) > maxCursorBytes {
		return nil, badCursor("is too long")
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(q.Cursor)
	if err != nil || len(b) < cursorHead || b[0] != cursorVersion {
		return nil, badCursor("is not one that a search returned")
	}
	if binary.BigEndian.Uint64(b[1:]) != queryHash(q) {
		return nil, badCursor("belongs to another query; start again without it")
	}
	at := &bm25.After{
		Score: math.Float64frombits(binary.BigEndian.Uint64(b[9:])),
		Key:   string(b[cursorHead:]),
	}
	if math.IsNaN(at.Score) || math.IsInf(at.Score, 0) {
		return nil, badCursor("is not one that a search returned")
	}
	return at, nil
}

func badCursor(what string) error {
	return &fault.Error{
		Kind:   fault.Invalid,
		Safe:   fmt.Sprintf("cursor: %s", what),
		Fields: map[string]string{"cursor": what},
	}
}

// queryHash tells queries apart by all that decides which agents match, not
// by how they are paged. Cursors live longer than the process, so the hash is
// one that does not change.
func queryHash(q hub.Query) uint64 {
	h := fnv.New64a()
	write := func(s string) {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	write(q.Text)
	for f, values := range filters(q) {
		write(fmt.Sprint(f, len(values)))
		for _, v := range slices.Sorted(slices.Values(values)) {
			write(facetValue(f, v))
		}
	}
	return h.Sum64()
}

// filters returns the values asked for, by facet.
func filters(q hub.Query) [facetCount][]string {
	return [facetCount][]string{
		kindFacet: q.Kinds, tagFacet: q.Tags, skillFacet: q.Skills, portalFacet: q.Portals, liveFacet: q.Live,
	}
}

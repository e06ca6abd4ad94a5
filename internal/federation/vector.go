package federation

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"

	"agentsite/internal/record"
)

const (
	// VectorRowBytes is the encoded size of one portal in a vector of heads.
	VectorRowBytes = 24
	// MaxVector is the number of portals in a vector, so that it fits into a request of 256 KiB.
	MaxVector = 7000
)

// Mark is a short form of a portal's id in a vector of heads: the first 8 bytes of the id's digest. A
// collision takes 2^32 tries and affects only the attacker's own two portals.
type Mark uint64

// MarkOf returns the mark of a portal, 0 for an invalid id.
func MarkOf(portal record.PortalID) Mark {
	d, _ := portal.Digest()
	return Mark(binary.BigEndian.Uint64(d[:8]))
}

// String returns the mark as 16 hexadecimal digits.
func (m Mark) String() string {
	const digits = "0123456789abcdef"
	var b [16]byte
	for i := range b {
		b[i] = digits[m>>(60-4*i)&15]
	}
	return string(b[:])
}

// MarshalText implements encoding.TextMarshaler.
func (m Mark) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *Mark) UnmarshalText(b []byte) error {
	if len(b) != 16 {
		return errors.New("16 hexadecimal digits belong there")
	}
	*m = 0
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		default:
			return errors.New("16 hexadecimal digits belong there")
		}
		*m = *m<<4 | Mark(c)
	}
	return nil
}

// Held is one row of a vector: the version of the head that is stored of a portal.
type Held struct {
	Mark Mark
	record.Version
}

// Vector lists the heads that a portal stores, in ascending order of mark. Comparing two vectors finds
// all records that either portal lacks, because each log has only one writer.
type Vector []Held

// Sort sorts the rows by mark, as Of and Encode require.
func (v Vector) Sort() {
	slices.SortStableFunc(v, func(a, b Held) int {
		switch {
		case a.Mark < b.Mark:
			return -1
		case a.Mark > b.Mark:
			return 1
		}
		return 0
	})
}

// Of returns the stored version for a mark, zero for none. The vector must be sorted.
func (v Vector) Of(m Mark) record.Version {
	i, ok := slices.BinarySearchFunc(v, m, func(h Held, m Mark) int {
		switch {
		case h.Mark < m:
			return -1
		case h.Mark > m:
			return 1
		}
		return 0
	})
	if !ok {
		return record.Version{}
	}
	return v[i].Version
}

// Encode returns the vector in wire form. The vector must be sorted.
func (v Vector) Encode() string {
	b := make([]byte, 0, len(v)*VectorRowBytes)
	for _, h := range v {
		b = binary.BigEndian.AppendUint64(b, uint64(h.Mark))
		b = binary.BigEndian.AppendUint64(b, uint64(h.Epoch))
		b = binary.BigEndian.AppendUint64(b, uint64(h.Seq))
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// ParseVector parses a vector of at most MaxVector rows; an error if it is malformed or unsorted.
func ParseVector(s string) (Vector, error) {
	enc := base64.RawURLEncoding.Strict()
	if enc.DecodedLen(len(s)) > MaxVector*VectorRowBytes {
		return nil, errors.New("have has too many portals; ask with from and to")
	}
	b, err := enc.DecodeString(s)
	if err != nil || len(b)%VectorRowBytes != 0 {
		return nil, errors.New("have is not base64url of 24 bytes for each portal")
	}
	v := make(Vector, 0, len(b)/VectorRowBytes)
	for ; len(b) > 0; b = b[VectorRowBytes:] {
		epoch, seq := binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:])
		h := Held{Mark(binary.BigEndian.Uint64(b)), record.Version{Epoch: int64(epoch), Seq: int64(seq)}}
		if h.Epoch < 0 || h.Seq < 0 || len(v) > 0 && v[len(v)-1].Mark >= h.Mark {
			return nil, errors.New("have is not in ascending order, or has numbers that are too large")
		}
		v = append(v, h)
	}
	return v, nil
}

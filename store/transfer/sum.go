package transfer

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// Sum is the number of rows of a table and the sum of their hashes, which does not depend on their order.
type Sum struct {
	Rows int64
	hash [4]uint64
}

// add counts a row. Its values are int64, string, []byte or nil.
func (s *Sum) add(row []any) error {
	h := sha256.New()
	var b []byte
	for _, v := range row {
		b = b[:0]
		switch v := v.(type) {
		case nil:
			b = append(b, 0)
		case int64:
			b = binary.BigEndian.AppendUint64(append(b, 1), uint64(v))
		case string:
			b = binary.BigEndian.AppendUint64(append(b, 2), uint64(len(v)))
			b = append(b, v...)
		case []byte:
			b = binary.BigEndian.AppendUint64(append(b, 3), uint64(len(v)))
			b = append(b, v...)
		default:
			return fmt.Errorf("a value of type %T", v)
		}
		h.Write(b)
	}
	sum := h.Sum(nil)
	for i := range s.hash {
		s.hash[i] += binary.BigEndian.Uint64(sum[8*i:])
	}
	s.Rows++
	return nil
}

// Text returns the checksum in hexadecimal.
func (s Sum) Text() string {
	var b []byte
	for _, n := range s.hash {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return hex.EncodeToString(b)
}

// parseSum returns the Sum with the number of rows and the text of its checksum.
func parseSum(rows int64, text string) (Sum, error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != sha256.Size {
		return Sum{}, fmt.Errorf("the stored checksum %q is damaged", text)
	}
	s := Sum{Rows: rows}
	for i := range s.hash {
		s.hash[i] = binary.BigEndian.Uint64(b[8*i:])
	}
	return s, nil
}

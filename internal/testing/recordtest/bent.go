package recordtest

import "bytes"

// Bent is a record with another signature in it, which is as well formed and
// does not hold.
func Bent(wire []byte) []byte {
	b := bytes.Clone(wire)
	at := bytes.Index(b, []byte(`","s":"`)) + len(`","s":"`)
	if b[at] == 'A' {
		b[at] = 'B'
	} else {
		b[at] = 'A'
	}
	return b
}

package recordtest

import "bytes"

// Bent returns a copy of a record with a changed signature. It is well formed, but the signature is
// wrong.
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

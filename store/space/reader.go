package space

import "io"

// Reader reads from In and fails once the disk is nearly full, because many uploads at the same time may fill it.
type Reader struct {
	In    io.Reader
	Space *Space
}

func (r Reader) Read(b []byte) (int, error) {
	if err := r.Space.Check(int64(len(b)), false); err != nil {
		return 0, err
	}
	return r.In.Read(b)
}

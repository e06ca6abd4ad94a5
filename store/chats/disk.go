package chats

import (
	"context"
	"io"
)

// CtxReader is a Reader that fails with the error of Ctx once that has ended, so that a long copy can be
// canceled.
type CtxReader struct {
	Ctx context.Context
	In  io.Reader
}

func (c CtxReader) Read(b []byte) (int, error) {
	if err := c.Ctx.Err(); err != nil {
		return 0, err
	}
	return c.In.Read(b)
}

// DiskWriter records the error of the last write in Err, so that the caller of a copy can
// distinguish a failed disk from a failed source.
type DiskWriter struct {
	W   io.Writer
	Err error
}

func (d *DiskWriter) Write(b []byte) (int, error) {
	n, err := d.W.Write(b)
	d.Err = err
	return n, err
}

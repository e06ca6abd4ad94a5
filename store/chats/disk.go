package chats

import (
	"context"
	"io"
)

// CtxReader ends a long copy when ctx does.
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

// DiskWriter remembers that it was the disk that failed, not the backup.
type DiskWriter struct {
	W   io.Writer
	Err error
}

func (d *DiskWriter) Write(b []byte) (int, error) {
	n, err := d.W.Write(b)
	d.Err = err
	return n, err
}

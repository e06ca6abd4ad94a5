package respond

import (
	"bytes"
	"sync"
)

// buffers are reused, because a page is too large for the allocator's cheap size classes.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxReused is the capacity of the largest reused buffer.
const maxReused = 512 << 10

func NewBuffer() *bytes.Buffer {
	buf := buffers.Get().(*bytes.Buffer)
	buf.Reset()
	return buf
}

// FreeBuffer returns a buffer for reuse. Its bytes may not be used afterwards.
func FreeBuffer(buf *bytes.Buffer) {
	if buf.Cap() <= maxReused {
		buffers.Put(buf)
	}
}

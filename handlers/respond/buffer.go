package respond

import (
	"bytes"
	"sync"
)

// buffers are reused: a page is larger than what the allocator gives away
// cheaply.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxReused bounds the buffers that are kept.
const maxReused = 512 << 10

func NewBuffer() *bytes.Buffer {
	buf := buffers.Get().(*bytes.Buffer)
	buf.Reset()
	return buf
}

// FreeBuffer gives a buffer back; nobody may use its bytes any more.
func FreeBuffer(buf *bytes.Buffer) {
	if buf.Cap() <= maxReused {
		buffers.Put(buf)
	}
}

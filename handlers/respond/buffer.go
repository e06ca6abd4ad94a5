package respond

import (
	"bytes"
	"sync"
)

// buffers keeps buffers for reuse, because allocating one as large as a page is slow.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxReused is the capacity in bytes above which a buffer is not kept for reuse, so that one large answer
// does not occupy memory for ever.
const maxReused = 512 << 10

func NewBuffer() *bytes.Buffer {
	buf := buffers.Get().(*bytes.Buffer)
	buf.Reset()
	return buf
}

// FreeBuffer keeps a buffer of NewBuffer for reuse. The caller must not use its bytes afterwards.
func FreeBuffer(buf *bytes.Buffer) {
	if buf.Cap() <= maxReused {
		buffers.Put(buf)
	}
}

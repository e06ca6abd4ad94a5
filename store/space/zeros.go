package space

import "io"

// writeZeros writes size bytes, for file systems that cannot allocate without writing.
func writeZeros(w io.Writer, size int64) error {
	zeros := make([]byte, 1<<20)
	for size > 0 {
		n, err := w.Write(zeros[:min(size, int64(len(zeros)))])
		if err != nil {
			return err
		}
		size -= int64(n)
	}
	return nil
}

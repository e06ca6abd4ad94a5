package embedding

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"sync"
)

// CacheFile is the name of the cache in the data folder. Without it all texts are asked for again.
const CacheFile = "embeddings.cache"

// cacheForm is the version of the file's format.
const cacheForm = 2

// header is the first line of the file, as JSON. A file of another model or form is replaced.
type header struct {
	Form  int    `json:"form"`
	Model string `json:"model"`
	Dims  int    `json:"dims"`
	// Mark is the vector of a fixed text. It shows when a server has another model under the same name.
	Mark []float32 `json:"mark"`
}

// sameMark is the cosine from which two marks are of one model. Servers that compute with other precision differ
// less.
const sameMark = 0.99

// isSame reports whether vectors of both headers may be compared.
func (h header) isSame(o header) bool {
	if h.Form != o.Form || h.Model != o.Model || h.Dims != o.Dims || len(h.Mark) != len(o.Mark) {
		return false
	}
	return dotProduct(h.Mark, o.Mark) >= sameMark
}

// textKey is the keyed hash of a text, from which a text that was erased cannot be guessed.
type textKey [16]byte

func (c *cache) keyOf(text string) (k textKey) {
	h := hmac.New(sha256.New, c.secret)
	io.WriteString(h, text) // a hash never fails
	copy(k[:], h.Sum(nil))
	return k
}

// cache keeps the vectors of texts of one model in a file, with a byte for each number of a vector. After its header
// the file has records of one size: key, scale, numbers, and a checksum of these. It is only a cache, so nothing is
// synced, and the file ends at the first record that is damaged.
type cache struct {
	path   string
	secret []byte // for textKey

	mu    sync.Mutex // guards the following fields
	file  *os.File
	head  header
	start int64             // where the records begin
	size  int64             // of the file
	at    map[textKey]int64 // where each record begins
}

// readHeader returns the header of the file at path and its size; the zero header if there is none that can be used.
func readHeader(path string) (h header, size int64) {
	f, err := os.Open(path)
	if err != nil {
		return header{}, 0
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, maxAnswer)).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &h) != nil || h.Dims < 1 || h.Dims > maxDims {
		return header{}, 0
	}
	return h, int64(len(line))
}

// openCache opens the file at path for the vectors that h describes. secret is the key for the hashes of texts. A file
// of another model is replaced by an empty one.
func openCache(path string, secret []byte, h header) (*cache, error) {
	h.Form = cacheForm
	c := &cache{path: path, secret: secret, head: h}
	old, start := readHeader(path)
	if start == 0 || !old.isSame(h) {
		return c, c.rewriteFile(nil)
	}
	c.head, c.start, c.at = old, start, make(map[textKey]int64)
	var err error
	if c.file, err = os.OpenFile(path, os.O_RDWR, 0o600); err != nil {
		return nil, fmt.Errorf("open the cache of vectors: %w", err)
	}
	if err := c.readKeys(); err != nil {
		c.file.Close()
		return nil, fmt.Errorf("read the cache of vectors: %w", err)
	}
	return c, nil
}

// recordSize returns the size of a record: key, scale, numbers, checksum.
func (c *cache) recordSize() int { return len(textKey{}) + 4 + c.head.Dims + 4 }

// readKeys fills at from the file, and cuts it at a damaged record.
func (c *cache) readKeys() error {
	if _, err := c.file.Seek(c.start, io.SeekStart); err != nil {
		return err
	}
	r := bufio.NewReaderSize(c.file, 1<<20)
	record := make([]byte, c.recordSize())
	for c.size = c.start; ; c.size += int64(len(record)) {
		_, err := io.ReadFull(r, record)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || err == nil && !isWhole(record) {
			return c.file.Truncate(c.size)
		}
		if err != nil {
			return err
		}
		c.at[textKey(record)] = c.size
	}
}

// isWhole reports whether the checksum of a record is right.
func isWhole(record []byte) bool {
	body := len(record) - 4
	return crc32.ChecksumIEEE(record[:body]) == binary.BigEndian.Uint32(record[body:])
}

// getVector returns the vector of a text; nil if the cache does not have it.
func (c *cache) getVector(text string) []float32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	record := c.readRecord(c.keyOf(text))
	if record == nil {
		return nil
	}
	return readVector(record[len(textKey{}) : len(record)-4])
}

// readRecord returns the record of a key; nil if there is none.
func (c *cache) readRecord(k textKey) []byte {
	at, ok := c.at[k]
	if !ok {
		return nil
	}
	record := make([]byte, c.recordSize())
	if _, err := c.file.ReadAt(record, at); err != nil || !isWhole(record) {
		return nil
	}
	return record
}

// putVectors adds the vectors of texts; nil ones are left out.
func (c *cache) putVectors(texts []string, vectors [][]float32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []byte
	added := make(map[textKey]int64)
	for i, v := range vectors {
		k := c.keyOf(texts[i])
		if _, known := c.at[k]; known || len(v) != c.head.Dims {
			continue
		}
		if _, twice := added[k]; twice {
			continue
		}
		added[k] = c.size + int64(len(out))
		out = appendRecord(out, k, v)
	}
	if _, err := c.file.WriteAt(out, c.size); err != nil {
		return fmt.Errorf("write the cache of vectors: %w", err)
	}
	c.size += int64(len(out))
	for k, at := range added {
		c.at[k] = at
	}
	return nil
}

func appendRecord(out []byte, k textKey, v []float32) []byte {
	first := len(out)
	out = append(out, k[:]...)
	out = appendVector(out, v)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[first:]))
}

// appendVector appends a vector as its scale and a byte for each number.
func appendVector(out []byte, v []float32) []byte {
	most := float32(0)
	for _, f := range v {
		most = max(most, f, -f)
	}
	scale := most / math.MaxInt8
	out = binary.BigEndian.AppendUint32(out, math.Float32bits(scale))
	for _, f := range v {
		out = append(out, byte(int8(math.Round(float64(f/scale)))))
	}
	return out
}

func readVector(b []byte) []float32 {
	scale := math.Float32frombits(binary.BigEndian.Uint32(b))
	v := make([]float32, len(b)-4)
	for i, n := range b[4:] {
		v[i] = scale * float32(int8(n))
	}
	return unitVector(v)
}

// roundVector returns a vector as it will be read from a cache, so that a restart changes no search.
func roundVector(v []float32) []float32 {
	if v == nil {
		return nil
	}
	return readVector(appendVector(nil, v))
}

// keepUsed removes all vectors but those of the given texts. It does nothing if there are no others.
func (c *cache) keepUsed(used map[textKey]bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []textKey
	for k := range c.at {
		if used[k] {
			list = append(list, k)
		}
	}
	if len(list) == len(c.at) {
		return nil
	}
	return c.rewriteFile(list)
}

// rewriteFile writes a new file with the header and the records of keys, and continues with it.
func (c *cache) rewriteFile(keys []textKey) (err error) {
	line, err := json.Marshal(c.head)
	if err != nil {
		return err
	}
	name := c.path + ".new"
	f, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("make the cache of vectors: %w", err)
	}
	at, size := make(map[textKey]int64, len(keys)), int64(len(line)+1)
	w := bufio.NewWriterSize(f, 1<<20)
	_, _ = w.Write(append(line, '\n')) // w keeps the first error until Flush
	for _, k := range keys {
		if record := c.readRecord(k); record != nil {
			at[k] = size
			size += int64(len(record))
			_, _ = w.Write(record)
		}
	}
	if err = w.Flush(); err == nil {
		err = os.Rename(name, c.path)
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("make the cache of vectors: %w", err)
	}
	if c.file != nil {
		c.file.Close()
	}
	c.file, c.start, c.size, c.at = f, int64(len(line)+1), size, at
	return nil
}

// countVectors returns the number of vectors.
func (c *cache) countVectors() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.at)
}

func (c *cache) closeFile() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.file.Close() // it is only a cache
}

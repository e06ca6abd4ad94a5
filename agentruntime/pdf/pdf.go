// Package pdf reads the text of PDF files, which come from strangers, in a child process of the portal's own binary.
// One process reads one file at a time, and ends when it was not used for some minutes. Create a Reader with New.
package pdf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"

	"agentsite/agentruntime/pdf/child"
	"agentsite/agentruntime/wasm/sandbox"
	"agentsite/internal/limit"
)

// Config is the configuration of a Reader.
type Config struct {
	// Command starts a process; its program must call child.Run. It must not be empty.
	Command []string
	// Folder keeps the compiled engine; empty keeps none.
	Folder string
	Log    *slog.Logger
}

// Bounds of reading one file. Compiling the engine takes seconds at the first file after an update of the portal.
const (
	maxTime     = 3 * time.Minute // with waiting for other files, and for the engine
	readTime    = 10 * time.Second
	loadTime    = 3 * time.Minute
	memoryPages = 4096       // of 64 KiB
	resident    = 640 << 20  // of the process
	data        = 1280 << 20 // writable memory, which Go and the engine partly only reserve
	cacheBytes  = 256 << 20
)

// Reader reads the text of PDF files. It is safe for concurrent use; close it.
type Reader struct {
	pool  *sandbox.Pool
	turns limit.Turns // of the owners of files
}

// New returns a Reader without a process.
func New(cfg Config) *Reader {
	limits := sandbox.Limits{Module: len(child.Engine), Pages: memoryPages, Output: child.MaxText, Run: readTime,
		Start: readTime, Load: loadTime, Resident: resident, Data: data, Calls: 1}
	pool := sandbox.New(sandbox.Config{Command: cfg.Command, Folder: cfg.Folder, CacheBytes: cacheBytes, Children: 1,
		Limits: limits, Modules: engine{}, Log: cfg.Log})
	return &Reader{pool: pool}
}

// Close ends the process. Calls under way fail.
func (r *Reader) Close() { r.pool.Close() }

// engine implements sandbox.Modules.
type engine struct{}

func (engine) ReadModule(context.Context, string) ([]byte, error) { return []byte(child.Engine), nil }

// ErrNoText is returned for files without a text that can be read: no PDF, broken, encrypted, larger than 32 MiB, or
// one that needs more time or memory than a file may.
var ErrNoText = errors.New("the file has no text that can be read")

// Text returns the text of a PDF file of size bytes, at most 256 KiB of it. It reads file until it returns. The files
// of one owner are read one after another, so that those of others need not wait for all of them.
func (r *Reader) Text(ctx context.Context, owner string, file io.ReadSeeker, size int64) (string, error) {
	if size <= 0 || size > child.MaxFile {
		return "", fmt.Errorf("%w: it has %d bytes", ErrNoText, size)
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	done, err := r.turns.Begin(ctx, owner, maxTime)
	if err != nil {
		return "", err
	}
	defer done()
	input, err := json.Marshal(child.Input{Size: size})
	if err != nil {
		return "", err
	}
	out, err := r.pool.Call(ctx, child.Engine, nil, input, source{file, size})
	if f, ok := errors.AsType[*sandbox.Failure](err); ok {
		return "", fmt.Errorf("%w: %s", ErrNoText, f.Text)
	}
	if len(out) > child.MaxText {
		return "", fmt.Errorf("%w: the process returned %d bytes", ErrNoText, len(out))
	}
	return string(out), err
}

// source implements sandbox.Host: the process reads the file by it.
type source struct {
	file io.ReadSeeker
	size int64
}

// Call implements sandbox.Host.
func (s source) Call(_ context.Context, name string, arg []byte) ([]byte, error) {
	at, err := strconv.ParseInt(string(arg), 10, 64)
	if name != child.ReadFunction || err != nil || at < 0 || at >= s.size {
		return nil, errors.New("there is no such part of the file")
	}
	b := make([]byte, min(child.Chunk, s.size-at))
	if _, err := s.file.Seek(at, io.SeekStart); err != nil {
		return nil, err
	}
	_, err = io.ReadFull(s.file, b)
	return b, err
}

// Log implements sandbox.Host.
func (source) Log(string) {}

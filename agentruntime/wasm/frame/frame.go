// Package frame is the protocol between the portal and a child process that runs hosted programs. Frames go over two
// pipes: one to the child, one back. The portal does not trust the child: each length is checked before anything is
// read, and a frame that does not fit ends the child.
package frame

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Kind is the kind of a frame.
type Kind byte

// The kinds. The portal sends Setup, Module, Call, Answer and Cancel; the child sends the others.
const (
	// Setup is the first frame: a JSON Settings. Module follows, with the bytes of the module.
	Setup Kind = iota + 1
	Module
	// Call begins a call: a JSON Start.
	Call
	// Answer is the answer to the Host frame of a call: a Status byte and the bytes for the program.
	Answer
	// Cancel ends a call. The child sends its Done all the same.
	Cancel
	// Ready is a JSON State, sent once after Module.
	Ready
	// Host asks for a function of the portal: a byte with the length of the name, the name, the argument. A call sends
	// one at a time.
	Host
	// Log is a line of the program's log.
	Log
	// Done ends a call: a Status byte, and the output or a text about the failure.
	Done
)

// Status is the first byte of an Answer or Done frame.
type Status byte

// The states of an Answer or Done frame. Answers are OK or Failed.
const (
	OK Status = iota
	// Failed is an error that the program reports, or an answer that is an error.
	Failed
	// Trapped is a program that broke a rule of WebAssembly or a bound of the sandbox.
	Trapped
	// Expired is a program that was stopped because its time was up or its call was cancelled.
	Expired
)

// Bounds of frames, in bytes.
const (
	// MaxBody bounds every frame but Module.
	MaxBody = 1 << 20
	// MaxModule bounds a Module frame.
	MaxModule = 64 << 20
	// maxName bounds the name of a function.
	maxName = 32
	header  = 9
)

// ErrFrame is wrapped by all errors about frames that break the protocol.
var ErrFrame = errors.New("broken frame")

// Frame is one message. Call is the number of the call that it belongs to, 0 for none.
type Frame struct {
	Kind Kind
	Call uint32
	Body []byte
}

// Settings are the bounds that a child keeps.
type Settings struct {
	// Cache is the folder for the compiled module; empty for none.
	Cache string `json:"cache,omitempty"`
	// Pages bounds a memory of the program, in pages of 64 KiB.
	Pages uint32 `json:"pages"`
	// Output bounds the bytes of the program's output, Block those that are shared with the portal's functions.
	Output int `json:"output"`
	Block  int `json:"block"`
	// StartMillis bounds the time of the program's own initialization.
	StartMillis int64 `json:"start_ms"`
	// DataBytes bounds the writable memory of the process, as a limit of the operating system; 0 for none.
	DataBytes uint64 `json:"data_bytes,omitempty"`
	// Isolated is true if the process has namespaces of its own, so that it may shut itself into the cache folder.
	Isolated bool `json:"isolated,omitempty"`
}

// State is the result of loading a module. Failure is a text for its author or, if Unlocked, for the operator: the
// process could not give up its rights. Guards are the protections that hold besides WebAssembly's own.
type State struct {
	Failure  string   `json:"failure,omitempty"`
	Unlocked bool     `json:"unlocked,omitempty"`
	Guards   []string `json:"guards,omitempty"`
}

// Guards of a State: GuardLimits are limits of the operating system. GuardNetwork, GuardProcesses and GuardFolder hold in
// namespaces of its own: no network, no other processes, no folder but that of the cache. GuardPrivileges: it has no
// capabilities and can gain none.
const (
	GuardLimits     = "limits"
	GuardNetwork    = "network"
	GuardProcesses  = "processes"
	GuardFolder     = "folder"
	GuardPrivileges = "privileges"
)

// Start begins a call. Millis bounds the time in which the program itself runs; waiting for the portal does not count.
type Start struct {
	Millis int64             `json:"ms"`
	Config map[string]string `json:"config,omitempty"`
	Input  json.RawMessage   `json:"input"`
}

// Write writes a frame with one call of w, so that writers need only a lock of their own.
func Write(w io.Writer, f Frame) error {
	if len(f.Body) > limitOf(f.Kind) {
		return fmt.Errorf("%w: %d bytes", ErrFrame, len(f.Body))
	}
	b := make([]byte, header, header+len(f.Body))
	binary.BigEndian.PutUint32(b, uint32(len(f.Body)))
	b[4] = byte(f.Kind)
	binary.BigEndian.PutUint32(b[5:], f.Call)
	_, err := w.Write(append(b, f.Body...))
	return err
}

// Read reads a frame. It allocates no more than has arrived, in steps, so that a false length costs nothing.
func Read(r io.Reader) (Frame, error) {
	var h [header]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return Frame{}, err
	}
	f := Frame{Kind: Kind(h[4]), Call: binary.BigEndian.Uint32(h[5:])}
	size := int64(binary.BigEndian.Uint32(h[:4]))
	if f.Kind < Setup || f.Kind > Done || size > int64(limitOf(f.Kind)) {
		return Frame{}, fmt.Errorf("%w: kind %d with %d bytes", ErrFrame, f.Kind, size)
	}
	body, err := io.ReadAll(io.LimitReader(r, size))
	if err != nil {
		return Frame{}, err
	}
	if int64(len(body)) < size {
		return Frame{}, io.ErrUnexpectedEOF
	}
	f.Body = body
	return f, nil
}

func limitOf(k Kind) int {
	if k == Module {
		return MaxModule
	}
	return MaxBody
}

// WithStatus returns the body of an Answer or Done frame. A body that is too long becomes a failure.
func WithStatus(s Status, body []byte) []byte {
	if len(body) >= MaxBody {
		return append([]byte{byte(Failed)}, "the data is too long"...)
	}
	return append([]byte{byte(s)}, body...)
}

// SplitStatus is the inverse of WithStatus.
func SplitStatus(b []byte) (Status, []byte, error) {
	if len(b) == 0 || Status(b[0]) > Expired {
		return 0, nil, fmt.Errorf("%w: no status", ErrFrame)
	}
	return Status(b[0]), b[1:], nil
}

// HostBody returns the body of a Host frame.
func HostBody(name string, arg []byte) []byte {
	return append(append([]byte{byte(len(name))}, name...), arg...)
}

// SplitHost is the inverse of HostBody.
func SplitHost(b []byte) (name string, arg []byte, err error) {
	if len(b) == 0 || b[0] == 0 || b[0] > maxName || len(b) < 1+int(b[0]) {
		return "", nil, fmt.Errorf("%w: no name of a function", ErrFrame)
	}
	n := 1 + int(b[0])
	return string(b[1:n]), b[n:], nil
}

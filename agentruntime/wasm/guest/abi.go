package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"agentsite/agentruntime/wasm/frame"
	"agentsite/agentruntime/wasm/module"
)

// blocks is the memory that a program shares with the portal in Extism's ABI: blocks at offsets, of which 0 is none. It
// belongs to one instance. A program may use any offset, so each access is checked.
type blocks struct {
	bytes []byte
	sizes map[uint64]uint64
	freed []uint64 // blocks that can be used again
	most  int
}

const (
	firstBlock = 16
	// maxBlocks bounds the number of blocks that are in use at once, maxFreed those that are searched for room.
	maxBlocks = 100_000
	maxFreed  = 32
)

func newBlocks(most int) *blocks {
	return &blocks{bytes: make([]byte, firstBlock), sizes: make(map[uint64]uint64), most: most}
}

var errBlocks = errors.New("the program uses more shared memory than it may")

// allocBlock returns the offset of a new block of zeros; 0 for size 0.
func (m *blocks) allocBlock(size uint64) uint64 {
	if size == 0 {
		return 0
	}
	for i, at := range m.freed {
		if m.sizes[at] >= size {
			m.freed = slices.Delete(m.freed, i, i+1)
			m.sizes[at] = size
			clear(m.bytes[at : at+size])
			return at
		}
	}
	at := uint64(len(m.bytes)+7) &^ 7
	if size > uint64(m.most) || at+size > uint64(m.most) || len(m.sizes) >= maxBlocks {
		panic(errBlocks)
	}
	m.bytes = slices.Grow(m.bytes, int(at+size)-len(m.bytes))[:at+size]
	m.sizes[at] = size
	return at
}

// freeBlock gives a block back. It is not an error if there is none.
func (m *blocks) freeBlock(at uint64) {
	size, ok := m.sizes[at]
	if !ok || slices.Contains(m.freed, at) {
		return
	}
	if at+size == uint64(len(m.bytes)) {
		clear(m.bytes[at:])
		m.bytes = m.bytes[:at]
		delete(m.sizes, at)
		return
	}
	if len(m.freed) >= maxFreed {
		delete(m.sizes, m.freed[0]) // its bytes are lost until the instance ends
		m.freed = m.freed[1:]
	}
	m.freed = append(m.freed, at)
}

// bytesAt returns size bytes at an offset, and panics if they are outside the shared memory.
func (m *blocks) bytesAt(off, size uint64) []byte {
	end := off + size
	if end < off || end > uint64(len(m.bytes)) {
		panic(fmt.Errorf("the program reads or writes outside its shared memory, at %d", off))
	}
	return m.bytes[off:end:end]
}

// blockAt returns the bytes of a block, nil if there is none.
func (m *blocks) blockAt(off uint64) []byte { return m.bytesAt(off, m.sizes[off]) }

// putBlock stores bytes in a new block and returns its offset.
func (m *blocks) putBlock(b []byte) uint64 {
	at := m.allocBlock(uint64(len(b)))
	copy(m.bytes[at:], b)
	return at
}

// The types of parameters and results.
const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

// operation runs a function: it gets the parameters in s and puts the result into s[0].
type operation func(ctx context.Context, in *instance, s []uint64)

// function is a function of the portal for programs.
type function struct {
	name            string
	params, results []api.ValueType
	run             operation
}

var (
	one  = []api.ValueType{i64}
	two  = []api.ValueType{i64, i64}
	none = []api.ValueType{}
)

// memoryFunctions are the functions of Extism's kernel.
var memoryFunctions = []function{
	{"alloc", one, one, func(_ context.Context, in *instance, s []uint64) { s[0] = in.shared.allocBlock(s[0]) }},
	{"free", one, none, func(_ context.Context, in *instance, s []uint64) { in.shared.freeBlock(s[0]) }},
	{"length", one, one, func(_ context.Context, in *instance, s []uint64) { s[0] = in.shared.sizes[s[0]] }},
	{"length_unsafe", one, one, func(_ context.Context, in *instance, s []uint64) { s[0] = in.shared.sizes[s[0]] }},
	{"load_u8", one, []api.ValueType{i32}, func(_ context.Context, in *instance, s []uint64) {
		s[0] = uint64(in.shared.bytesAt(s[0], 1)[0])
	}},
	{"load_u64", one, one, func(_ context.Context, in *instance, s []uint64) {
		s[0] = order.Uint64(in.shared.bytesAt(s[0], 8))
	}},
	{"store_u8", []api.ValueType{i64, i32}, none, func(_ context.Context, in *instance, s []uint64) {
		in.shared.bytesAt(s[0], 1)[0] = byte(s[1])
	}},
	{"store_u64", two, none, func(_ context.Context, in *instance, s []uint64) {
		order.PutUint64(in.shared.bytesAt(s[0], 8), s[1])
	}},
	{"input_length", none, one, func(_ context.Context, in *instance, s []uint64) { s[0] = in.inputSize }},
	{"input_offset", none, one, func(_ context.Context, in *instance, s []uint64) { s[0] = in.input }},
	{"input_load_u8", one, []api.ValueType{i32}, func(_ context.Context, in *instance, s []uint64) {
		s[0] = uint64(in.inputBytes(s[0], 1)[0])
	}},
	{"input_load_u64", one, one, func(_ context.Context, in *instance, s []uint64) {
		s[0] = order.Uint64(in.inputBytes(s[0], 8))
	}},
	{"input_set", two, none, func(_ context.Context, in *instance, s []uint64) {
		in.shared.bytesAt(s[0], s[1])
		in.input, in.inputSize = s[0], s[1]
	}},
	{"output_set", two, none, func(_ context.Context, in *instance, s []uint64) {
		in.shared.bytesAt(s[0], s[1])
		in.output, in.outputSize = s[0], s[1]
	}},
	{"output_length", none, one, func(_ context.Context, in *instance, s []uint64) { s[0] = in.outputSize }},
	{"output_offset", none, one, func(_ context.Context, in *instance, s []uint64) { s[0] = in.output }},
	{"error_set", one, none, func(_ context.Context, in *instance, s []uint64) { in.failure = s[0] }},
	{"error_get", none, one, func(_ context.Context, in *instance, s []uint64) { s[0] = in.failure }},
	{"memory_bytes", none, one, func(_ context.Context, in *instance, s []uint64) { s[0] = uint64(len(in.shared.bytes)) }},
	{"reset", none, none, func(_ context.Context, in *instance, _ []uint64) {
		*in.shared = *newBlocks(in.shared.most)
		in.input, in.inputSize, in.output, in.outputSize, in.failure = 0, 0, 0, 0, 0
	}},
}

// dataFunctions are the functions of Extism's host: configuration, variables, HTTP and logs.
var dataFunctions = []function{
	{"config_get", one, one, func(_ context.Context, in *instance, s []uint64) {
		value, ok := in.currentCall().config[string(in.shared.blockAt(s[0]))]
		if s[0] = 0; ok {
			s[0] = in.shared.putBlock([]byte(value))
		}
	}},
	{"var_get", one, one, func(_ context.Context, in *instance, s []uint64) {
		s[0] = in.shared.putBlock(in.vars[string(in.shared.blockAt(s[0]))])
	}},
	{"var_set", two, none, func(_ context.Context, in *instance, s []uint64) { in.setVariable(s[0], s[1]) }},
	{"http_request", two, one, func(ctx context.Context, in *instance, s []uint64) { in.requestHTTP(ctx, s) }},
	{"http_status_code", none, []api.ValueType{i32}, func(_ context.Context, in *instance, s []uint64) {
		s[0] = uint64(uint32(in.status))
	}},
	{"http_headers", none, one, func(_ context.Context, in *instance, s []uint64) {
		s[0] = in.shared.putBlock(in.headers)
	}},
	{"get_log_level", none, []api.ValueType{i32}, func(_ context.Context, _ *instance, s []uint64) { s[0] = logInfo }},
	{"log_trace", one, none, func(_ context.Context, in *instance, s []uint64) { in.shared.freeBlock(s[0]) }},
	{"log_debug", one, none, func(_ context.Context, in *instance, s []uint64) { in.shared.freeBlock(s[0]) }},
	{"log_info", one, none, logBlock},
	{"log_warn", one, none, logBlock},
	{"log_error", one, none, logBlock},
}

// logInfo is the least level that is logged, as Extism counts them.
const logInfo = 2

func logBlock(_ context.Context, in *instance, s []uint64) {
	in.writeLog(in.shared.blockAt(s[0]))
	in.shared.freeBlock(s[0])
}

// PortalFunctions are the names of the portal's own functions: each takes a block and returns one.
var PortalFunctions = []string{"reply", "status", "artifact", "find", "ask", "memory", "library", "model"}

// HTTPFunction is the name of the portal's function behind Extism's HTTP request.
const HTTPFunction = "http"

// HTTPRequest is the argument of HTTPFunction, HTTPResponse its answer.
type HTTPRequest struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    []byte            `json:"body,omitempty"`
}

// HTTPResponse is the answer of a server.
type HTTPResponse struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    []byte            `json:"body,omitempty"`
}

// maxVariables bounds the bytes of the variables of one instance.
const maxVariables = 1 << 20

func (in *instance) setVariable(name, value uint64) {
	key := string(in.shared.blockAt(name))
	if value == 0 {
		delete(in.vars, key)
		return
	}
	b := slices.Clone(in.shared.blockAt(value))
	size := len(key) + len(b)
	for k, v := range in.vars {
		if k != key {
			size += len(k) + len(v)
		}
	}
	if size > maxVariables || len(in.vars) > 1000 {
		panic(errors.New("the program keeps more variables than it may"))
	}
	in.vars[key] = b
}

// requestHTTP makes a request by the portal. A refusal ends the program with the portal's sentence, as in Extism.
func (in *instance) requestHTTP(ctx context.Context, s []uint64) {
	var req struct {
		Method  string            `json:"method"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
	}
	if err := json.Unmarshal(in.shared.blockAt(s[0]), &req); err != nil {
		panic(errors.New("the HTTP request cannot be read"))
	}
	arg, err := json.Marshal(HTTPRequest{req.Method, req.URL, req.Headers, in.shared.blockAt(s[1])})
	if err != nil {
		panic(err)
	}
	out, status := in.askPortal(ctx, HTTPFunction, arg)
	if status != frame.OK {
		panic(fmt.Errorf("HTTP: %s", out))
	}
	var got HTTPResponse
	if err := json.Unmarshal(out, &got); err != nil {
		panic(err)
	}
	in.status = int32(got.Status)
	if in.headers = nil; len(got.Headers) > 0 {
		in.headers, _ = json.Marshal(got.Headers) // a map of texts
	}
	s[0] = in.shared.putBlock(got.Body)
}

// callPortal runs one of PortalFunctions. Its result is a block with the answer, JSON or empty. An error is the answer
// {"error": …}, which the program reads like others.
func callPortal(name string) operation {
	return func(ctx context.Context, in *instance, s []uint64) {
		out, status := in.askPortal(ctx, name, slices.Clone(in.shared.blockAt(s[0])))
		if status != frame.OK {
			out, _ = json.Marshal(map[string]string{"error": string(out)})
		}
		s[0] = in.shared.putBlock(out)
	}
}

type instanceKey struct{}

// exportModule makes a host module of functions. The instance is in the context of each call.
func exportModule(ctx context.Context, r wazero.Runtime, name string, lists ...[]function) error {
	b := r.NewHostModuleBuilder(name)
	for _, f := range slices.Concat(lists...) {
		b.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(ctx context.Context, s []uint64) {
			in, ok := ctx.Value(instanceKey{}).(*instance)
			if !ok {
				panic(errors.New("no instance"))
			}
			f.run(ctx, in, s)
		}), f.params, f.results).Export(f.name)
	}
	_, err := b.Instantiate(ctx)
	return err
}

// exportAll makes the host modules of Extism and of the portal.
func exportAll(ctx context.Context, r wazero.Runtime) error {
	var own []function
	for _, name := range PortalFunctions {
		own = append(own, function{name, one, one, callPortal(name)})
	}
	if err := exportModule(ctx, r, module.EnvModule, memoryFunctions, dataFunctions); err != nil {
		return err
	}
	return exportModule(ctx, r, module.UserModule, own)
}

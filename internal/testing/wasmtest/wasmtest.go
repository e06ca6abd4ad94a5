// Package wasmtest builds small WebAssembly modules for tests, among them hostile ones.
package wasmtest

import (
	"encoding/binary"
	"slices"
)

// Module is a module under construction. Function 0 and up are the imports in their order, then Functions.
type Module struct {
	Imports   []Import
	Functions []Function
	// Pages is the memory at the start, MaxPages its bound if it is not 0. There is always a memory.
	Pages, MaxPages uint32
	// Table is the number of entries of a table, -1 for none.
	Table int
	// Data is put at address 16 of the memory.
	Data []byte
	// Start is the number of the function that runs at the instantiation, -1 for none.
	Start int
	// Extra are sections that stand at the end.
	Extra []byte
	// Exports are more exported functions, by their numbers.
	Exports map[string]int
}

// Import is an imported function.
type Import struct {
	Module, Name    string
	Params, Results []byte
}

// Function is a function without parameters. Locals are of type i64.
type Function struct {
	Locals  int
	Body    []byte
	Results []byte
}

// The types of values.
const (
	I32 byte = 0x7f
	I64 byte = 0x7e
)

// New returns a module whose function run has that body and no result.
func New(body ...[]byte) *Module {
	return &Module{Functions: []Function{{Locals: 4, Body: slices.Concat(body...)}}, Pages: 1, Table: -1, Start: -1}
}

// Import adds an imported function and returns its number. All imports come before calls of own functions are made.
func (m *Module) Import(module, name string, params, results []byte) int {
	m.Imports = append(m.Imports, Import{module, name, params, results})
	return len(m.Imports) - 1
}

// Env imports a function of Extism's environment.
func (m *Module) Env(name string, params, results int) int {
	return m.Import("extism:host/env", name, slices.Repeat([]byte{I64}, params), slices.Repeat([]byte{I64}, results))
}

// User imports a function of the portal.
func (m *Module) User(name string) int {
	return m.Import("extism:host/user", name, []byte{I64}, []byte{I64})
}

// Run is the number of the function run, once all imports are there.
func (m *Module) Run() int { return len(m.Imports) }

// Bytes returns the module.
func (m *Module) Bytes() []byte {
	var types, imports, functions, exports, code [][]byte
	for _, i := range m.Imports {
		imports = append(imports, slices.Concat(Name(i.Module), Name(i.Name), []byte{0}, U(uint64(len(types)))))
		types = append(types, funcType(i.Params, i.Results))
	}
	for _, f := range m.Functions {
		functions = append(functions, U(uint64(len(types))))
		types = append(types, funcType(nil, f.Results))
		var locals []byte
		if f.Locals > 0 {
			locals = slices.Concat([]byte{1}, U(uint64(f.Locals)), []byte{I64})
		} else {
			locals = []byte{0}
		}
		body := slices.Concat(locals, f.Body, []byte{0x0b})
		code = append(code, slices.Concat(U(uint64(len(body))), body))
	}
	exports = append(exports, slices.Concat(Name("run"), []byte{0}, U(uint64(m.Run()))),
		slices.Concat(Name("memory"), []byte{2, 0}))
	for name, n := range m.Exports {
		exports = append(exports, slices.Concat(Name(name), []byte{0}, U(uint64(n))))
	}
	out := slices.Concat([]byte("\x00asm\x01\x00\x00\x00"), Section(1, types...), Section(2, imports...),
		Section(3, functions...))
	if m.Table >= 0 {
		out = append(out, Section(4, slices.Concat([]byte{0x70, 0}, U(uint64(m.Table))))...)
	}
	memory := slices.Concat([]byte{0}, U(uint64(m.Pages)))
	if m.MaxPages > 0 {
		memory = slices.Concat([]byte{1}, U(uint64(m.Pages)), U(uint64(m.MaxPages)))
	}
	out = append(out, Section(5, memory)...)
	out = append(out, Section(7, exports...)...)
	if m.Start >= 0 {
		out = append(out, Raw(8, U(uint64(m.Start)))...)
	}
	out = append(out, Section(10, code...)...)
	if len(m.Data) > 0 {
		out = append(out, Section(11, slices.Concat([]byte{0, 0x41, 16, 0x0b}, U(uint64(len(m.Data))), m.Data))...)
	}
	return append(out, m.Extra...)
}

func funcType(params, results []byte) []byte {
	return slices.Concat([]byte{0x60}, U(uint64(len(params))), params, U(uint64(len(results))), results)
}

// Section returns a section with entries.
func Section(id byte, entries ...[]byte) []byte {
	return Raw(id, slices.Concat(U(uint64(len(entries))), slices.Concat(entries...)))
}

// Raw returns a section with a content.
func Raw(id byte, content []byte) []byte {
	return slices.Concat([]byte{id}, U(uint64(len(content))), content)
}

// Name returns a name with its length.
func Name(s string) []byte { return append(U(uint64(len(s))), s...) }

// U returns an unsigned number in LEB128.
func U(n uint64) []byte { return binary.AppendUvarint(nil, n) }

// S returns a signed number in LEB128.
func S(n int64) []byte {
	var b []byte
	for {
		c := byte(n & 0x7f)
		n >>= 7
		if n == 0 && c&0x40 == 0 || n == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// Const puts an i64 on the stack, Const32 an i32.
func Const(n int64) []byte   { return append([]byte{0x42}, S(n)...) }
func Const32(n int32) []byte { return append([]byte{0x41}, S(int64(n))...) }

// Call calls a function, Get and Set read and write a local variable, Drop drops a value.
func Call(f int) []byte { return append([]byte{0x10}, U(uint64(f))...) }
func Get(n int) []byte  { return append([]byte{0x20}, U(uint64(n))...) }
func Set(n int) []byte  { return append([]byte{0x21}, U(uint64(n))...) }
func Drop() []byte      { return []byte{0x1a} }

// Forever repeats a body for ever.
func Forever(body ...[]byte) []byte {
	return slices.Concat([]byte{0x03, 0x40}, slices.Concat(body...), []byte{0x0c, 0, 0x0b})
}

// Times repeats a body, which must not use local variable 3.
func Times(n int64, body ...[]byte) []byte {
	return slices.Concat(Const(n), Set(3), []byte{0x03, 0x40}, slices.Concat(body...), Get(3), Const(1), []byte{0x7d},
		Set(3), Get(3), Const(0), []byte{0x52, 0x0d, 0, 0x0b})
}

// Trap is the instruction unreachable.
func Trap() []byte { return []byte{0x00} }

// Block returns instructions that make a shared block with a text and put its offset into local variable 0. alloc and
// store8 are the numbers of those imports.
func Block(alloc, store8 int, text string) []byte {
	out := slices.Concat(Const(int64(len(text))), Call(alloc), Set(0))
	for i := range len(text) {
		out = append(out, slices.Concat(Get(0), Const(int64(i)), []byte{0x7c}, Const32(int32(text[i])), Call(store8))...)
	}
	return out
}

// Says returns a module that streams a text and ends. Its imports are alloc, store_u8 and reply.
func Says(text string) *Module {
	m := New()
	alloc, store, reply := m.Env("alloc", 1, 1), m.Import("extism:host/env", "store_u8", []byte{I64, I32}, nil), m.User("reply")
	m.Functions[0].Body = slices.Concat(Block(alloc, store, text), Get(0), Call(reply), Drop())
	return m
}

// Outputs returns a module with a text as its output.
func Outputs(text string) *Module {
	m := New()
	alloc, store := m.Env("alloc", 1, 1), m.Import("extism:host/env", "store_u8", []byte{I64, I32}, nil)
	out := m.Import("extism:host/env", "output_set", []byte{I64, I64}, nil)
	m.Functions[0].Body = slices.Concat(Block(alloc, store, text), Get(0), Const(int64(len(text))), Call(out))
	return m
}

// Package module checks WebAssembly modules before anything is compiled: sizes of sections, functions, tables and
// memories, imports and exports. It reads the headers only; wazero validates the rest in a child process. A module may
// come from a stranger, so that every number in it is compared with the bytes that are there.
package module

import (
	"errors"
	"fmt"
	"slices"
)

// Entry is the function that a module must export. It runs once for each task.
const Entry = "run"

// The host modules that a module may import from.
const (
	EnvModule  = "extism:host/env"
	UserModule = "extism:host/user"
	WASIModule = "wasi_snapshot_preview1"
)

// The bounds of a module besides its size. A table costs 8 bytes an entry in the process that runs the module.
const (
	maxTypes        = 10_000
	maxImports      = 500
	maxFunctions    = 60_000
	maxFunctionSize = 1 << 20
	maxLocals       = 10_000
	maxTables       = 8
	maxEntries      = 100_000
	maxGlobals      = 10_000
	maxExports      = 2_000
	maxSegments     = 50_000
	maxParameters   = 100
	maxName         = 200
)

// Info describes a module that was checked. Pages is the size of its memory at the start, in pages of 64 KiB.
type Info struct {
	Exports, Imports []string
	Pages            uint32
	Functions        int
}

// Check returns the reason, as the end of the sentence "the module …", why a module is refused. pages bounds the
// memory.
func Check(b []byte, pages uint32) (Info, error) {
	c := &checker{reader: reader{b: b}, pages: pages}
	if len(b) < 8 || string(b[:8]) != "\x00asm\x01\x00\x00\x00" {
		return Info{}, errors.New("is no WebAssembly module of version 1")
	}
	c.at = 8
	last := 0
	for c.at < len(c.b) && c.err == nil {
		id := c.byte()
		size := c.count(len(c.b))
		if c.err != nil {
			break
		}
		end := c.at + size
		if end > len(c.b) {
			c.fail("ends inside section %d", id)
			break
		}
		place := slices.Index(order, id)
		if id != 0 && (place < 0 || place < last) {
			c.fail("has section %d twice, out of order, or of an unknown kind", id)
			break
		}
		if id != 0 {
			last = place + 1
		}
		whole := c.b
		c.b = c.b[:end]
		c.section(id)
		c.b = whole
		if c.err == nil && id != 0 && c.at != end {
			c.fail("has a section %d of a false length", id)
		}
		c.at = end
	}
	if c.err == nil {
		c.finish()
	}
	return c.info, c.err
}

// order has the sections in the order in which they may stand; section 12 (data count) is before code.
var order = []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11}

// checker reads one module.
type checker struct {
	reader
	info     Info
	pages    uint32
	memories int
	bodies   int
	entry    bool
}

func (c *checker) section(id byte) {
	switch id {
	case 1:
		c.each("types", maxTypes, c.readType)
	case 2:
		c.each("imports", maxImports, c.readImport)
	case 3:
		c.info.Functions = c.each("functions", maxFunctions, func() { c.count(maxTypes) })
	case 4:
		c.each("tables", maxTables, func() {
			c.byte()
			c.limits("table", maxEntries)
		})
	case 5:
		c.each("memories", 1, c.readMemory)
	case 6:
		n := c.count(maxGlobals)
		c.at = len(c.b) // the values are expressions, which wazero checks
		_ = n
	case 7:
		c.each("exports", maxExports, c.readExport)
	case 9, 11:
		c.count(maxSegments)
		c.at = len(c.b)
	case 10:
		c.bodies = c.each("function bodies", maxFunctions, c.readBody)
	case 8, 12:
		c.count(maxSegments)
	}
}

func (c *checker) readType() {
	if c.byte() != 0x60 {
		c.fail("has a type that is no function")
		return
	}
	for range 2 {
		c.skip(c.count(maxParameters))
	}
}

func (c *checker) readImport() {
	from, name := c.name(), c.name()
	if kind := c.byte(); kind != 0 && c.err == nil {
		c.fail("imports %.80q of %.80q, which is no function", name, from)
		return
	}
	c.count(maxTypes)
	if c.err == nil && from != WASIModule && from != UserModule && from != EnvModule {
		c.fail("imports %.80q of %.80q; the portal offers %s, %s and %s", name, from, EnvModule, UserModule, WASIModule)
		return
	}
	c.info.Imports = append(c.info.Imports, from+" "+name)
}

func (c *checker) readMemory() {
	c.memories++
	at := c.at
	if flags := c.byte(); flags > 1 {
		c.fail("has a memory that is shared or of 64 bits")
		return
	}
	c.at = at
	c.info.Pages = c.limits("memory", c.pages)
}

// limits reads the limits of a table or memory and returns the least size.
func (c *checker) limits(of string, most uint32) uint32 {
	flags := c.byte()
	if flags > 1 {
		c.fail("has a %s of an unknown kind", of)
		return 0
	}
	least := c.u32()
	if flags == 1 {
		c.u32() // the bound of the sandbox holds, also if this is greater
	}
	if least > most && c.err == nil {
		c.fail("has a %s of %d at its start; the most is %d", of, least, most)
	}
	return least
}

func (c *checker) readExport() {
	name, kind := c.name(), c.byte()
	c.u32()
	if kind > 3 && c.err == nil {
		c.fail("exports %.80q of an unknown kind", name)
	}
	c.entry = c.entry || name == Entry && kind == 0
	c.info.Exports = append(c.info.Exports, name)
}

func (c *checker) readBody() {
	size := c.count(maxFunctionSize)
	end := c.at + size
	if c.err != nil || end > len(c.b) {
		c.fail("ends inside a function")
		return
	}
	var locals uint64
	for range c.count(maxLocals) {
		locals += uint64(c.u32())
		c.byte()
		if locals > maxLocals {
			c.fail("has a function with more than %d variables", maxLocals)
		}
		if c.err != nil {
			return
		}
	}
	c.at = end
}

func (c *checker) finish() {
	switch {
	case c.bodies != c.info.Functions:
		c.fail("declares %d functions and has %d", c.info.Functions, c.bodies)
	case !c.entry:
		c.fail("exports no function %q, which runs a task", Entry)
	}
}

// each reads a vector of at most that many entries and returns their number.
func (c *checker) each(of string, most int, read func()) int {
	n := int(c.u32())
	if n > most && c.err == nil {
		c.fail("has %d %s; the most is %d", n, of, most)
	}
	for i := 0; i < n && c.err == nil; i++ {
		read()
	}
	return n
}

// reader reads the numbers and names of a module. After the first error it returns zeros.
type reader struct {
	b   []byte
	at  int
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *reader) byte() byte {
	if r.err != nil || r.at >= len(r.b) {
		r.fail("ends too early")
		return 0
	}
	r.at++
	return r.b[r.at-1]
}

// u32 reads an unsigned number in LEB128.
func (r *reader) u32() uint32 {
	var n uint64
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			if n > 1<<32-1 {
				break
			}
			return uint32(n)
		}
	}
	r.fail("has a number that is too long")
	return 0
}

// count reads a number of things, each of which takes no room in the module or is checked later.
func (r *reader) count(most int) int {
	n := r.u32()
	if uint64(n) > uint64(most) {
		r.fail("has a count of %d; the most is %d", n, most)
		return 0
	}
	return int(n)
}

func (r *reader) skip(n int) {
	if r.err == nil && n > len(r.b)-r.at {
		r.fail("ends too early")
		return
	}
	r.at += n
}

func (r *reader) name() string {
	n := r.count(maxName)
	at := r.at
	if r.skip(n); r.err != nil {
		return ""
	}
	return string(r.b[at : at+n])
}

package module_test

import (
	"slices"
	"strings"
	"testing"

	"agentsite/agentruntime/wasm/module"
	"agentsite/internal/testing/wasmtest"
)

const pages = 1024

func TestCheck_AcceptsModules(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]*wasmtest.Module{
		"nothing": wasmtest.New(), "a reply": wasmtest.Says("Hello."), "an output": wasmtest.Outputs("{}"),
	} {
		info, err := module.Check(m.Bytes(), pages)
		if err != nil || info.Pages != 1 || info.Functions != 1 || !slices.Contains(info.Exports, module.Entry) {
			t.Errorf("%s: %+v %v", name, info, err)
		}
	}
}

func TestCheck_RefusesModules(t *testing.T) {
	t.Parallel()
	with := func(change func(*wasmtest.Module)) []byte {
		m := wasmtest.New()
		change(m)
		return m.Bytes()
	}
	whole := wasmtest.Says("Hello.").Bytes()
	head := whole[:8]
	section := func(id byte, content ...byte) []byte { return slices.Concat(head, wasmtest.Raw(id, content)) }
	for _, c := range []struct {
		name, why string
		b         []byte
	}{
		{"nothing", "no WebAssembly", nil},
		{"another version", "version 1", append([]byte("\x00asm\x02\x00\x00\x00"), whole[8:]...)},
		{"a section cut off", "ends", whole[:len(whole)-1]},
		{"a memory over the bound", "memory", with(func(m *wasmtest.Module) { m.Pages = pages + 1 })},
		{"a table over the bound", "table", with(func(m *wasmtest.Module) { m.Table = 1 << 27 })},
		{"a foreign import", "offers", with(func(m *wasmtest.Module) { m.Import("env", "system", nil, nil) })},
		{"no entry", "exports no function", slices.Concat(head, wasmtest.Section(7))},
		{"a section twice", "twice", slices.Concat(whole, wasmtest.Section(1))},
		{"a section out of order", "order", slices.Concat(head, wasmtest.Section(3), wasmtest.Section(1))},
		{"an unknown section", "unknown kind", section(13)},
		{"a number without an end", "too long", section(1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)},
		{"more types than bytes", "early", section(1, 0x80, 0x20)},
		{"a great many types", "types", section(1, 0xff, 0xff, 0xff, 0xff, 0x0f)},
		{"a great many functions", "functions", section(3, 0xff, 0xff, 0xff, 0xff, 0x0f)},
		{"a great many exports", "exports", section(7, 0xff, 0xff, 0xff, 0xff, 0x0f)},
		{"a great many segments", "count", section(11, 0xff, 0xff, 0xff, 0xff, 0x0f)},
		{"two memories", "memories", section(5, 2, 0, 1, 0, 1)},
		{"a shared memory", "shared", section(5, 1, 3, 1, 1)},
		{"an imported memory", "no function", section(2, slices.Concat([]byte{1}, wasmtest.Name("env"), wasmtest.Name("m"),
			[]byte{2, 0, 1})...)},
		{"a long name", "count", section(7, slices.Concat([]byte{1}, wasmtest.U(1<<20))...)},
		{"many variables", "variables", with(func(m *wasmtest.Module) { m.Functions[0].Locals = 50_000 })},
		{"a function over the bound", "count", with(func(m *wasmtest.Module) { m.Functions[0].Body = make([]byte, 2<<20) })},
		{"a function without a body", "declares", slices.Concat(head, wasmtest.Section(1, []byte{0x60, 0, 0}),
			wasmtest.Section(3, []byte{0}), wasmtest.Section(7, slices.Concat(wasmtest.Name("run"), []byte{0, 0})))},
		{"a false length of a section", "false length", section(1, 0, 0)},
	} {
		if _, err := module.Check(c.b, pages); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", c.name, err, c.why)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(wasmtest.Says("Hello.").Bytes())
	f.Add(wasmtest.New(wasmtest.Forever()).Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		if info, err := module.Check(b, pages); err == nil && (info.Functions > len(b) || len(info.Exports) > len(b)) {
			t.Errorf("%+v of %d bytes", info, len(b))
		}
	})
}

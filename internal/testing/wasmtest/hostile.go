package wasmtest

import (
	"bytes"
	"slices"
)

// Hostile is a module that tries to do harm. Want is a part of the reason why it is refused or fails; "" if it may also
// end by itself.
type Hostile struct {
	Name, Want string
	Bytes      []byte
}

func body(code ...[]byte) []byte { return New(code...).Bytes() }

// with returns a module and makes its body after its imports.
func with(make func(m *Module) []byte) []byte {
	m := New()
	m.Functions[0].Body = make(m)
	return m.Bytes()
}

// env returns a module that calls a function of Extism's environment with arguments.
func env(name string, results int, args ...int64) []byte {
	return with(func(m *Module) []byte {
		f := m.Env(name, len(args), results)
		var code []byte
		for _, a := range args {
			code = append(code, Const(a)...)
		}
		code = append(code, Call(f)...)
		return append(code, bytes.Repeat(Drop(), results)...)
	})
}

// wasi returns a module that calls a function of WASI with 32-bit zeros and fails unless it returns an error.
func wasi(name string, params ...byte) []byte {
	return with(func(m *Module) []byte {
		f := m.Import("wasi_snapshot_preview1", name, params, []byte{I32})
		var code []byte
		for _, p := range params {
			if p == I64 {
				code = append(code, Const(0)...)
			} else {
				code = append(code, Const32(3)...)
			}
		}
		// if the result is 0, the function worked: unreachable
		return slices.Concat(code, Call(f), []byte{0x45, 0x04, 0x40, 0x00, 0x0b})
	})
}

// HostileModules returns modules that try to do harm.
func HostileModules() []Hostile {
	i32, i64 := I32, I64
	grow := func(pages int32) []byte {
		return slices.Concat(Const32(pages), []byte{0x40, 0}, Drop())
	}
	started := func(code ...[]byte) []byte {
		m := New(code...)
		m.Start = 0
		return m.Bytes()
	}
	initialized := func(code ...[]byte) []byte {
		m := New()
		m.Functions = append(m.Functions, Function{Locals: 4, Body: slices.Concat(code...)})
		m.Exports = map[string]int{"_initialize": 1}
		return m.Bytes()
	}
	table := func(entries int, code ...[]byte) []byte {
		m := New(code...)
		m.Table = entries
		return m.Bytes()
	}
	many := New()
	for range 61_000 {
		many.Functions = append(many.Functions, Function{})
	}
	wide := New()
	wide.Functions[0].Locals = 1 << 30
	long := New(bytes.Repeat(slices.Concat(Const(1), Drop()), 500_000))
	deep := New(bytes.Repeat([]byte{0x02, 0x40}, 200_000), bytes.Repeat([]byte{0x0b}, 200_000))
	paged := New()
	paged.Pages = 65_536
	recursive := func(m *Module) []byte { return Call(m.Run()) }
	userLoop := func(name string) []byte {
		return with(func(m *Module) []byte {
			f := m.User(name)
			return Forever(Const(0), Call(f), Drop())
		})
	}
	logs := with(func(m *Module) []byte {
		alloc, log := m.Env("alloc", 1, 1), m.Env("log_error", 1, 0)
		return Forever(Const(2000), Call(alloc), Call(log))
	})
	output := with(func(m *Module) []byte {
		alloc, out := m.Env("alloc", 1, 1), m.Import("extism:host/env", "output_set", []byte{i64, i64}, nil)
		return slices.Concat(Const(200_000), Call(alloc), Const(200_000), Call(out))
	})
	allocs := with(func(m *Module) []byte {
		return Forever(Const(1000), Call(m.Env("alloc", 1, 1)), Drop())
	})
	vars := with(func(m *Module) []byte {
		alloc, set := m.Env("alloc", 1, 1), m.Env("var_set", 2, 0)
		return Forever(Const(8), Call(alloc), Set(0), Get(0), Get(0),
			Call(set))
	})
	resets := with(func(m *Module) []byte {
		return Forever(Call(m.Env("reset", 0, 0)))
	})
	finely := func(clock int32) []byte {
		return with(func(m *Module) []byte {
			f := m.Import("wasi_snapshot_preview1", "clock_time_get", []byte{i32, i64, i32}, []byte{i32})
			// A time that is no multiple of 20 ms is a trap.
			read := slices.Concat(Const32(clock), Const(0), Const32(64), Call(f), Drop(),
				Const32(64), []byte{0x29, 0x03, 0}, Set(0))
			odd := slices.Concat(Get(0), Const(20_000_000), []byte{0x82}, Const(0),
				[]byte{0x52, 0x04, 0x40, 0x00, 0x0b})
			return Times(2000, read, odd)
		})
	}
	huge := int64(1) << 62
	return []Hostile{
		{"loops for ever", "time", body(Forever())},
		{"loops at the start", "time", started(Forever())},
		{"loops while it is initialized", "time", initialized(Forever())},
		{"traps", "unreachable", body(Trap())},
		{"traps at the start", "unreachable", started(Trap())},
		{"traps while it is initialized", "unreachable", initialized(Trap())},
		{"asks the portal before its task", "before", func() []byte {
			m := New()
			f := m.User("reply")
			m.Functions = append(m.Functions, Function{Body: slices.Concat(Const(0), Call(f), Drop())})
			m.Exports = map[string]int{"_initialize": 2}
			return m.Bytes()
		}()},
		{"grows its memory for ever", "time", body(Forever(grow(16)))},
		{"grows its memory at once", "", body(grow(65_535))},
		{"begins with 4 GiB", "memory", paged.Bytes()},
		{"recurses for ever", "", with(recursive)},
		{"has a table of 2^27 entries", "table", table(1<<27, nil)},
		{"grows a table for ever", "", table(1, Forever([]byte{0xd0, 0x70}, Const32(1_000_000),
			[]byte{0xfc, 0x0f, 0}, Drop()))},
		{"has 61,000 functions", "types", many.Bytes()},
		{"has a billion variables", "variables", wide.Bytes()},
		{"has a function over the bound", "count", long.Bytes()},
		{"nests 200,000 blocks", "", deep.Bytes()},
		{"has a section of 4 GiB", "count", append(New().Bytes(), 0, 0xff, 0xff, 0xff, 0xff, 0x0f)},
		{"has an invalid body", "invalid", body([]byte{0x6a})},
		{"ends too early", "ends", New().Bytes()[:40]},
		{"imports a system call", "offers", with(func(m *Module) []byte {
			return Call(m.Import("env", "execve", nil, nil))
		})},
		{"imports an unknown function", "not exported", with(func(m *Module) []byte {
			return Call(m.Env("open_file", 0, 0))
		})},
		{"imports a function of another type", "signature", with(func(m *Module) []byte {
			return Call(m.Env("alloc", 0, 0))
		})},
		{"floods the output", "output", output},
		{"allocates for ever", "shared memory", allocs},
		{"allocates 2^62 bytes", "shared memory", slices.Concat(env("alloc", 1, huge))},
		{"allocates -1 bytes", "shared memory", env("alloc", 1, -1)},
		{"keeps variables for ever", "", vars},
		{"resets its memory for ever", "time", resets},
		{"floods the log", "", logs},
		{"reads at 2^62", "outside", env("load_u64", 1, huge)},
		{"reads at -1", "outside", env("load_u64", 1, -1)},
		{"writes at -8", "outside", env("store_u64", 0, -8, 1)},
		{"writes behind its memory", "outside", env("store_u64", 0, 1<<20, 1)},
		{"reads the input at -1", "behind", env("input_load_u64", 1, -1)},
		{"reads behind the input", "behind", env("input_load_u64", 1, 1<<20)},
		{"sets an output of 2^62 bytes", "outside", env("output_set", 0, 16, huge)},
		{"sets an output that wraps around", "outside", env("output_set", 0, -1, 2)},
		{"sets an input of -1", "outside", env("input_set", 0, -1, -1)},
		{"frees what is none", "", env("free", 0, 12345)},
		{"sets an error that is none", "", env("error_set", 0, 99_999)},
		{"asks for settings at -1", "", env("config_get", 1, -1)},
		{"asks for HTTP without a request", "HTTP", env("http_request", 1, 0, 0)},
		{"replies for ever", "", userLoop("reply")},
		{"asks for ever", "", userLoop("ask")},
		{"opens a file", "", wasi("path_open", i32, i32, i32, i32, i32, i64, i64, i32, i32)},
		{"reads a folder", "", wasi("fd_readdir", i32, i32, i32, i64, i32)},
		{"asks for an open folder", "", wasi("fd_prestat_get", i32, i32)},
		{"accepts a connection", "", wasi("sock_accept", i32, i32, i32)},
		{"sends to a socket", "", wasi("sock_send", i32, i32, i32, i32, i32)},
		{"reads the environment", "", with(func(m *Module) []byte {
			f := m.Import("wasi_snapshot_preview1", "environ_sizes_get", []byte{i32, i32}, []byte{i32})
			// A variable, or its size, is a trap.
			return slices.Concat(Const32(64), Const32(68), Call(f), Drop(), Const32(64), []byte{0x29, 0x03, 0}, Const(0),
				[]byte{0x52, 0x04, 0x40, 0x00, 0x0b})
		})},
		{"makes a folder", "", wasi("path_create_directory", i32, i32, i32)},
		{"ends the process", "", with(func(m *Module) []byte {
			return slices.Concat(Const32(7), Call(m.Import("wasi_snapshot_preview1", "proc_exit", []byte{i32}, nil)))
		})},
		{"sleeps for years", "time", with(func(m *Module) []byte {
			f := m.Import("wasi_snapshot_preview1", "poll_oneoff", []byte{i32, i32, i32, i32}, []byte{i32})
			store := func(at int32, v int64) []byte {
				return slices.Concat(Const32(at), Const(v), []byte{0x37, 0x03, 0})
			}
			return Forever(store(64+24, 1<<60), Const32(64), Const32(256), Const32(1),
				Const32(512), Call(f), Drop())
		})},
		{"measures time finely", "", finely(1)},
		{"reads the time of day finely", "", finely(0)},
	}
}

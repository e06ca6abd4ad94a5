package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"agentsite/agentruntime/wasm/frame"
)

// bareArgument makes this program a process that runs a module by wazero alone.
const bareArgument = "run-bare-program"

// runBare reads a module, and answers each Call frame by a call of an instance that was prepared before. It has no
// bounds, no checks, and no functions but those that the module of the row needs.
func runBare() int {
	ctx, in := context.Background(), bufio.NewReader(os.Stdin)
	f, err := frame.Read(in)
	if err != nil {
		return 1
	}
	r := wazero.NewRuntime(ctx)
	block := uint64(0)
	text := make([]byte, 64)
	_, err = r.NewHostModuleBuilder("extism:host/env").
		NewFunctionBuilder().WithFunc(func(size uint64) uint64 { return block }).Export("alloc").
		NewFunctionBuilder().WithFunc(func(at uint64, b uint32) { text[at] = byte(b) }).Export("store_u8").
		Instantiate(ctx)
	if err != nil {
		return 1
	}
	_, err = r.NewHostModuleBuilder("extism:host/user").
		NewFunctionBuilder().WithFunc(func(at uint64) uint64 {
		if frame.Write(os.Stdout, frame.Frame{Kind: frame.Host, Body: frame.HostBody("reply", text)}) != nil {
			os.Exit(1)
		}
		return 0
	}).Export("reply").Instantiate(ctx)
	if err != nil {
		return 1
	}
	m, err := r.CompileModule(ctx, f.Body)
	if err != nil {
		return 1
	}
	prepare := func() (api.Module, error) { return r.InstantiateModule(ctx, m, wazero.NewModuleConfig().WithName("")) }
	ready, err := prepare()
	for err == nil {
		if f, err = frame.Read(in); err != nil {
			return 0
		}
		if _, err = ready.ExportedFunction("run").Call(ctx); err != nil {
			return 1
		}
		if err = frame.Write(os.Stdout, frame.Frame{Kind: frame.Done, Body: frame.WithStatus(frame.OK, nil)}); err != nil {
			return 1
		}
		_ = ready.Close(ctx) // frees its memory
		ready, err = prepare()
	}
	return 1
}

// bare is such a process.
type bare struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startBare(module []byte) (*bare, error) {
	b := &bare{cmd: exec.Command("/proc/self/exe", bareArgument)}
	b.cmd.Stderr = os.Stderr
	var err error
	if b.in, err = b.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	b.out = bufio.NewReader(out)
	if err := b.cmd.Start(); err != nil {
		return nil, err
	}
	return b, frame.Write(b.in, frame.Frame{Kind: frame.Module, Body: module})
}

// call makes a call and returns the time to its first byte.
func (b *bare) call() (time.Duration, error) {
	began := time.Now()
	if err := frame.Write(b.in, frame.Frame{Kind: frame.Call, Call: 1, Body: []byte(`{}`)}); err != nil {
		return 0, err
	}
	f, err := frame.Read(b.out)
	took := time.Since(began)
	if err == nil && f.Kind != frame.Host {
		err = errors.New("the bare process did not stream")
	}
	if err == nil {
		_, err = frame.Read(b.out)
	}
	return took, err
}

func (b *bare) stop() {
	_ = b.in.Close() // the process ends with its input
	_ = b.cmd.Wait()
}

// memoryOfAll returns the memory of this process and all that it started. A page that several use counts once in all.
func memoryOfAll() (sum int64, err error) {
	list, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	self := strconv.Itoa(os.Getpid())
	for _, dir := range list {
		status, err := readValues(dir + "/status")
		if err != nil || status["Pid"] != self && status["PPid"] != self {
			continue // another program, or one that ended meanwhile
		}
		values, err := readValues(dir + "/smaps_rollup")
		if err != nil {
			return 0, err
		}
		kb, err := strconv.ParseInt(strings.TrimSuffix(values["Pss"], " kB"), 10, 64)
		if err != nil {
			return 0, err
		}
		sum += kb << 10
	}
	return sum, nil
}

// readValues reads the lines "name: value" of a file.
func readValues(path string) (map[string]string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	values := make(map[string]string)
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		values[name] = strings.TrimSpace(value)
	}
	return values, nil
}

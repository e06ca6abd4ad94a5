//go:build wasip1

package main

import (
	"encoding/json"
	"strings"

	"agentsite/agentruntime/bundle/tools"
)

//go:wasmimport extism:host/env input_length
func inputLength() uint64

//go:wasmimport extism:host/env input_load_u8
func inputByte(at uint64) uint32

//go:wasmimport extism:host/env input_load_u64
func inputWord(at uint64) uint64

//go:wasmimport extism:host/env alloc
func alloc(size uint64) uint64

//go:wasmimport extism:host/env store_u8
func storeByte(at uint64, b uint32)

//go:wasmimport extism:host/env output_set
func setOutput(at, size uint64)

// readInput reads eight bytes at a time, because each call leaves the sandbox.
func readInput() []byte {
	b := make([]byte, inputLength())
	at := 0
	for ; at+8 <= len(b); at += 8 {
		word := inputWord(uint64(at))
		for i := range 8 {
			b[at+i] = byte(word >> (8 * i))
		}
	}
	for ; at < len(b); at++ {
		b[at] = byte(inputByte(uint64(at)))
	}
	return b
}

//go:wasmexport run
func run() int32 {
	var in struct {
		Agent, Text string
		History     []struct {
			Mine bool
			Text string
		}
	}
	if json.Unmarshal(readInput(), &in) != nil {
		return 1
	}
	var earlier []string
	for _, m := range in.History {
		if !m.Mine {
			earlier = append(earlier, m.Text)
		}
	}
	name, _, _ := strings.Cut(in.Agent, "@")
	out, err := json.Marshal(map[string]string{"text": tools.Answer(name, in.Text, earlier)})
	if err != nil {
		return 1
	}
	at := alloc(uint64(len(out)))
	for i, c := range out {
		storeByte(at+uint64(i), uint32(c))
	}
	setOutput(at, uint64(len(out)))
	return 0
}

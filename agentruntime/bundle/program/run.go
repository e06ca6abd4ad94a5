//go:build wasip1

package main

import (
	"encoding/binary"
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

//go:wasmimport extism:host/env store_u64
func storeWord(at, word uint64)

//go:wasmimport extism:host/env length
func length(at uint64) uint64

//go:wasmimport extism:host/env load_u8
func loadByte(at uint64) uint32

//go:wasmimport extism:host/env output_set
func setOutput(at, size uint64)

//go:wasmimport extism:host/user artifact
func addArtifact(at uint64) uint64

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
	reply := tools.Answer(name, in.Text, earlier)
	if reply.FileName != "" {
		if refusal := returnFile(reply.FileName, reply.File); refusal != "" {
			reply.Text += "\n\nThe portal refused the file: " + refusal + "."
		}
	}
	out, err := json.Marshal(map[string]string{"text": reply.Text})
	if err != nil {
		return 1
	}
	setOutput(writeBlock(out), uint64(len(out)))
	return 0
}

// returnFile adds a file to the answer. It returns the portal's reason if that refuses it.
func returnFile(name, text string) (refusal string) {
	arg, err := json.Marshal(map[string]string{"name": name, "text": text})
	if err != nil {
		return err.Error()
	}
	at := addArtifact(writeBlock(arg))
	b := make([]byte, length(at))
	for i := range b {
		b[i] = byte(loadByte(at + uint64(i)))
	}
	if len(b) == 0 {
		return "" // it was taken
	}
	var out struct{ Error string }
	if err := json.Unmarshal(b, &out); err != nil {
		return err.Error()
	}
	return out.Error
}

// writeBlock puts bytes into a new block of the memory that is shared with the portal, eight at a time.
func writeBlock(b []byte) uint64 {
	at := alloc(uint64(len(b)))
	i := 0
	for ; i+8 <= len(b); i += 8 {
		storeWord(at+uint64(i), binary.LittleEndian.Uint64(b[i:]))
	}
	for ; i < len(b); i++ {
		storeByte(at+uint64(i), uint32(b[i]))
	}
	return at
}

//go:build wasip1

// Command program is an example of a hosted program: an agent that splits a bill. To build it:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o split.wasm ./docs/clients/program
package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

//go:wasmimport extism:host/env input_length
func inputLength() uint64

//go:wasmimport extism:host/env input_load_u8
func inputByte(at uint64) uint32

//go:wasmimport extism:host/env alloc
func alloc(size uint64) uint64

//go:wasmimport extism:host/env store_u8
func storeByte(at uint64, b uint32)

//go:wasmimport extism:host/env output_set
func setOutput(at, size uint64)

//go:wasmexport run
func run() int32 {
	var in struct {
		Text, Answer string  // the message, and the answer to our question
		State        float64 // as we left it with the question: the amount
	}
	b := make([]byte, inputLength())
	for i := range b {
		b[i] = byte(inputByte(uint64(i)))
	}
	if json.Unmarshal(b, &in) != nil {
		return 1
	}
	out := map[string]any{"text": "Send me an amount, such as 84.60."}
	people, err := strconv.Atoi(strings.TrimSpace(in.Answer))
	amount, wrong := strconv.ParseFloat(strings.TrimSpace(in.Text), 64)
	switch {
	case in.State > 0 && err == nil && people > 0:
		out["text"] = fmt.Sprintf("Each of %d pays %.2f.", people, in.State/float64(people))
	case in.State == 0 && wrong == nil && amount > 0:
		out = map[string]any{"question": "How many people share it?", "state": amount}
	}
	b, _ = json.Marshal(out) // a map of texts and a number
	at := alloc(uint64(len(b)))
	for i, c := range b {
		storeByte(at+uint64(i), uint32(c))
	}
	setOutput(at, uint64(len(b)))
	return 0
}

func main() {} // is never called

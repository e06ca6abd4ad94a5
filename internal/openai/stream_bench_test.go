package openai

import (
	"strings"
	"testing"
)

// Reading one chunk of an answer, with all that servers put around the text.
func BenchmarkReader_Chunk(b *testing.B) {
	const chunk = `data: {"id":"chatcmpl-1C5YYTiY8d1OFdP1mxsR8OlujscRoV83","object":"chat.completion.chunk","created":1795872748,` +
		`"model":"small","system_fingerprint":"b0","choices":[{"index":0,"delta":{"content":" hello"},"logprobs":null,"finish_reason":null}]}` + "\n\n"
	b.ReportAllocs()
	r := NewReader(strings.NewReader(strings.Repeat(chunk, b.N)))
	for n := 0; n < b.N; {
		c, err := r.Next()
		if err != nil {
			b.Fatal(err)
		}
		n += len(c.Choices)
	}
}

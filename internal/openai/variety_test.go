package openai

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// read returns the text, thoughts, finish reason and error of an answer, joined as a caller does.
func read(in string) (text, thoughts, finish, failed string, err error) {
	r := NewReader(strings.NewReader(in))
	var j, k Joiner
	for {
		c, err := r.Next()
		if err != nil {
			if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				err = nil
			}
			return text + j.Flush(), thoughts + k.Flush(), finish, failed, err
		}
		if c.Error != nil {
			failed += c.Error.Message
		}
		for _, x := range c.Choices {
			text += j.Add(string(x.Delta.Content))
			thoughts += k.Add(string(x.Delta.Reasoning))
			if x.FinishReason != nil {
				finish = *x.FinishReason
			}
		}
	}
}

const hi = `{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}`

func TestReader_ReadsAnswersAsServersWriteThem(t *testing.T) {
	done := "data: [DONE]\n\n"
	for name, in := range map[string]string{
		"ollama": `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_ollama",` +
			`"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}]}` + "\n\n" +
			`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop"}]}` + "\n\n" + done,
		"comments":          ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\ndata: " + hi + "\n\n" + done,
		"no space":          "data:" + hi + "\n\ndata:[DONE]\n\n",
		"CRLF":              "data: " + hi + "\r\n\r\ndata: [DONE]\r\n\r\n",
		"byte order mark":   "\xef\xbb\xbfdata: " + hi + "\n\n" + done,
		"leading lines":     "\n\n\ndata: " + hi + "\n\n" + done,
		"text after done":   "data: " + hi + "\n\n" + done + "data: {\"oops\n\n<html>",
		"azure":             `data: {"choices":[],"prompt_filter_results":[{"prompt_index":0}]}` + "\n\ndata: " + hi + "\n\n" + done,
		"choices null":      `data: {"choices":null,"usage":null}` + "\n\ndata: " + hi + "\n\n" + done,
		"usage object":      `data: {"choices":[],"usage":{"prompt_tokens":"1","completion_tokens":2.0,"prompt_tokens_details":[]}}` + "\n\ndata: " + hi + "\n\n" + done,
		"named events":      "event: message\nid: 1\ndata: " + hi + "\n\n" + done,
		"other events":      "event: ping\ndata: {\"type\":\"ping\"}\n\ndata: " + hi + "\n\n" + done,
		"index as text":     `data: {"choices":[{"index":"0","delta":{"content":"Hi"},"finish_reason":"stop"}]}` + "\n\n" + done,
		"delta null":        `data: {"choices":[{"delta":null}]}` + "\n\ndata: " + hi + "\n\n" + done,
		"delta list":        `data: {"choices":[{"delta":[]}]}` + "\n\ndata: " + hi + "\n\n" + done,
		"odd choice":        `data: {"choices":[7,null,{"delta":{"content":"Hi"},"finish_reason":"stop"}]}` + "\n\n" + done,
		"whole":             `{"choices":[{"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}`,
		"whole with mark":   "\xef\xbb\xbf" + `{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}` + "\n",
		"whole, then text":  `{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}` + "\n<!-- 0.2 s -->",
		"whole in a stream": `data: {"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}` + "\n\n" + done,
		"chunks as lines":   `{"choices":[{"delta":{"content":"H"}}]}` + "\n" + `{"choices":[{"delta":{"content":"i"},"finish_reason":"stop"}]}` + "\n[]",
		"chunks in a list":  `[{"choices":[{"delta":{"content":"H"}}]},{"choices":[{"delta":{"content":"i"},"finish_reason":"stop"}]},{"choices":[{"message":{}}]}]`,
		"text completion":   `{"object":"text_completion","choices":[{"text":"Hi","finish_reason":"stop"}]}`,
		"parts":             `{"choices":[{"message":{"content":[{"type":"text","text":"H"},{"type":"text","text":"i"}]},"finish_reason":"STOP"}]}`,
		"eos":               `data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"eos_token"}]}` + "\n\n" + done,
		"refusal":           `data: {"choices":[{"delta":{"content":null,"refusal":"Hi"},"finish_reason":"stop"}]}` + "\n\n" + done,
		"error null":        `data: {"error":null,` + hi[1:] + "\n\n" + done,
		"error empty":       `data: {"error":{},` + hi[1:] + "\n\n" + done,
		"error list":        `data: {"error":[],"errors":[],"detail":null,` + hi[1:] + "\n\n" + done,
		"twice":             `data: {"choices":[],` + hi[1:] + "\n\n" + done,
		"no number":         `data: {"choices":[],"usage":{"prompt_tokens":NaN,"a":[-Infinity,Infinity]},"n":"NaN"}` + "\n\ndata: " + hi + "\n\n" + done,
		"no number, whole":  `{"choices":[{"message":{"content":"Hi"},"logprobs":[-Infinity],"finish_reason":"stop"}],"usage":NaN}`,
		"base_resp":         `data: {"base_resp":{"status_code":0,"status_msg":""},` + hi[1:] + "\n\n" + done,
		"ping":              "data: ping\n\ndata: " + hi + "\n\n" + done,
		"ping event":        "event: ping\ndata: 2026-11-28 10:00:00\n\ndata: " + hi + "\n\n" + done,
		"time":              "data: 2026-11-28 10:00:00\n\ndata: " + hi + "\n\n" + done,
		"heartbeat":         "data: heartbeat\n\nevent: status\ndata: thinking hard\n\ndata: " + hi + "\n\n" + done,
		"bare done":         "data: " + hi + "\n\ndata: DONE\n\n",
		"end":               "data: " + hi + "\n\nevent: end\ndata: end\n\n",
		"text at the end":   "data: " + hi + "\n\ndata: Bye, thanks for all\n\n",
		"stray at the end":  "data: " + hi + "\n\ntook 3 s\n",
		"error word":        `data: {"error":"null",` + hi[1:] + "\n\n" + done,
		"error code":        `data: {"error":{"code":0,"message":""},` + hi[1:] + "\n\n" + done,
		"error success":     `data: {"error":{"code":"200","message":"success"},` + hi[1:] + "\n\n" + done,
		"message as text":   `{"choices":[{"message":"Hi","finish_reason":"stop"}]}`,
		"delta as text":     `data: {"choices":[{"delta":"Hi","finish_reason":"stop"}]}` + "\n\n" + done,
		"CR":                "data: " + hi + "\r\rdata: [DONE]\r\r",
		"no blank lines":    `data: {"choices":[{"delta":{"content":"H"}}]}` + "\n" + `data: {"choices":[{"delta":{"content":"i"},"finish_reason":"stop"}]}` + "\ndata: [DONE]\n",
		"names, no blanks":  "event: chunk\ndata: " + hi + "\nevent: end\ndata: {}\n",
		"JSON lines after":  `data: {"choices":[{"delta":{"content":"H"}}]}` + "\n\n" + `{"choices":[{"delta":{"content":"i"},"finish_reason":"stop"}]}` + "\n",
		"lines in an event": "data: {\ndata: \"choices\":[\ndata: {\"delta\":{\"content\":\"Hi\"},\ndata: \"finish_reason\":\"stop\"}]}\n\n" + done,
		"done in quotes":    "data: " + hi + "\n\ndata: \"[DONE]\"\n\n",
	} {
		text, _, finish, failed, err := read(in)
		if text != "Hi" || finish != "stop" || failed != "" || err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %q %q %q %v", name, text, finish, failed, err)
		}
	}
}

func TestReader_FindsTheReasonOfAnError(t *testing.T) {
	const why = "larger than the context"
	for name, in := range map[string]string{
		"object":        `data: {"error":{"message":"` + why + `","code":"400"}}` + "\n\n",
		"text":          `data: {"error":"` + why + `"}` + "\n\n",
		"field":         "error: {\"message\":\"" + why + "\"}\n\n",
		"plain field":   "error: " + why + "\n\n",
		"event":         "event: error\ndata: {\"message\":\"" + why + "\"}\n\n",
		"text event":    "event: error\ndata: " + why + "\n\n",
		"plain data":    "data: " + why + "\n\n",
		"top":           `data: {"object":"error","message":"` + why + `","code":400}` + "\n\n",
		"typed":         `data: {"type":"error","error":{"type":"x","message":"` + why + `"}}` + "\n\n",
		"nested":        `data: {"error":{"message":{"detail":"` + why + `"}}}` + "\n\n",
		"deeper":        `data: {"error":{"error":{"error":{"message":"` + why + `"}}}}` + "\n\n",
		"list":          `data: [{"error":{"code":400,"message":"` + why + `","status":"INVALID_ARGUMENT"}}]` + "\n\n",
		"whole list":    `[{"error":{"code":400,"message":"` + why + `"}}]`,
		"whole":         `{"error":{"message":"` + why + `"}}`,
		"detail":        `data: {"detail":"` + why + `"}` + "\n\n",
		"fastapi":       `{"detail":[{"type":"value_error","loc":["body"],"msg":"` + why + `"}]}`,
		"errors":        `{"errors":[{"message":"` + why + `"}]}`,
		"errors object": `{"errors":{"title":"` + why + `"}}`,
		"JSON in text":  `data: {"error":{"message":"{\"error\":{\"message\":\"` + why + `\"}}"}}` + "\n\n",
		"in a choice":   `data: {"choices":[{"error":{"code":502,"message":"` + why + `"},"finish_reason":"error"}]}` + "\n\n",
		"beside":        `data: {"error":{"message":"` + why + `"},"choices":[{"delta":{},"finish_reason":"error"}]}` + "\n\n",
		"base_resp":     `{"id":"1","choices":null,"base_resp":{"status_code":1004,"status_msg":"` + why + `"}}`,
		"in a stream":   `data: {"base_resp":{"status_code":1004,"status_msg":"` + why + `"}}` + "\n\n",
		"only a text":   `{"success":false,"description":"` + why + `"}`,
		"spring":        `data: {"status":500,"error":"Internal Server Error","message":"` + why + `"}` + "\n\n",
		"late line":     `data: {"choices":[{"delta":{"content":"x"}}]}` + "\n\n" + why + "\n",
		"late JSON":     `data: {"choices":[{"delta":{"content":"x"}}]}` + "\n\n" + `{"error":{"message":"` + why + `"}}` + "\n",
		"late page":     `data: {"choices":[{"delta":{"content":"x"}}]}` + "\n\n<html>\n<title>" + why + "</title>\n",
		"failed event":  "event: failed\ndata: {\"reason\":\"" + why + "\"}\n\n",
		"no blanks":     "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\nevent: error\ndata: {\"message\":\"" + why + "\"}\n",
		"CR only":       "event: error\rdata: " + why + "\r\r",
		"choice text":   `data: {"choices":[{"error":"` + why + `"}]}` + "\n\n",
		"fields":        `data: {"error":{"err":"` + why + `"}}` + "\n\n",
		"message":       `{"message":"` + why + `","status":"error","code":3}`,
	} {
		if _, _, _, failed, _ := read(in); failed != why {
			t.Errorf("%s: %q", name, failed)
		}
	}
}

func TestReader_FindsThoughts(t *testing.T) {
	for in, want := range map[string]string{
		`{"choices":[{"delta":{"reasoning_content":"a"}}]}`:                                                    "a",
		`{"choices":[{"delta":{"reasoning":"a"}}]}`:                                                            "a",
		`{"choices":[{"delta":{"reasoning":"a","reasoning_content":"a"}}]}`:                                    "a",
		`{"choices":[{"delta":{"thinking":"a"}}]}`:                                                             "a",
		`{"choices":[{"delta":{"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a"}]}}]}`: "a",
		`{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.summary","summary":"a"}]}}]}`:           "a",
		`{"choices":[{"delta":{"reasoning":null,"reasoning_content":"a"}}]}`:                                   "a",
		`{"choices":[{"delta":{"reasoning":{"text":"a"}}}]}`:                                                   "a",
		`{"choices":[{"message":{"content":"b","reasoning_content":"a"}}]}`:                                    "a",
		`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]}}]}`:    "a",
		`{"choices":[{"delta":{"reasoning_text":"a"}}]}`:                                                       "a",
		`{"choices":[{"delta":{"thought":"a"}}]}`:                                                              "a",
		`{"choices":[{"delta":{"reasoning":false}}]}`:                                                          "",
		`{"choices":[{"delta":{"reasoning":[]}}]}`:                                                             "",
	} {
		if _, got, _, failed, _ := read("data: " + in + "\n\n"); got != want || failed != "" {
			t.Errorf("%s: %q %q", in, got, failed)
		}
	}
}

func TestReader_RefusesWhatIsNoAnswer(t *testing.T) {
	for _, in := range []string{"", "  \n", "<html>", "hello", `{"choices":`, `"x"`, "7", "\xff\xfe",
		`{"created_at":"2026-11-29T03:00:00Z","message":{"role":"assistant","content":"Hi"},"done":false}` + "\n"} {
		if _, _, _, _, err := read(in); !errors.Is(err, ErrNoChat) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// However a server divides its text, also within surrogate pairs and bytes of a character, and escapes
// it or not, the text arrives as it was.
func TestReader_JoinsWhatIsDivided(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 40, -1).Draw(t, "text")
		escape := rapid.Bool().Draw(t, "escape")
		var in strings.Builder
		for _, piece := range divide(t, text, escape) {
			in.WriteString(`data: {"choices":[{"delta":{"content":"` + piece + `"}}]}` + "\n\n")
		}
		in.WriteString("data: [DONE]\n\n")
		if got, _, _, _, err := read(in.String()); got != strings.ToValidUTF8(text, "�") || err != nil {
			t.Fatalf("%q: %q %v", in.String(), got, err)
		}
	})
}

// divide returns pieces of the JSON string of text, cut between escapes or between bytes.
func divide(t *rapid.T, text string, escape bool) []string {
	var units []string
	for _, r := range text {
		b, _ := json.Marshal(string(r))
		plain := string(b[1 : len(b)-1])
		switch {
		case escape && r > 0xFFFF:
			r -= 0x10000
			units = append(units, hex(0xD800+r>>10), hex(0xDC00+r&0x3FF))
		case escape || len(plain) > utf8.RuneLen(r):
			units = append(units, hex(r))
		default:
			for i := range len(plain) {
				units = append(units, plain[i:i+1])
			}
		}
	}
	pieces := []string{""}
	for _, u := range units {
		if rapid.Bool().Draw(t, "cut") {
			pieces = append(pieces, "")
		}
		pieces[len(pieces)-1] += u
	}
	return pieces
}

func hex(r rune) string {
	const digits = "0123456789abcdef"
	return `\u` + string([]byte{digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15]})
}

func TestJoiner_MarksWhatHasNoOtherHalf(t *testing.T) {
	for _, tt := range [][]string{{"\xed\xa0\xbd", "x", "�x"}, {"a\xed\xb8\x80b", "a�b"}, {"\xed\xa0\xbd", "�"},
		{"\xed\xa0\xbd\xed\xa0\xbd\xed\xb8\x80", "�😀"}, {"\xf0\x9f", "\x98", "\x80", "😀"}, {"\xf0\x9f", "�"}, {"\xff", "�"}} {
		var j Joiner
		got := ""
		for _, s := range tt[:len(tt)-1] {
			got += j.Add(s)
		}
		if got += j.Flush(); got != tt[len(tt)-1] {
			t.Errorf("%q: %q", tt, got)
		}
	}
}

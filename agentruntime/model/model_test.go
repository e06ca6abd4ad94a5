package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"agentsite/internal/egress"
	"agentsite/internal/fault"
	"agentsite/internal/models"
	"agentsite/internal/openai"
	"agentsite/internal/testing/agenttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server answers with h and returns a client of it.
func server(t *testing.T, key string, h http.HandlerFunc) *Client {
	t.Helper()
	network := agenttest.NewNetwork()
	s := network.Serve(h)
	t.Cleanup(s.Close)
	c, err := New(network.Transport(t), models.Server{URL: s.URL + "/v1", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func says(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

const sse = "text/event-stream"

var question = openai.ChatRequest{Model: "m", Messages: []openai.Message{{Role: openai.User, Content: "hi"}}}

func TestChat_ReadsEveryFormOfAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		contentType, body string
		want              Reply
	}{
		"stream": {sse, `data: {"model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n" +
			`data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}` + "\n\n: ping\n\n" +
			`data: {"choices":[{"index":1,"delta":{"content":"other"}},{"index":0,"delta":{"content":"lo"},"finish_reason":"stop"}]}` + "\n\n" +
			`data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}` + "\n\ndata: [DONE]\n\n",
			Reply{Text: "Hello", Finish: "stop", Model: "m-1", Usage: openai.Usage{PromptTokens: 1, CompletionTokens: 2, TotalTokens: 3}}},
		"reasoning is not the answer": {sse, `data: {"choices":[{"delta":{"reasoning_content":"hmm","content":null}}]}` + "\n\n" +
			`data: {"choices":[{"delta":{"content":"42"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n", Reply{Text: "42", Finish: "stop", Thoughts: "hmm"}},
		"parts":    {sse, `data: {"choices":[{"delta":{"content":[{"type":"text","text":"a"},{"type":"image_url"},"b"]}}]}` + "\n\ndata: [DONE]\n\n", Reply{Text: "ab"}},
		"no done":  {sse, `data: {"choices":[{"delta":{"content":"x"},"finish_reason":"length"}]}` + "\n\n", Reply{Text: "x", Finish: "length"}},
		"whole":    {"application/json", `{"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"total_tokens":9}}`, Reply{Text: "Hello", Finish: "stop", Model: "m", Usage: openai.Usage{TotalTokens: 9}}},
		"untyped":  {"", `{"choices":[{"message":{"content":[{"type":"text","text":"Hel"},{"type":"text","text":"lo"}]}}]}`, Reply{Text: "Hello"}},
		"nul byte": {sse, `data: {"choices":[{"delta":{"content":"a\u0000b"},"finish_reason":"stop"}]}` + "\n\n", Reply{Text: "ab", Finish: "stop"}},
	} {
		var streamed string
		c := server(t, "", says(200, tt.contentType, tt.body))
		got, err := c.Chat(t.Context(), question, func(s string) { streamed += s })
		if err != nil || !reflect.DeepEqual(got, tt.want) || streamed != tt.want.Text {
			t.Errorf("%s: %+v %v, streamed %q", name, got, err, streamed)
		}
	}
}

func TestChat_SaysWhatWentWrong(t *testing.T) {
	for name, tt := range map[string]struct {
		status      int
		contentType string
		body        string
		kind        fault.Kind
		want        string
		is          error
	}{
		"key":       {401, "application/json", `{"error":{"message":"bad key sk-secret"}}`, fault.Unauthenticated, `The endpoint refused the key. The server said "bad key [key]".`, ErrKey},
		"model":     {404, "application/json", `{"error":{"message":"The model m does not exist"}}`, fault.NotFound, `The model "m" is unknown to the endpoint. The server said "The model m does not exist".`, nil},
		"no api":    {404, "text/html", "<html>", fault.NotFound, "There is no OpenAI-compatible API at that address (HTTP 404).", ErrProtocol},
		"escaped":   {401, "application/json", `{"error":{"message":"bad key \u0073k-\u200bsecret"}}`, fault.Unauthenticated, `The endpoint refused the key. The server said "bad key [key]".`, ErrKey},
		"forbidden": {403, "application/json", `{"err":"Your plan has no access"}`, fault.Unauthenticated, `The endpoint refused the key. The server said "Your plan has no access".`, ErrKey},
		"status":    {403, "text/html", "<title>403 Forbidden</title>", fault.Unauthenticated, "The endpoint refused the key.", ErrKey},
		"detail":    {404, "application/json", `{"detail":"use /v2"}`, fault.NotFound, `There is no OpenAI-compatible API at that address (HTTP 404). The server said "use /v2".`, ErrProtocol},
		"method":    {405, "text/html", "<title>Error</title><pre>Cannot POST /v1</pre>", fault.NotFound, `There is no OpenAI-compatible API at that address (HTTP 405). The server said "Cannot POST /v1".`, ErrProtocol},
		"fields":    {422, "application/json", `{"errors":{"max_tokens":["is too large"]}}`, fault.Invalid, "The endpoint refused the question: max_tokens: is too large", nil},
		"key late":  {200, sse, `data: {"error":"no sk-secret"}` + "\n\n", fault.Unavailable, `The answer was interrupted: the model's server said "no [key]".`, ErrInterrupted},
		"refused":   {400, "application/json", `{"error":{"message":"context too\u202e long"}}`, fault.Invalid, "The endpoint refused the question: context too long", nil},
		"broken":    {500, "text/plain", "oops", fault.Unavailable, "The model's server failed (HTTP 500): oops", nil},
		"redirect":  {302, "text/plain", "", fault.Unavailable, "The endpoint redirects elsewhere (HTTP 302); use its final address.", ErrProtocol},
		"page":      {200, "text/html", "<html>", fault.Unavailable, "The endpoint does not speak the OpenAI API: it answered with a web page.", ErrProtocol},
		"json":      {200, "application/json", `{"ok":true}`, fault.Unavailable, "The endpoint does not speak the OpenAI API: it answered with other JSON.", ErrProtocol},
		"ollama":    {200, "application/x-ndjson", `{"model":"m","created_at":"2026-11-29T03:00:00Z","message":{"role":"assistant","content":"Hi"},"done":false}` + "\n" + `{"model":"m","created_at":"2026-11-29T03:00:01Z","message":{"role":"assistant","content":""},"done_reason":"stop","done":true}` + "\n", fault.Unavailable, "The endpoint does not speak the OpenAI API: it answered with Ollama's own API. Its OpenAI API is at the address that ends in /v1.", ErrProtocol},
		"generate":  {200, "application/json", `{"model":"m","created_at":"2026-11-29T03:00:00Z","response":"Hi","done":true}`, fault.Unavailable, "The endpoint does not speak the OpenAI API: it answered with Ollama's own API. Its OpenAI API is at the address that ends in /v1.", ErrProtocol},
		"nothing":   {200, "application/json", ``, fault.Unavailable, "The endpoint does not speak the OpenAI API: it answered with nothing.", ErrProtocol},
		"in stream": {200, sse, `data: {"error":{"message":"overloaded"}}` + "\n\n", fault.Unavailable, `The answer was interrupted: the model's server said "overloaded".`, ErrInterrupted},
		"as string": {200, sse, `data: {"error":"overloaded"}` + "\n\n", fault.Unavailable, `The answer was interrupted: the model's server said "overloaded".`, ErrInterrupted},
		"garbage":   {200, sse, "data: {{{\n\n", fault.Unavailable, "The answer was interrupted: the model's server sent something that cannot be read.", ErrInterrupted},
		"cut":       {200, sse, `data: {"choices":[{"delta":{"content":"hal"}}]}` + "\n\n", fault.Unavailable, "The answer was interrupted: the connection was closed before the answer was complete.", ErrInterrupted},
		"long line": {200, sse, "data: " + strings.Repeat("x", 2<<20) + "\n\n", fault.Unavailable, "The answer was interrupted: one line of the stream is larger than 1 MiB.", ErrInterrupted},
	} {
		c := server(t, "sk-secret", says(tt.status, tt.contentType, tt.body))
		_, err := c.Chat(t.Context(), question, nil)
		f := fault.As(err)
		if name == "redirect" { // no Location, so the status is what is seen
			if !errors.Is(err, tt.is) && egress.CodeOf(err) != egress.Redirect {
				t.Errorf("redirect: %v", err)
			}
			continue
		}
		if f.Kind != tt.kind || f.Safe != tt.want || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: %s %q (%v)", name, f.Kind, f.Safe, err)
		}
	}
}

func TestBusyResult_HasTheReasonOfTheServer(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"You exceeded your current quota"}}`: `Try again then. The server said "You exceeded your current quota".`,
		"": "Try again then.",
	} {
		c := server(t, "", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(429)
			io.WriteString(w, body)
		})
		_, err := c.Chat(t.Context(), question, nil)
		if r, ok := BusyResult(err); !ok || !strings.HasSuffix(r.Reason, want) || r.RetryAfter != time.Hour {
			t.Errorf("%s: %+v", body, r)
		}
	}
}

func TestChat_TakesEachStatusOfSuccess(t *testing.T) {
	const whole = `{"choices":[{"index":1,"message":"Hello","finish_reason":"stop"}]}`
	for _, status := range []int{200, 201, 202, 203, 206} {
		c := server(t, "", says(status, "application/json", whole))
		if got, err := c.Chat(t.Context(), question, nil); err != nil || got.Text != "Hello" {
			t.Errorf("%d: %+v %v", status, got, err)
		}
	}
}

func TestChat_RetriesOnceBeforeTheFirstToken(t *testing.T) {
	for name, tt := range map[string]struct {
		after  string
		status int
		fails  int64
		asked  int64
		kind   fault.Kind
	}{
		"once":      {"0.01", 429, 1, 2, ""},
		"twice":     {"0.01", 503, 2, 2, fault.Unavailable},
		"too long":  {"3600", 429, 1, 1, fault.RateLimited},
		"no retry":  {"", 500, 1, 1, fault.Unavailable},
		"nonsense":  {"-7", 429, 1, 1, fault.RateLimited},
		"not a num": {"NaN", 429, 1, 1, fault.RateLimited},
	} {
		var asked atomic.Int64
		c := server(t, "", func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) <= tt.fails {
				w.Header().Set("Retry-After", tt.after)
				w.WriteHeader(tt.status)
				return
			}
			says(200, "application/json", `{"choices":[{"message":{"content":"ok"}}]}`)(w, r)
		})
		reply, err := c.Chat(t.Context(), question, nil)
		if asked.Load() != tt.asked || (err == nil) != (tt.kind == "") || err != nil && !fault.Is(err, tt.kind) {
			t.Errorf("%s: asked %d times, %+v, %v", name, asked.Load(), reply, err)
		}
		if name == "too long" && fault.As(err).RetryAfter != time.Hour {
			t.Errorf("retry after %v", fault.As(err).RetryAfter)
		}
	}
}

func TestChat_DoesWithoutStreamOptions(t *testing.T) {
	var bodies []string
	c := server(t, "", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(b))
		if strings.Contains(string(b), "stream_options") {
			says(400, "application/json", `{"error":{"message":"Unknown field stream_options"}}`)(w, r)
			return
		}
		says(200, "application/json", `{"choices":[{"message":{"content":"ok"}}]}`)(w, r)
	})
	if reply, err := c.Chat(t.Context(), question, nil); err != nil || reply.Text != "ok" || len(bodies) != 2 {
		t.Errorf("%+v %v %q", reply, err, bodies)
	}
}

func TestChat_NoRetryAfterAToken(t *testing.T) {
	var asked atomic.Int64
	c := server(t, "", func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", sse)
		io.WriteString(w, `data: {"choices":[{"delta":{"content":"par"}}]}`+"\n\n")
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	reply, err := c.Chat(t.Context(), question, nil)
	if reply.Text != "par" || !errors.Is(err, ErrInterrupted) || asked.Load() != 1 {
		t.Errorf("%+v %v, asked %d times", reply, err, asked.Load())
	}
}

func TestChat_EndsEndlessAnswers(t *testing.T) {
	c := server(t, "", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", sse)
		for {
			if _, err := fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", strings.Repeat("ä", 500)); err != nil {
				return
			}
		}
	})
	reply, err := c.Chat(t.Context(), question, nil)
	if !errors.Is(err, ErrTooLong) || len(reply.Text) > MaxText || len(reply.Text) < MaxText-2 || strings.Trim(reply.Text, "ä") != "" {
		t.Errorf("%d bytes, %v", len(reply.Text), err)
	}
	c = server(t, "", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", sse)
		for {
			if _, err := io.WriteString(w, `data: {"choices":[{"delta":{}}]}`+"\n\n: keep-alive\n\n"); err != nil {
				return
			}
		}
	})
	if _, err := c.Chat(t.Context(), question, nil); !errors.Is(err, ErrInterrupted) || !strings.Contains(fault.As(err).Safe, "8 MiB") {
		t.Errorf("empty deltas: %v", err)
	}
	c = server(t, "", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for range 8 << 10 { // 8 MiB
			if _, err := io.WriteString(w, strings.Repeat(" ", 1<<10)); err != nil {
				return
			}
		}
	})
	if _, err := c.Chat(t.Context(), question, nil); !errors.Is(err, ErrInterrupted) || !strings.Contains(fault.As(err).Safe, "2 MiB in one piece") {
		t.Errorf("a large answer in one piece: %v", err)
	}
}

func TestChat_StopsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := server(t, "", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "10")
			w.WriteHeader(429)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := c.Chat(ctx, question, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

func TestModels(t *testing.T) {
	for body, want := range map[string]string{
		`{"object":"list","data":[{"id":"a"},{"id":""},{"id":"b"}]}`: "a b",
		`{"models":[{"name":"llama"},{"id":"x","name":"y"}]}`:        "llama x",
		`{"data":[]}`: "",
	} {
		got, err := server(t, "", says(200, "application/json", body)).Models(t.Context())
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q %v", body, got, err)
		}
	}
	for _, body := range []string{`{"data":7}`, `[]`, `<html>`, ``, `{}`} {
		if _, err := server(t, "", says(200, "", body)).Models(t.Context()); !errors.Is(err, ErrProtocol) {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func TestNew_RefusesWhatCannotBeSent(t *testing.T) {
	for _, tt := range [][2]string{{"not a url", ""}, {"/v1", ""}, {"http://example.com/v1", "a\r\nX: y"}} {
		if _, err := New(http.DefaultTransport, models.Server{URL: tt[0], Key: tt[1]}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", tt, err)
		}
	}
}

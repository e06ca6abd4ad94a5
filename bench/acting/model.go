package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// serveModel runs a model until it is ended. A stream has chunks for the time in its question, at the rate.
func serveModel(rate string) error {
	perSecond, err := strconv.Atoi(rate)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		var in question
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		if err := in.writeAnswer(w, time.Second/time.Duration(perSecond)); err != nil {
			return // The reader is gone.
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	})
	return serveUntilEnd(mux)
}

// question is a request to the model.
type question struct {
	Messages []struct {
		Role    string
		Content string
	}
	Tools []struct{ Function struct{ Name string } }
}

// The words of questions and of instructions that the model obeys.
const (
	streamFor = "stream for " // a duration follows
	askNext   = "ask next "   // the name of an agent follows
	lastWord  = "arrived"     // the answer of the last agent
)

func (q question) writeAnswer(w http.ResponseWriter, every time.Duration) error {
	last := q.Messages[len(q.Messages)-1]
	if _, span, ok := strings.Cut(last.Content, streamFor); ok {
		span, _, _ = strings.Cut(span, ";")
		during, err := time.ParseDuration(span)
		if err != nil {
			return err
		}
		return writeStream(w, during, every)
	}
	_, next, asks := strings.Cut(q.Messages[0].Content, askNext)
	if asks && last.Role != "tool" {
		next, _, _ = strings.Cut(next, ";")
		args, err := json.Marshal(map[string]string{"agent": next, "text": "go on"})
		if err != nil {
			return err
		}
		return writeChunk(w, fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"ask","arguments":%q}}]}`,
			args), "tool_calls")
	}
	text := []byte(strconv.Quote(lastWord))
	if asks { // The answer of the agent that was asked is passed on, also if it is another one.
		var err error
		if text, err = json.Marshal(last.Content); err != nil {
			return err
		}
	}
	return writeChunk(w, fmt.Sprintf(`{"content":%s}`, text), "stop")
}

// writeStream writes chunks with the time at which each is written, in nanoseconds.
func writeStream(w http.ResponseWriter, during, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for end := time.Now().Add(during); ; <-tick.C {
		now := time.Now()
		if now.After(end) {
			return writeChunk(w, `{"content":""}`, "stop")
		}
		if err := writeChunk(w, fmt.Sprintf(`{"content":"%d|"}`, now.UnixNano()), ""); err != nil {
			return err
		}
	}
}

func writeChunk(w http.ResponseWriter, delta, finish string) error {
	reason := "null"
	if finish != "" {
		reason = strconv.Quote(finish)
	}
	_, err := fmt.Fprintf(w, `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n",
		delta, reason)
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	return err
}

// serveProxy passes requests on to an address, until it is ended.
func serveProxy(addr string) error {
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addr})
	proxy.FlushInterval = -1
	proxy.Transport = &http.Transport{MaxIdleConnsPerHost: 1000}
	return serveUntilEnd(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The whole question first: the answer may begin before the last of it was passed on, which ends the connection.
		b, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(b))
		proxy.ServeHTTP(w, r)
	}))
}

func serveUntilEnd(h http.Handler) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: h}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	go func() { <-ctx.Done(); srv.Close() }()
	fmt.Printf("ready http://%s\n", l.Addr())
	if err := srv.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// Command floor is the cheapest server, built from the same libraries as the portal (chi, templ, sqlx,
// modernc, coder/websocket), that answers the same requests: without accounts, rights, checks and
// limits, and with only the data that the answers need. bench/load and bench/rooms compare the portal
// with it. It must not become slower, because that would make the portal look better; a faster one is
// welcome.
//
//	GET  /agents                    the portal's page of 20 agents, from values prepared before
//	GET  /browse                    the same for a signed-in user, with facets
//	GET  /search?q=                 20 results as JSON, from a plain index in the process
//	POST /agents                    two rows, group commit, FULL, and their words in the plain index
//	POST /import                    the same for an agent a line, a thousand in a transaction
//	POST /rooms/{id}/messages       one row and the head of its room, group commit, FULL
//	GET  /rooms/{id}/chat           the portal's page of a conversation, each message rendered once
//	GET  /rooms/{id}/live           a WebSocket that is sent every message
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/go-chi/chi/v5"

	"agentsite/bench/corpus"
	"agentsite/internal/hub"
	"agentsite/internal/index"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func run() error {
	listen := flag.String("listen", "127.0.0.1:0", "address")
	data := flag.String("data", "", "empty folder for the database")
	agents := flag.Int("agents", 10_000, "agents held")
	rooms := flag.Int("rooms", 64, "rooms, named 0, 1, …")
	flag.Parse()
	s, err := newRooms(*data, *rooms)
	if err != nil {
		return err
	}
	defer s.close()
	x, plain := index.New(), newWords()
	for i := range *agents {
		a := corpus.Agent(i)
		plain.put(&a)
		if i < listed {
			x.Put(a)
		}
	}
	first, err := x.Search(hub.Query{Limit: 20})
	if err != nil {
		return err
	}
	d, err := newDirectory(*data, plain)
	if err != nil {
		return err
	}
	defer d.close()
	r := chi.NewRouter()
	r.Get("/agents", agentsPage(first))
	r.Get("/browse", browsePage(first))
	r.Get("/search", d.search)
	r.Post("/agents", d.register)
	r.Post("/import", d.load)
	r.Post("/rooms/{id}/messages", s.post)
	r.Get("/rooms/{id}/chat", s.chatPage())
	r.Get("/rooms/{id}/live", s.live)
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	srv := &http.Server{Handler: r}
	go func() { <-ctx.Done(); srv.Close() }()
	fmt.Printf("ready http://%s\n", l.Addr())
	if err := srv.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// listed is the number of agents from which the page of the directory is prepared; only a search finds
// the others.
const listed = 10_000

// found is one search result, with the same fields as a result of the portal.
type found struct {
	Name        string   `json:"name"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	Score       float64  `json:"score"`
}

func answer(w http.ResponseWriter, code int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(code)
	w.Write(b)
}

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/coder/websocket"
)

// floor is the simplest broadcast: a goroutine and a channel for each client. It must not change,
// because a slower floor would make the portal look better.
type floor struct {
	mu    sync.Mutex // guards rooms
	rooms map[string]map[chan []byte]struct{}
}

// serveFloor runs the floor: it sends the body of a POST to /ROOM to all WebSockets at /ROOM.
func serveFloor() error {
	f := &floor{rooms: make(map[string]map[chan []byte]struct{})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{room}", f.say)
	mux.HandleFunc("GET /{room}", f.listen)
	srv := &http.Server{Handler: mux}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	go func() { <-ctx.Done(); srv.Close() }()
	fmt.Printf("ready http://%s\n", l.Addr())
	if err := srv.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}

func (f *floor) say(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.rooms[r.PathValue("room")] {
		select {
		case c <- b:
		default: // Dropping is safe: the benchmark fails when a reader misses a message.
		}
	}
	w.WriteHeader(http.StatusCreated)
}

func (f *floor) listen(w http.ResponseWriter, r *http.Request) {
	room, c := r.PathValue("room"), make(chan []byte, 256)
	f.mu.Lock()
	if f.rooms[room] == nil {
		f.rooms[room] = make(map[chan []byte]struct{})
	}
	f.rooms[room][c] = struct{}{}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.rooms[room], c)
		f.mu.Unlock()
	}()
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	ctx := conn.CloseRead(r.Context())
	for {
		select {
		case b := <-c:
			if conn.Write(ctx, websocket.MessageText, b) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

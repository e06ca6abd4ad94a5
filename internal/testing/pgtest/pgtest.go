// Package pgtest gives tests databases on a PostgreSQL server.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// serverVariable names the environment variable with the URL of a running server with a role that may create
// databases. Without it a process of tests starts a server of its own.
const serverVariable = "AGENTSITE_TEST_POSTGRES"

var (
	server    = sync.OnceValues(findServer)
	databases atomic.Int64
	stop      = func() {}
)

// Run runs the tests of a package and waits until the server that they started has ended. It returns the
// exit code.
func Run(m *testing.M) int {
	code := m.Run()
	stop()
	return code
}

// NewDatabase creates an empty database and returns its URL. It is dropped when the test ends. The test
// is skipped without a server.
func NewDatabase(t testing.TB) string {
	t.Helper()
	return copyDatabase(t, "template0")
}

func copyDatabase(t testing.TB, template string) string {
	t.Helper()
	url, err := server()
	if err != nil {
		skip(t, err)
	}
	name := newName()
	if err := execute(url, "CREATE DATABASE "+name+" TEMPLATE "+template+" ENCODING 'UTF8'"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := execute(url, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return urlOf(url, name)
}

func newName() string { return fmt.Sprintf("agentsite_test_%d_%d", os.Getpid(), databases.Add(1)) }

// urlOf returns the URL of a database of the server with that URL of its database postgres.
func urlOf(server, name string) string {
	before, after, _ := strings.Cut(server, "/postgres?")
	return before + "/" + name + "?" + after
}

func execute(url, query string) error {
	c, err := pgx.Connect(context.Background(), url)
	if err != nil {
		return err
	}
	_, err = c.Exec(context.Background(), query)
	return errors.Join(err, c.Close(context.Background()))
}

// Template makes databases that fill has filled, as copies of the first one, because creating the tables
// takes longer than most tests.
type Template struct {
	// Fill fills the empty database with that URL and closes all its connections.
	Fill func(url string) error

	once sync.Once
	name string
	err  error
}

// NewDatabase is the function NewDatabase for a database with that content.
func (p *Template) NewDatabase(t testing.TB) string {
	t.Helper()
	url, err := server()
	if err != nil {
		skip(t, err)
	}
	p.once.Do(func() {
		p.name = newName()
		p.err = errors.Join(execute(url, "CREATE DATABASE "+p.name+" TEMPLATE template0 ENCODING 'UTF8'"),
			p.Fill(urlOf(url, p.name)))
	})
	if p.err != nil {
		t.Fatal(p.err)
	}
	return copyDatabase(t, p.name)
}

// engineVariable names the environment variable that chooses the engine of the tests: "postgres", or
// nothing for SQLite.
const engineVariable = "AGENTSITE_TEST_ENGINE"

// Enabled reports whether the tests run on PostgreSQL.
func Enabled() bool { return os.Getenv(engineVariable) == "postgres" }

// Skip skips a test about files of SQLite if the tests run on PostgreSQL.
func Skip(t testing.TB) {
	t.Helper()
	if Enabled() {
		t.Skip("about SQLite's files")
	}
}

// ofFolders maps a data folder to the URL of its database.
var ofFolders sync.Map

// DatabaseOf returns the URL of the database of a data folder; "" if the tests run on SQLite. The first
// call for a folder creates it, as a copy of the template.
func DatabaseOf(t testing.TB, dir string, template *Template) string {
	t.Helper()
	if !Enabled() {
		return ""
	}
	if url, ok := ofFolders.Load(dir); ok {
		return url.(string)
	}
	url := template.NewDatabase(t)
	ofFolders.Store(dir, url)
	return url
}

// Server is a PostgreSQL server that a test starts, kills and starts again.
type Server struct {
	Dir  string // with the data in "data"
	Port int
	cmd  *exec.Cmd
	pipe *os.File // stays open as long as this process; see endWithProcess
}

// WriteFile writes a file of the folder with the data, which belongs to the user that runs the server.
func (s *Server) WriteFile(name string, text []byte) error {
	path := filepath.Join(s.Dir, "data", name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	return asUser(path)
}

// Find reports whether the programs of a server are there.
func Find() error {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := program(name); err != nil {
			return err
		}
	}
	return nil
}

// program returns the path of a program of PostgreSQL. Debian installs most of them outside PATH.
func program(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name) // cannot fail: the pattern is valid
	if len(found) == 0 {
		return "", err
	}
	return found[len(found)-1], nil
}

// NewServer creates the data of a server in a new folder, without starting it. The caller removes Dir.
func NewServer() (*Server, error) {
	if err := Find(); err != nil {
		return nil, err
	}
	// Memory takes a flush for nothing, and the server is set as a real one has to be.
	dir, err := os.MkdirTemp("/dev/shm", "agentsite-postgres-")
	if err != nil {
		dir, err = os.MkdirTemp("", "agentsite-postgres-")
	}
	if err != nil {
		return nil, err
	}
	s := &Server{Dir: dir}
	if err := asUser(dir); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.Port = l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return nil, err
	}
	cmd, err := command("initdb", "-D", filepath.Join(dir, "data"), "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-N")
	if err != nil {
		return nil, err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return s, nil
}

// URL returns the URL of a database of the server.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.Port, database)
}

// Start starts the server and returns when it answers.
func (s *Server) Start(ctx context.Context) error {
	if err := s.launch(); err != nil {
		return err
	}
	for {
		c, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			return c.Close(ctx)
		}
		if ctx.Err() != nil {
			return err
		}
		// After a kill the server refuses its folder as long as a process of the former one exists.
		if hasEnded(s.cmd.Process.Pid) {
			if err := s.launch(); err != nil {
				return err
			}
		}
	}
}

// launch starts the server's process.
func (s *Server) launch() error {
	cmd, err := command("postgres", "-D", filepath.Join(s.Dir, "data"), "-p", fmt.Sprint(s.Port), "-k", s.Dir,
		"-c", "listen_addresses=127.0.0.1", "-c", "max_connections=1000", "-c", "shared_buffers=32MB")
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(s.Dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd = cmd
	return nil
}

// Kill ends all processes of the server at once, as a crash would.
func (s *Server) Kill() { s.signal(syscall.SIGKILL) }

// Stop ends the server and removes its folder.
func (s *Server) Stop() {
	s.signal(syscall.SIGQUIT)
	_ = os.RemoveAll(s.Dir) // a test's folder; the next start of the machine removes the rest
}

func (s *Server) signal(sig syscall.Signal) {
	if s.cmd == nil {
		return
	}
	_ = syscall.Kill(-s.cmd.Process.Pid, sig) // the group has ended if this fails
	_ = s.cmd.Wait()                          // the exit status of a killed server is no error
	s.cmd = nil
}

// endWithProcess starts a shell that ends the server and removes its folder when this process has ended,
// however it ended.
func (s *Server) endWithProcess() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	s.pipe = w
	guard := exec.Command("sh", "-c", `read _; kill -s QUIT -- "-$1"; tail --pid="$1" -f /dev/null; rm -rf "$2"`, "sh",
		strconv.Itoa(s.cmd.Process.Pid), s.Dir)
	guard.Stdin, guard.Dir = r, "/"
	guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return guard.Start()
}

func findServer() (string, error) {
	if url := os.Getenv(serverVariable); url != "" {
		return url, nil
	}
	s, err := NewServer()
	if err == nil {
		err = s.Start(context.Background())
	}
	if err != nil {
		return "", err
	}
	stop = s.Stop
	return s.URL("postgres"), s.endWithProcess()
}

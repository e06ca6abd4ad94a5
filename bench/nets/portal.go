package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	inside       = "127.0.0.1:8080" // address of a portal in its namespace
	readyTimeout = time.Minute
	stopTimeout  = 30 * time.Second
)

// portal is one portal process in a network namespace of its own, behind a TLS proxy. One goroutine at
// a time uses it, except for bytes.
type portal struct {
	w     *world
	n     int
	host  string // host name of the portal's address, and its name in messages
	space string
	dir   string
	cmd   *exec.Cmd
	ended chan struct{}
	front *http.Server
	token string
	up    bool // false after kill and stop, even if the process ended by itself
	// bytes is the total size of the answers to other portals, without headers.
	bytes atomic.Int64
}

func (p *portal) origin() string { return "https://" + p.host }

// start runs the portal and waits until it prints that it is ready.
func (p *portal) start() error {
	trouble, err := os.OpenFile(p.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer trouble.Close()
	args := []string{"netns", "exec", p.space, p.w.binary, "serve", "--data", p.dir, "--listen", inside, "--url", p.origin(), "--accounts", "open",
		"--trusted-proxies", "127.0.0.1", "--allow-cidr", "10.77.0.0/24", "--log-level", p.w.level}
	if p.n > 0 {
		// Each portal joins by the address of the one before it only, so the portals must learn of all
		// others from each other.
		args = append(args, "--join", p.w.portals[p.n-1].origin())
	}
	p.cmd = exec.Command("ip", args...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.cmd.Stderr = trouble
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "SSL_CERT_FILE=" + p.w.caFile, "GOMEMLIMIT=200MiB"}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	ready, ended := make(chan struct{}, 1), make(chan struct{})
	p.ended = ended
	go func() {
		defer close(ended)
		in := bufio.NewScanner(out)
		for in.Scan() {
			if strings.HasPrefix(in.Text(), "ready ") {
				ready <- struct{}{}
			}
		}
		p.cmd.Wait()
	}()
	select {
	case <-ready:
		p.up = true
		return nil
	case <-ended:
		return fmt.Errorf("%s ended at its start", p.host)
	case <-time.After(readyTimeout):
		return fmt.Errorf("%s is not ready after %s", p.host, readyTimeout)
	}
}

func (p *portal) log() string { return p.dir + ".log" }

// kill ends the process with SIGKILL, as a crash would.
func (p *portal) kill() {
	if p.up = false; p.ended != nil {
		p.cmd.Process.Kill()
		<-p.ended
	}
}

// stop sends SIGTERM and waits up to stopTimeout; after that it kills the process and returns an error.
func (p *portal) stop() error {
	p.up = false
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopTimeout):
		p.kill()
		return fmt.Errorf("%s does not end", p.host)
	}
}

// enrol creates an account on the portal and an API token, with which api makes its requests.
func (p *portal) enrol() error {
	for _, step := range []struct {
		in   string
		args []string
	}{
		{"correct horse battery\n", []string{"user", "add", "--data", p.dir, "--admin", "--password-stdin", "ann"}},
		{"", []string{"token", "add", "--data", p.dir, "--user", "ann"}},
	} {
		cmd := exec.Command(p.w.binary, step.args...)
		cmd.Stdin = strings.NewReader(step.in)
		var trouble bytes.Buffer
		cmd.Stderr = &trouble
		b, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("%s: %q: %w: %s", p.host, step.args, err, trouble.String())
		}
		p.token = strings.TrimSpace(string(b))
	}
	return nil
}

// serve starts the TLS proxy in front of the portal, or handler instead of one when it is not nil. An
// old proxy speaks HTTP/1.1 only and reads a whole request before it passes it on.
func (p *portal) serve(old bool, handler http.Handler) error {
	if handler == nil {
		handler = p.proxy(old)
	}
	cert, err := p.w.ca.Certificate(p.host)
	if err != nil {
		return err
	}
	l, err := listen(p.space, "0.0.0.0:443")
	if err != nil {
		return err
	}
	p.front = &http.Server{Handler: handler, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}, ErrorLog: quiet}
	if old {
		p.front.Protocols = new(http.Protocols)
		p.front.Protocols.SetHTTP1(true)
	}
	go p.front.ServeTLS(l, "", "")
	return nil
}

var quiet = log.New(io.Discard, "", 0)

func (p *portal) proxy(old bool) http.Handler {
	to := &url.URL{Scheme: "http", Host: inside}
	proxy := &httputil.ReverseProxy{ErrorLog: quiet, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.SetXForwarded()
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, p.space, inside) }},
		ModifyResponse: func(r *http.Response) error {
			if strings.HasPrefix(r.Request.URL.Path, "/peering/") {
				r.Body = &counted{r.Body, &p.bytes}
			}
			return nil
		},
	}
	if !old {
		return proxy
	}
	proxy.FlushInterval = 0
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 8<<20))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
		proxy.ServeHTTP(w, r)
	})
}

// counted is a response body that adds the bytes read from it to n.
type counted struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// tail returns the last n bytes of a log file, or the error as text.
func tail(name string, n int64) string {
	f, err := os.Open(name)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if end, err := f.Seek(0, io.SeekEnd); err == nil && end > n {
		f.Seek(-n, io.SeekEnd)
	} else {
		f.Seek(0, io.SeekStart)
	}
	b, err := io.ReadAll(f)
	if err != nil && !errors.Is(err, io.EOF) {
		return err.Error()
	}
	return string(b)
}

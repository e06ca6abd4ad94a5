package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/internal/testing/agenttest"
)

// dock starts the servers of the suspects on loopback and stops them when the test t ends.
type dock struct {
	t       testing.TB
	trusted *x509.CertPool
}

func newDock(t testing.TB) *dock {
	d := &dock{t: t}
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	d.trusted = pool(s.Certificate())
	return d
}

// counter counts the requests to a handler, and those that would make an agent of any protocol do work.
// It is safe for concurrent use.
type counter struct{ all, work atomic.Int64 }

func (c *counter) asked() int  { return int(c.all.Load()) }
func (c *counter) worked() int { return int(c.work.Load()) }

// labourMethods and labourPaths are the JSON-RPC methods and the ends of paths whose requests make an
// agent do work.
var (
	labourMethods = []string{"message/send", "message/stream", "SendMessage", "SendStreamingMessage", "tools/call", "prompts/get", "resources/read"}
	labourPaths   = []string{"/chat/completions", "/completions", "/responses", "/embeddings", "/message:send", "/message:stream"}
)

func (c *counter) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(b))
		c.all.Add(1)
		var rpc struct{ Method string }
		json.Unmarshal(b, &rpc)
		if r.Method == http.MethodPost && slices.ContainsFunc(labourPaths, func(p string) bool { return strings.HasSuffix(r.URL.Path, p) }) || slices.Contains(labourMethods, rpc.Method) {
			c.work.Add(1)
		}
		next.ServeHTTP(w, r)
	})
}

// serve starts a server whose requests are counted.
func (d *dock) serve(h http.HandlerFunc) (*httptest.Server, *counter) {
	c := new(counter)
	s := httptest.NewServer(c.watch(h))
	d.t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s, c
}

// at returns s with the address and counter of a new server for h. Its endpoint becomes a path on that
// server.
func (d *dock) at(s suspect, h http.HandlerFunc) suspect {
	server, c := d.serve(h)
	s.endpoint = server.URL + s.endpoint
	s.asked, s.work = c.asked, c.worked
	return s
}

// a2a returns s with the address and counter of an A2A server built on the protocol's SDK.
func (d *dock) a2a(s suspect, server *agenttest.A2AServer) suspect {
	if s.endpoint = server.Endpoint(agenttest.Echo) + s.endpoint; s.asked == nil {
		s.asked = func() int { _, h := server.Messages(); return len(h) }
		s.work = func() int { m, _ := server.Messages(); return len(m) }
	}
	return s
}

func (d *dock) openai(s suspect, server *agenttest.OpenAIServer) suspect {
	s.endpoint = server.Base(agenttest.Echo)
	s.asked = server.Lists
	s.work = func() int { r, _ := server.Requests(); return len(r) }
	return s
}

func (d *dock) mcp(s suspect, server *agenttest.MCPServer) suspect {
	s.endpoint = server.Endpoint(agenttest.Echo)
	s.asked = func() int { m, _ := server.Methods(); return len(m) }
	s.work = func() int { return len(server.Calls()) }
	return s
}

// accept returns s with the address of a raw TCP listener, which calls each for every connection, one
// at a time, and then closes the connection.
func (d *dock) accept(s suspect, each func(net.Conn)) suspect {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		d.t.Fatal(err)
	}
	c := new(counter)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.all.Add(1)
			each(conn)
			conn.Close()
		}
	}()
	d.t.Cleanup(func() { l.Close(); <-done })
	s.endpoint = "http://" + l.Addr().String() + s.endpoint
	s.asked, s.work = c.asked, c.worked
	return s
}

// nobody returns s with the address of a port on which no program listens.
func (d *dock) nobody(s suspect) suspect {
	c := new(counter)
	s.endpoint = "http://" + agenttest.Refusing(d.t) + s.endpoint
	s.asked, s.work = c.asked, c.worked
	return s
}

// secure returns s with the address of a TLS server for h. cert nil means the certificate that the
// portal trusts.
func (d *dock) secure(s suspect, cert *tls.Certificate, h http.HandlerFunc) suspect {
	c := new(counter)
	server := httptest.NewUnstartedServer(c.watch(h))
	server.Config.ErrorLog = quiet
	if cert != nil {
		server.TLS = &tls.Config{Certificates: []tls.Certificate{*cert}}
	}
	server.StartTLS()
	d.t.Cleanup(server.Close)
	s.endpoint = server.URL + s.endpoint
	s.asked, s.work = c.asked, c.worked
	return s
}

// foreign returns a self-signed certificate for another host, which no client trusts.
func (d *dock) foreign() *tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		d.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "other.example"}, DNSNames: []string{"other.example"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		d.t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// says returns a handler that gives the same answer to every request.
func says(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// rpc returns a JSON-RPC handler. code returns the error code for a method; with 0 the answer is an
// empty result.
func rpc(code func(method string) int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			ID     json.RawMessage
			Method string
		}
		if json.NewDecoder(r.Body).Decode(&req) != nil || req.Method == "" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if c := code(req.Method); c != 0 {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"no"}}`, req.ID, c)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, req.ID)
	}
}

// keyed returns a handler that calls next for requests with that header, and answers others with
// status.
func keyed(header, value string, status int, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(header) != value {
			w.WriteHeader(status)
			return
		}
		next(w, r)
	}
}

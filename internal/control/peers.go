package control

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"agentsite/handlers/api"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/store"
	"agentsite/store/replica"
)

// Peers reaches the API about other portals: GET /peers and the rest, below
// the address http://portal/api/v1. Whoever holds the data folder is its
// operator.
func (c *remoteControl) Peers(context.Context) (http.RoundTripper, error) {
	return c.client.Transport, nil
}

// Peers implements Control.
func (c *localControl) Peers(ctx context.Context) (http.RoundTripper, error) {
	if c.peers == nil {
		return nil, fault.New(fault.Unavailable, "The portals cannot be read here.")
	}
	return c.peers(ctx)
}

// offline is this portal as a federation.Signer while it does not run: it has an id and signs nothing.
type offline struct {
	id              record.PortalID
	network, origin string
}

func (o offline) ID() record.PortalID { return o.id }
func (o offline) Network() string     { return o.network }
func (o offline) Origin() string      { return o.origin }
func (o offline) Card() []byte        { return nil }
func (o offline) Key(time.Time) (record.KeyID, ed25519.PrivateKey, time.Time, error) {
	return "", nil, time.Time{}, errors.New("only a running portal signs")
}

// offlinePeers opens the known portals of a data folder that is not in use. closing closes the replica.
func offlinePeers(ctx context.Context, dir string, db *store.DB, who offline, log *slog.Logger) (h http.Handler,
	closing func() error, err error) {
	cfg := federation.PeersConfig{Signer: who, Log: log}
	done := func() error { return nil } // not closing, which the caller gets
	if _, err := os.Stat(filepath.Join(dir, replica.FileName)); err == nil && who.network != "" {
		replica, err := replica.Open(ctx, dir, who.id, who.network, log)
		if err != nil {
			return nil, nil, err
		}
		cfg.Replica, done = replica, replica.Close
	}
	peers, err := federation.NewPeers(ctx, db.Peers, cfg)
	if err != nil {
		return nil, nil, errors.Join(err, done())
	}
	save := func() error { // only Run stores the portals that Add discovers
		ended, cancel := context.WithCancel(context.WithoutCancel(ctx))
		cancel()
		return peers.Run(ended)
	}
	return api.PeersAs(peers, system, log), func() error { return errors.Join(save(), done()) }, nil
}

// inProcess answers requests by a handler.
type inProcess struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := &answerBuffer{header: make(http.Header), code: http.StatusOK}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	t.handler.ServeHTTP(w, r)
	return &http.Response{Status: http.StatusText(w.code), StatusCode: w.code, Header: w.header,
		Body: io.NopCloser(&w.body), Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}, nil
}

type answerBuffer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (w *answerBuffer) Header() http.Header         { return w.header }
func (w *answerBuffer) WriteHeader(code int)        { w.code = code }
func (w *answerBuffer) Write(b []byte) (int, error) { return w.body.Write(b) }

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
	"agentsite/internal/settings"
	"agentsite/store"
	"agentsite/store/replica"
)

// Peers implements Control: requests go over the socket to the running portal, which treats them as the
// system's.
func (c *remoteControl) Peers(context.Context) (http.RoundTripper, error) {
	return c.client.Transport, nil
}

// Peers always fails: the running portal serves this API itself, and stoppedControl overrides the
// method.
func (c *localControl) Peers(context.Context) (http.RoundTripper, error) {
	return nil, fault.New(fault.Unavailable, "The portals cannot be read here.")
}

// Peers implements Control: requests are handled in this process. Changes are stored by Close.
func (c *stoppedControl) Peers(ctx context.Context) (http.RoundTripper, error) {
	o := c.folder
	p, err := openPeers(ctx, o.set.Config, o.db, offline{id: record.PortalOf(record.Public(o.keys.Public())),
		network: o.set.NetworkName, origin: o.url}, o.log)
	if err != nil {
		return nil, err
	}
	c.opened = append(c.opened, p)
	return inProcess{http.StripPrefix("/api/v1", api.PeersAs(p.peers, system, o.log))}, nil
}

// offline is the federation.Signer of this portal while it does not run: it has the portal's id, but
// signs nothing.
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

// offlinePeers holds the known portals of a stopped portal.
type offlinePeers struct {
	peers   *federation.Peers
	replica *replica.Replica // nil without a network
}

// openPeers reads the known portals of a stopped portal. The caller must call closePeers.
func openPeers(ctx context.Context, set settings.Config, db *store.DB, self offline, log *slog.Logger) (*offlinePeers,
	error) {
	cfg := federation.PeersConfig{Signer: self, Log: log}
	p := &offlinePeers{}
	_, err := os.Stat(filepath.Join(set.Data, replica.FileName))
	if there := err == nil || set.Database != ""; there && self.network != "" {
		p.replica, err = replica.Open(ctx, replica.Config{Dir: set.Data, Database: set.Database, Own: self.id,
			Network: self.network, Log: log})
		if err != nil {
			return nil, err
		}
		cfg.Replica = p.replica
	}
	peers, err := federation.NewPeers(ctx, db.Peers, cfg)
	if err != nil {
		return nil, errors.Join(err, p.closeReplica())
	}
	p.peers = peers
	return p, nil
}

// closePeers writes changes to the database and closes the replica.
func (p *offlinePeers) closePeers() error {
	ended, cancel := context.WithCancel(context.Background())
	cancel() // Run writes pending changes when its context ends
	return errors.Join(p.peers.Run(ended), p.closeReplica())
}

func (p *offlinePeers) closeReplica() error {
	if p.replica == nil {
		return nil
	}
	return p.replica.Close()
}

// inProcess is a transport that calls an HTTP handler directly, without a connection.
type inProcess struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper. It returns after the handler, with the whole answer in memory.
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

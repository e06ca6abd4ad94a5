package main

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	"agentsite/agentruntime/mcp"
	"agentsite/agentruntime/remote"
	"agentsite/internal/egress"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/index"
	"agentsite/internal/liveness"
	"agentsite/internal/testing/storetest"
)

// suspect is an agent whose liveness the hub must find out, with the right result.
type suspect struct {
	name, what string
	kind       hub.Kind
	want       hub.Live // the right liveness, as a person would find it
	endpoint   string
	config     any // settings of the kind; nil if the portal must find them at the address
	secret     string
	// asked returns the number of requests that the agent got, work the number of those that made it do
	// work.
	asked, work func() int
}

// row is a suspect with the hub's results.
type row struct {
	suspect
	first, got   hub.Liveness // liveness at the registration, and at the check after it
	asks, labour int
	err          error
}

// right reports whether both results are right and a wrong state has a reason.
func (r row) right() bool {
	// The probe at a registration has little time, so its result may be unknown.
	first := r.first.State == r.want || r.first.State == hub.Unknown
	return r.err == nil && first && r.got.State == r.want && (r.want == hub.Alive || r.got.Reason != "")
}

// judge registers every suspect in a hub with a real database, has each checked, and returns the
// results.
func judge(t testing.TB) []row {
	d := newDock(t)
	suspects := append(d.good(), d.broken()...)
	db := storetest.New(t)
	keys, err := ident.LoadKeys(storetest.Dir(db))
	if err != nil {
		t.Fatal(err)
	}
	out := egress.New(egress.Config{
		AllowCIDR: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, RootCAs: d.trusted,
		// A portal waits longer. The limits are short because some suspects never answer.
		FirstByte: 1500 * time.Millisecond, Idle: 1500 * time.Millisecond, Total: 3 * time.Second,
	})
	t.Cleanup(out.CloseIdle)
	rt := out.RoundTripper()
	queue := liveness.NewQueue(db, slog.New(slog.DiscardHandler))
	h := hub.New(hub.Ports{Store: db, Index: index.New(), Probes: queue,
		Reader: readers{remote.NewReader(rt), mcp.NewReader(rt)}, Sealer: keys, Addresses: addresses{out}}, hub.Config{
		Portal: "truth.example", Kinds: []hub.Kind{hub.A2A, hub.MCP, hub.OpenAI}, Loopback: true, Log: slog.New(slog.DiscardHandler),
	})
	monitor := liveness.New(liveness.Ports{Queue: queue, Prober: probers{remote.NewProber(rt), mcp.NewProber(rt)}, Directory: h, Notices: h.Notices})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- monitor.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})

	rows := make([]row, len(suspects))
	var wg sync.WaitGroup
	for i, s := range suspects {
		a := storetest.Account(t, db, "owner-of-"+s.name)
		owner := ident.Actor{Kind: ident.Person, ID: a.ID, Name: a.Name}
		wg.Go(func() {
			r := row{suspect: s}
			r.first, r.got, r.err = verdicts(ctx, h, owner, s)
			r.asks, r.labour = s.asked(), s.work()
			rows[i] = r
		})
	}
	wg.Wait()
	return rows
}

func verdicts(ctx context.Context, h *hub.Service, owner ident.Actor, s suspect) (first, second hub.Liveness, err error) {
	d := hub.Draft{Name: &s.name, Description: &s.what, Kind: &s.kind, Endpoint: &s.endpoint}
	if s.config != nil {
		b, err := json.Marshal(s.config)
		if err == nil {
			err = json.Unmarshal(b, &d.Config)
		}
		if err != nil {
			return first, second, err
		}
	}
	if s.secret != "" {
		d.Secret = &s.secret
	}
	a, err := h.Publish(ctx, owner, d)
	if err != nil {
		return first, second, err
	}
	first = a.Liveness
	a, err = h.Check(ctx, owner, s.name)
	return first, a.Liveness, err
}

// probers and readers choose the implementation by the kind of agent, as a portal does.
type probers struct {
	remote *remote.Prober
	mcp    *mcp.Prober
}

// Probe implements liveness.Prober.
func (p probers) Probe(ctx context.Context, t hub.Target) hub.Liveness {
	if t.Kind == hub.MCP {
		return p.mcp.Probe(ctx, t)
	}
	return p.remote.Probe(ctx, t)
}

type readers struct {
	remote *remote.Reader
	mcp    *mcp.Reader
}

// Read implements hub.Reader.
func (r readers) Read(ctx context.Context, address string) (hub.Described, error) {
	d, err := r.remote.Read(ctx, address)
	if err == nil || ctx.Err() != nil || egress.CodeOf(err) != "" {
		return d, err
	}
	tools, merr := r.mcp.Read(ctx, address)
	if merr == nil {
		return tools, nil
	}
	return d, errors.Join(err, merr)
}

// ReadAs implements hub.Reader.
func (r readers) ReadAs(ctx context.Context, t hub.Target) (hub.Described, error) {
	if t.Kind == hub.MCP {
		return r.mcp.ReadAs(ctx, t)
	}
	return r.remote.ReadAs(ctx, t)
}

// pool returns a pool that trusts the given certificates.
func pool(certs ...*x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	for _, c := range certs {
		p.AddCert(c)
	}
	return p
}

// addresses implements the hub's check of addresses: an agent may have an address that the client may
// call.
type addresses struct{ client *egress.Client }

func (a addresses) CheckURL(s string) error {
	_, err := a.client.CheckURL(s)
	return err
}

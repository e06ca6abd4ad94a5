package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"agentsite/internal/a2a"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/federation/guard"
	"agentsite/internal/task"
)

// Bounds of the files of one call, in bytes.
const (
	// peerInline is the largest file in bytes that is sent to another portal inline; the portal fetches
	// larger ones.
	peerInline = 512 << 10
	// maxFetched bounds one file of an answer in bytes, maxFetchedAll all of them, maxFetches their
	// number. Others stay addresses.
	maxFetched    = 8 << 20
	maxFetchedAll = 32 << 20
	maxFetches    = 20
)

// PeerConfig holds the dependencies of the driver of kind peer. Portals is required.
type PeerConfig struct {
	Config
	Portals Portals
}

// Portals is this portal in its network.
type Portals interface {
	// Transport returns a RoundTripper that signs requests and sends them only to the portal with that id at an origin.
	Transport(portal, origin string) http.RoundTripper
	// MarkCaller returns the id of a person or guest for another portal. It is always the same for the same two
	// arguments, and only this portal can compute it.
	MarkCaller(portal, callerID string) string
}

// Peer runs tasks at agents of other portals: A2A over requests signed by this portal, which state the
// person they are made for, the chain of agents and the budget. Create it with NewPeer.
type Peer struct {
	a2a *A2A
	cfg PeerConfig
}

var (
	_ task.Agent   = (*Peer)(nil)
	_ task.Stopper = (*Peer)(nil)
)

// peerLost is how many requests in a row may fail. It allows for a few minutes, because a restarted
// portal continues its tasks.
const peerLost = 30

// NewPeer returns the driver of kind peer. The caller closes it, which waits for pending cancellations.
func NewPeer(cfg PeerConfig) *Peer {
	cfg.Lost = peerLost
	return &Peer{a2a: NewA2A(nil, cfg.Config), cfg: cfg}
}

// Close waits for the running requests that cancel tasks at other portals, at most cancelTime.
func (d *Peer) Close() { d.a2a.Close() }

// Run implements task.Agent. An agent without a known address is an Unavailable fault; nothing was sent
// then.
func (d *Peer) Run(ctx context.Context, call task.Call, out task.Sink) (task.Result, error) {
	at, rt, sign, err := d.openRoute(call)
	if err != nil {
		return task.Result{}, err
	}
	f := &fetcher{rt: sign, files: at.Scheme + "://" + at.Host + task.FilePath}
	return d.a2a.runTask(ctx, way{rt: rt, subject: at.Host, peer: true, inline: peerInline, files: f}, call,
		out)
}

// Stop implements task.Stopper. It sends nothing if the portal's address is no longer known.
func (d *Peer) Stop(ctx context.Context, call task.Call) {
	if _, rt, _, err := d.openRoute(call); err == nil {
		d.a2a.stopTask(ctx, rt, call, true)
	}
}

// openRoute returns the agent's address, a transport for requests on behalf of the caller, and one that
// only signs.
func (d *Peer) openRoute(call task.Call) (at *url.URL, rt, sign http.RoundTripper, err error) {
	at, err = url.Parse(call.Agent.Endpoint)
	if err != nil || at.Host == "" || call.Agent.Portal == "" {
		return nil, nil, nil, fault.New(fault.Unavailable, "The address of %s is unknown.", call.Agent.Handle)
	}
	sign = d.cfg.Portals.Transport(call.Agent.Portal, at.Scheme+"://"+at.Host)
	return at, introduced{next: sign, onBehalfOf: d.callerValue(call), via: call.Via.Field(), budget: call.Budget},
		sign, nil
}

// callerValue returns the value of ForField for a call: the kind of the caller and an id that differs
// from portal to portal, so that portals cannot combine their data about a
// person. It is "" for a caller without an id.
func (d *Peer) callerValue(call task.Call) string {
	c := call.Caller
	if c.ID == "" {
		return ""
	}
	kind, name := "person", c.Handle
	if c.Kind == "guest" {
		kind, name = "guest", "guest"
	}
	out := fmt.Sprintf("kind=%s, id=%q, handle=%q", kind, d.cfg.Portals.MarkCaller(call.Agent.Portal, c.ID),
		name+"@"+d.cfg.Portal)
	if call.Relayed {
		out += ", words=own"
	}
	return out
}

// introduced is a RoundTripper that adds the person, the chain of agents and the budget to requests,
// before the inner one signs them.
type introduced struct {
	next            http.RoundTripper
	onBehalfOf, via string
	budget          task.Budget
}

// RoundTrip implements http.RoundTripper. It changes a copy of the request.
func (i introduced) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	// The extension makes the remote side answer a repeated message with the first task.
	r.Header.Set(a2a.ExtensionsHeader, a2a.ExtOnce+", "+a2a.ExtCost)
	for name, value := range map[string]string{guard.ForField: i.onBehalfOf, task.HopsField: i.via,
		task.BudgetField: i.budget.Field(clock.Now())} {
		r.Header.Del(name)
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	return i.next.RoundTrip(r)
}

// fetcher downloads the files of an answer from its portal, because their addresses expire.
type fetcher struct {
	rt    http.RoundTripper
	files string // prefix of the addresses of files at the portal; others are not downloaded

	mu   sync.Mutex // guards the fields below
	got  map[string][]byte
	n    int
	size int64
}

// inlineFiles returns parts with the contents of the files that could be downloaded. It changes no
// element of parts itself.
func (f *fetcher) inlineFiles(ctx context.Context, parts []task.Part) []task.Part {
	var out []task.Part
	for i, p := range parts {
		if !strings.HasPrefix(p.URL, f.files) {
			continue
		}
		b := f.getFile(ctx, p.URL)
		if b == nil {
			continue
		}
		if out == nil {
			out = append(out, parts...)
		}
		out[i].URL, out[i].Raw = "", b
	}
	if out == nil {
		return parts
	}
	return out
}

// getFile returns the file at an address, downloaded once; nil if it is not available or a bound is
// exceeded.
func (f *fetcher) getFile(ctx context.Context, address string) []byte {
	// The query of the address is new in each event, the path with the hash is not.
	key, _, _ := strings.Cut(address, "?")
	f.mu.Lock()
	b, known := f.got[key]
	f.n++
	full := f.n > maxFetches || f.size >= maxFetchedAll
	f.mu.Unlock()
	if known || full {
		return b
	}
	b = f.fetchFile(ctx, address)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.got == nil {
		f.got = make(map[string][]byte)
	}
	f.got[key], f.size = b, f.size+int64(len(b))
	return b
}

func (f *fetcher) fetchFile(ctx context.Context, address string) []byte {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil
	}
	res, err := f.rt.RoundTrip(r)
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(res.Body, maxFetched+1))
	if err != nil || len(b) == 0 || len(b) > maxFetched {
		return nil
	}
	return b
}

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
	"agentsite/internal/federation"
	"agentsite/internal/task"
)

// Bounds of the files of one call.
const (
	// peerInline is the largest file that another portal is sent as it is; it
	// fetches larger ones.
	peerInline = 512 << 10
	// maxFetched bounds one file that an answer refers to, maxFetchedAll all of
	// them, maxFetches how many are fetched. Others stay addresses.
	maxFetched    = 8 << 20
	maxFetchedAll = 32 << 20
	maxFetches    = 20
)

// PeerConfig is what the driver of kind peer needs.
type PeerConfig struct {
	Config
	// Transport returns what signs requests and sends them to the portal with
	// that id at an origin, and to nobody else.
	Transport func(portal, origin string) http.RoundTripper
	// Mark is what a portal may call somebody here: a text that is the same for
	// the same two, and that nobody but this portal can make.
	Mark func(portal, callerID string) string
}

// Peer runs tasks at agents of other portals: A2A over requests that this
// portal signs and that say for whom, after which agents and with what budget
// they are made. Create it with NewPeer.
type Peer struct {
	a2a *A2A
	cfg PeerConfig
}

var (
	_ task.Agent   = (*Peer)(nil)
	_ task.Stopper = (*Peer)(nil)
)

// peerLost is how many questions in a row may fail: a portal that is started
// again goes on with its tasks, so a few minutes are waited.
const peerLost = 30

// NewPeer returns the driver of kind peer. The caller closes it.
func NewPeer(cfg PeerConfig) *Peer {
	cfg.Lost = peerLost
	return &Peer{a2a: NewA2A(nil, cfg.Config), cfg: cfg}
}

// Close is A2A's.
func (d *Peer) Close() { d.a2a.Close() }

// Run implements task.Agent.
func (d *Peer) Run(ctx context.Context, call task.Call, out task.Sink) (task.Result, error) {
	at, rt, sign, err := d.reach(call)
	if err != nil {
		return task.Result{}, err
	}
	f := &fetcher{rt: sign, files: at.Scheme + "://" + at.Host + task.FilePath}
	return d.a2a.run(ctx, way{rt: rt, who: at.Host, peer: true, inline: peerInline, local: f.local}, call, out)
}

// Stop implements task.Stopper.
func (d *Peer) Stop(ctx context.Context, call task.Call) {
	if _, rt, _, err := d.reach(call); err == nil {
		d.a2a.stop(ctx, rt, call)
	}
}

// reach returns where the agent is, what sends requests there that say for
// whom they are, and what only signs them.
func (d *Peer) reach(call task.Call) (at *url.URL, rt, sign http.RoundTripper, err error) {
	at, err = url.Parse(call.Agent.Endpoint)
	if err != nil || at.Host == "" || call.Agent.Portal == "" {
		return nil, nil, nil, fault.New(fault.Unavailable, "Nobody knows where %s is asked.", call.Agent.Handle)
	}
	sign = d.cfg.Transport(call.Agent.Portal, at.Scheme+"://"+at.Host)
	return at, introduced{next: sign, who: d.introduce(call), via: call.Via.Field(), budget: call.Budget}, sign, nil
}

// introduce is what ForField says of a call.
func (d *Peer) introduce(call task.Call) string {
	c := call.Caller
	if c.ID == "" {
		return ""
	}
	kind, name := "person", c.Handle
	if c.Kind == "guest" {
		kind, name = "guest", "guest"
	}
	return fmt.Sprintf("kind=%s, id=%q, handle=%q", kind, d.cfg.Mark(call.Agent.Portal, c.ID), name+"@"+d.cfg.Portal)
}

// introduced sends requests that say for whom they are.
type introduced struct {
	next     http.RoundTripper
	who, via string
	budget   task.Budget
}

// RoundTrip implements http.RoundTripper.
func (i introduced) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	// A message that is sent again with its id is not asked again there.
	r.Header.Set(a2a.ExtensionsHeader, a2a.ExtOnce)
	for name, value := range map[string]string{federation.ForField: i.who, task.HopsField: i.via, task.BudgetField: i.budget.Field(clock.Now())} {
		r.Header.Del(name)
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	return i.next.RoundTrip(r)
}

// fetcher gets the files that an answer refers to from the portal that gave
// it: their addresses hold only for a while.
type fetcher struct {
	rt    http.RoundTripper
	files string // how addresses of files there begin

	mu   sync.Mutex // guards the rest
	got  map[string][]byte
	n    int
	size int64
}

// local is parts with the files in them that could be had.
func (f *fetcher) local(ctx context.Context, parts []task.Part) []task.Part {
	var out []task.Part
	for i, p := range parts {
		if !strings.HasPrefix(p.URL, f.files) {
			continue
		}
		b := f.get(ctx, p.URL)
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

// get is the file at an address, nil where it cannot be had.
func (f *fetcher) get(ctx context.Context, address string) []byte {
	// The address is new each time, the hash in it is not.
	key, _, _ := strings.Cut(address, "?")
	f.mu.Lock()
	b, known := f.got[key]
	f.n++
	full := f.n > maxFetches || f.size >= maxFetchedAll
	f.mu.Unlock()
	if known || full {
		return b
	}
	b = f.fetch(ctx, address)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.got == nil {
		f.got = make(map[string][]byte)
	}
	f.got[key], f.size = b, f.size+int64(len(b))
	return b
}

func (f *fetcher) fetch(ctx context.Context, address string) []byte {
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

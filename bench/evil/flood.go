package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"agentsite/internal/app"
	"agentsite/internal/testing/evil"
)

// The size of a flood. A process of its own makes it at a fixed rate, whatever server it goes to, so
// that its use of the machine is the same in both measurements that are compared.
const (
	stormPace    = 3000            // requests per second over all connections
	stormWorkers = 32              // number of connections; in flood "many" each has its own address
	stormBegins  = 2 * time.Second // time of the flood before the measurement begins
	stormFor     = 6 * time.Second
	stormRounds  = 3
	askEvery     = 10 * time.Millisecond // of an honest visitor; an honest portal waits four times as long
	// maxRatio is the largest permitted ratio of the 99th percentile of honest requests while the
	// portal is flooded to that while another server on the machine, which refuses at once, gets the
	// same flood.
	maxRatio = 2
)

// kinds are the floods: "one" has forged signatures in an honest portal's name, from one address;
// "many" has requests signed by many portals, each from its own address.
var kinds = []string{"one", "many"}

// flood measures how much a flood slows down honest visitors and portals. Everything runs on this
// machine, so it needs one without other load.
func flood(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "flood-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "agentsite")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	portal, stop, err := begin(ctx, bin, "serve", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--accounts", "open", "--log-level", "warn")
	if err != nil {
		return err
	}
	defer stop()
	sink, stop, err := begin(ctx, self, "-sink")
	if err != nil {
		return err
	}
	defer stop()
	h, err := newHonest(ctx, portal)
	if err != nil {
		return err
	}
	defer h.portal.Close()
	if err := h.measure(ctx, time.Second, new(felt)); err != nil {
		return err
	}
	bad := false
	for _, kind := range kinds {
		var quiet, beside, at felt
		for range stormRounds {
			if err := h.measure(ctx, stormFor/2, &quiet); err != nil {
				return err
			}
			for to, f := range map[string]*felt{sink: &beside, portal: &at} {
				if err := h.endure(ctx, self, kind, portal, to, f); err != nil {
					return err
				}
			}
		}
		for n, who := range []string{"visitors", "an honest portal"} {
			ratio := float64(p99(at.took[n])) / float64(p99(beside.took[n]))
			bad = bad || ratio > maxRatio
			fmt.Printf("FLOOD %-4s p99 of %-16s quiet %8v, flood beside it %8v, at it %8v: ratio %.2f\n", kind, who, p99(quiet.took[n]), p99(beside.took[n]), p99(at.took[n]), ratio)
		}
		fmt.Printf("FLOOD %-4s beside %s; at it %s\n", kind, beside.said, at.said)
	}
	if bad {
		return fmt.Errorf("honest requests take more than %d times as long", maxRatio)
	}
	return nil
}

// begin starts a process, waits until it prints "ready URL", and returns the URL. The caller must call
// stop.
func begin(ctx context.Context, name string, args ...string) (at string, stop func(), err error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() { cmd.Process.Kill(); cmd.Wait() }
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, url, ok := strings.Cut(lines.Text(), "ready "); ok {
			go io.Copy(io.Discard, out)
			return strings.TrimSuffix(strings.Fields(url)[0], "/"), stop, nil
		}
	}
	stop()
	return "", nil, fmt.Errorf("%s is not ready", name)
}

// felt holds the latencies of honest requests: of visitors and of a portal.
type felt struct {
	took [2][]time.Duration
	said string // summary line of the last flood
}

type honest struct {
	at      string
	visitor *http.Client
	portal  *evil.Portal
	head    string
}

func newHonest(ctx context.Context, at string) (*honest, error) {
	p, err := evil.New(app.DefaultNetwork)
	if err != nil {
		return nil, err
	}
	h := &honest{at, clientAt("127.88.0.1"), p, ""}
	if a, err := p.Hello(ctx, at); err != nil || a.Status != http.StatusOK {
		return nil, fmt.Errorf("hello: %d %s %w", a.Status, a.Body, err)
	}
	resp, err := h.visitor.Get(at + "/.well-known/agentsite")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var who struct{ Portal string }
	if err := json.NewDecoder(resp.Body).Decode(&who); err != nil {
		return nil, err
	}
	h.head = "/peering/v1/portals/" + who.Portal + "/head"
	for range 100 { // the head is signed soon after the start, so wait for it
		a, err := h.portal.Ask(ctx, at, evil.Request{Path: h.head})
		if err != nil || a.Status == http.StatusOK {
			return h, err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return h, errors.New("the portal has no head")
}

// clientAt returns an HTTP client whose connections come from the IP address addr.
func clientAt(addr string) *http.Client {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addr)}}
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: d.DialContext, MaxIdleConnsPerHost: 64}}
}

// measure makes requests as a visitor and as a portal at the same time for the duration d, each when
// the last one is answered, and appends their latencies to f.
func (h *honest) measure(ctx context.Context, d time.Duration, f *felt) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	asks := []func() error{
		func() error {
			resp, err := h.visitor.Get(h.at + "/api/v1/search?q=agent")
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
				return fmt.Errorf("a visitor: status %d, %w", resp.StatusCode, err)
			}
			return nil
		},
		func() error {
			a, err := h.portal.Ask(context.WithoutCancel(ctx), h.at, evil.Request{Path: h.head})
			if err == nil && a.Status != http.StatusOK {
				err = fmt.Errorf("a portal: status %d %s", a.Status, a.Body)
			}
			return err
		},
	}
	errs := make([]error, len(asks))
	var wg sync.WaitGroup
	for n, ask := range asks {
		wg.Go(func() {
			tick := time.NewTicker(askEvery * time.Duration(1+3*n)) // the limit for a portal is 50 requests per second
			defer tick.Stop()
			for ctx.Err() == nil {
				began := time.Now()
				if errs[n] = ask(); errs[n] != nil {
					return
				}
				f.took[n] = append(f.took[n], time.Since(began))
				<-tick.C
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// endure measures honest requests to the portal while a process floods the server to.
func (h *honest) endure(ctx context.Context, self, kind, portal, to string, f *felt) error {
	cmd := exec.CommandContext(ctx, self, "-storm", kind, "-portal", portal, "-to", to, "-as", h.portal.KeyID(h.portal.Op))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "begun" {
	}
	err = h.measure(ctx, stormFor, f)
	for lines.Scan() {
		f.said = lines.Text()
	}
	if werr := cmd.Wait(); werr != nil {
		err = errors.Join(err, fmt.Errorf("the flood: %w", werr))
	}
	return err
}

// serveSink runs a server that refuses every request at once with status 429.
func serveSink(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	body := []byte(`{"error":{"kind":"rate_limited","reason":"limit","message":"Ask again later."}}` + "\n")
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		w.Write(body)
	})}
	fmt.Printf("ready http://%s\n", l.Addr())
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	return srv.Serve(l)
}

// storm floods the server to with requests that are signed for the portal. as is the key id of an
// honest portal, which flood "one" claims.
func storm(ctx context.Context, kind, portal, to, as string) error {
	var liars []*evil.Portal
	n := 1
	if kind == "many" {
		n = stormWorkers
	}
	for range n {
		p, err := evil.New(app.DefaultNetwork)
		if err != nil {
			return err
		}
		defer p.Close()
		liars = append(liars, p)
		if kind == "many" {
			if a, err := p.Hello(ctx, portal); err != nil || a.Status != http.StatusOK {
				return fmt.Errorf("hello: %d %s %w", a.Status, a.Body, err)
			}
		}
	}
	defer time.AfterFunc(stormBegins, func() { fmt.Println("begun") }).Stop()
	ctx, cancel := context.WithTimeout(ctx, stormBegins+stormFor)
	defer cancel()
	var sent, refused, cut atomic.Int64
	var wg sync.WaitGroup
	one := clientAt("127.66.0.1")
	for i := range stormWorkers {
		c, liar := one, liars[0]
		if kind == "many" {
			c, liar = clientAt(fmt.Sprintf("127.67.0.%d", i+1)), liars[i]
		}
		wg.Go(func() {
			tick := time.NewTicker(time.Second * stormWorkers / stormPace)
			defer tick.Stop()
			for ctx.Err() == nil {
				status, err := lie(ctx, c, liar, portal, to, kind, as)
				switch {
				case ctx.Err() != nil:
					return
				case err != nil:
					cut.Add(1)
				case status != http.StatusOK:
					refused.Add(1)
				}
				sent.Add(1)
				<-tick.C
			}
		})
	}
	wg.Wait()
	secs := int64((stormBegins + stormFor) / time.Second)
	fmt.Printf("%d requests a second, %d %% refused, %d %% cut off\n", sent.Load()/secs, 100*refused.Load()/max(sent.Load(), 1), 100*cut.Load()/max(sent.Load(), 1))
	return nil
}

// lie sends one request of a flood and returns its status. In flood "one" the request names the key as
// but is signed with another key.
func lie(ctx context.Context, c *http.Client, p *evil.Portal, portal, to, kind, as string) (int, error) {
	q := evil.Request{Path: "/peering/v1/heads/hint", Body: []byte(`{"heads":[]}`)}
	if kind == "one" {
		q.Before = evil.As(as)
	}
	r, err := p.Make(ctx, portal, q)
	if err != nil {
		return 0, err
	}
	r.Host, r.URL.Host = r.URL.Host, strings.TrimPrefix(to, "http://")
	resp, err := c.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func p99(list []time.Duration) time.Duration {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)*99/100].Round(10 * time.Microsecond)
}

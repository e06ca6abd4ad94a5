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

// What a flood is made of. It is made by a process of its own, at a pace that it
// keeps whoever it is at, so that its own work is the same in what is compared.
const (
	stormPace    = 3000            // requests a second in all
	stormWorkers = 32              // connections, each of its own address if there are many
	stormBegins  = 2 * time.Second // before anything is measured
	stormFor     = 6 * time.Second
	stormRounds  = 3
	askEvery     = 10 * time.Millisecond // of an honest visitor, and of an honest portal
	// maxRatio is how much longer the slowest hundredth of honest requests may
	// take while a portal is flooded, compared to the same flood at a server
	// beside it that refuses at once.
	maxRatio = 2
)

// kinds of floods: forged signatures in an honest portal's name from one
// address, and requests that many portals signed, each at an address of its own.
var kinds = []string{"one", "many"}

// flood measures what honest ones feel of a flood. It needs a quiet machine: all
// of it is on this one.
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

// begin starts a process that prints "ready URL", and returns that.
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

// felt is how long honest ones waited: visitors, and a portal.
type felt struct {
	took [2][]time.Duration
	said string // of the last flood
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
	for range 100 { // it is signed soon after the start
		a, err := h.portal.Ask(ctx, at, evil.Request{Path: h.head})
		if err != nil || a.Status == http.StatusOK {
			return h, err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return h, errors.New("the portal has no head")
}

// clientAt is a client that comes from an address.
func clientAt(addr string) *http.Client {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addr)}}
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: d.DialContext, MaxIdleConnsPerHost: 64}}
}

// measure asks as a visitor and as a portal, each by itself, and notes how long
// they wait.
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
			tick := time.NewTicker(askEvery * time.Duration(1+3*n)) // a portal may ask 50 times a second
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

// endure measures while a process floods.
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

// serveSink answers everybody that it is too much.
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

// storm floods a server with requests that are made for a portal.
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

// lie sends one request of a flood: the signature is of another key than it
// says when all are in an honest portal's name.
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

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/bench/authority"
	"agentsite/internal/federation"
)

// look is the interval at which conditions on up to ten portals are polled. With more portals pace
// makes it longer, because polling takes processor time from the portals.
const look = 25 * time.Millisecond

func pace(portals int) time.Duration { return look * time.Duration(max(portals, 10)) / 10 }

// world is all portals of a run, the namespaces they are in, and the client that asks them.
type world struct {
	dir, binary, level string
	out                io.Writer
	spaces             *spaces
	portals            []*portal
	evil               *portal // only its namespace and proxy are used; no process runs
	ca                 *authority.Authority
	caFile             string
	client             *http.Client
}

// newWorld makes namespaces for n portals and for one that lies; it starts nothing. The caller must
// call close, also after an error.
func newWorld(dir, binary, level string, n int, out io.Writer) (*world, error) {
	w := &world{dir: dir, binary: binary, level: level, out: out}
	host := func(i int) string { return fmt.Sprintf("p%d.nets.example", i) }
	var err error
	if w.ca, err = authority.New(); err != nil {
		return w, err
	}
	w.caFile = filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(w.caFile, w.ca.PEM(), 0o644); err != nil {
		return w, err
	}
	if w.spaces, err = newSpaces(n+1, host); err != nil {
		return w, err
	}
	at := make(map[string]string)
	for i := range n + 1 {
		p := &portal{w: w, n: i, host: host(i), space: w.spaces.names[i], dir: filepath.Join(dir, fmt.Sprintf("p%d", i))}
		at[p.host] = p.space
		if i == n {
			w.evil = p
		} else {
			w.portals = append(w.portals, p)
		}
	}
	// Each request is made inside the portal's own namespace, to its proxy, so it works while the
	// halves are separated.
	w.client = w.clientBy(func(ctx context.Context, host string) (net.Conn, error) { return dial(ctx, at[host], "127.0.0.1:443") })
	return w, nil
}

func (w *world) clientBy(dial func(ctx context.Context, host string) (net.Conn, error)) *http.Client {
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: w.ca.Pool()},
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			host, _, _ := net.SplitHostPort(addr)
			return dial(ctx, host)
		}}}
}

// close ends all processes and removes the namespaces.
func (w *world) close() {
	for _, p := range append(slices.Clone(w.portals), w.evil) {
		if p == nil {
			continue
		}
		p.kill()
		if p.front != nil {
			p.front.Close()
		}
	}
	if w.spaces != nil {
		w.spaces.close()
	}
}

func (w *world) say(format string, args ...any) { fmt.Fprintf(w.out, format+"\n", args...) }

// logs prints the last 4,000 bytes of every portal's log.
func (w *world) logs() {
	for _, p := range w.portals {
		if b := tail(p.log(), 4000); b != "" {
			w.say("--- log of %s\n%s", p.host, b)
		}
	}
}

// each calls fn for every portal in the list, for up to four at once, and joins the errors.
func each(list []*portal, fn func(p *portal) error) error {
	var (
		all  sync.WaitGroup
		errs = make([]error, len(list))
		turn = make(chan struct{}, 4)
	)
	for i, p := range list {
		all.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			errs[i] = fn(p)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// until calls fn at the interval look until it returns nil, and returns how long that took. After
// within it returns the last error of fn; what is the beginning of its text.
func until(ctx context.Context, what string, within time.Duration, fn func() error) (time.Duration, error) {
	return paced(ctx, look, what, within, fn)
}

// paced is until with the interval every.
func paced(ctx context.Context, every time.Duration, what string, within time.Duration, fn func() error) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	began := time.Now()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := fn()
		if err == nil {
			return time.Since(began), nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return time.Since(began), fmt.Errorf("%s: not after %s: %w", what, within, err)
		}
	}
}

// api makes a request with the portal's token and parses the answer into out unless that is nil. A
// status other than 2xx is an error.
func (p *portal) api(method, path string, body, out any) error {
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		in = bytes.NewReader(b)
	}
	r, err := http.NewRequest(method, p.origin()+path, in)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := p.w.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s %s answers %d: %.500s", p.host, method, path, resp.StatusCode, b)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}

// found is the answer of the API to a search.
type found struct {
	Total  int `json:"total"`
	Agents []struct {
		Name, Portal, Title string
		Verified            bool
	} `json:"agents"`
	Portals federation.Coverage `json:"portals"`
}

func (p *portal) search(words, scope string) (found, error) {
	var f found
	// Leave out the built-in kinds: each portal finds only its own.
	q := url.Values{"limit": {"1"}, "kind": {"a2a,link,mcp,openai,prompt"}}
	if words != "" {
		q.Set("q", words)
	}
	if scope != "" {
		q.Set("scope", scope)
	}
	return f, p.api("GET", "/api/v1/search?"+q.Encode(), nil, &f)
}

// register registers an agent, or changes its title if it exists.
func (p *portal) register(name, title string) error {
	return p.api("PUT", "/api/v1/agents/"+name, map[string]any{"name": name, "title": title, "description": "Keeps what is said of it.", "kind": "link", "visibility": "public"}, nil)
}

// finds returns an error unless a search for word finds exactly n agents, all with verified provenance.
func (p *portal) finds(word string, n int) error {
	f, err := p.search(word, "")
	if err != nil {
		return err
	}
	if f.Total != n {
		return fmt.Errorf("%s finds %d agents by %q, not %d", p.host, f.Total, word, n)
	}
	for _, a := range f.Agents {
		if !a.Verified {
			return fmt.Errorf("%s@%s is not verified on %s", a.Name, a.Portal, p.host)
		}
	}
	return nil
}

// allFind waits until every portal in the list finds exactly n agents for the word, and returns how
// long each took.
func allFind(ctx context.Context, list []*portal, word string, n int, within time.Duration) ([]time.Duration, error) {
	took := make([]time.Duration, len(list))
	errs := make([]error, len(list))
	var all sync.WaitGroup
	for i, p := range list {
		all.Go(func() {
			took[i], errs[i] = paced(ctx, pace(len(list)), fmt.Sprintf("%d by %q", n, word), within, func() error { return p.finds(word, n) })
		})
	}
	all.Wait()
	return took, errors.Join(errs...)
}

// allEqual waits until equal returns nil, and returns how long that took. The limit grows with the
// square of the number of portals.
func allEqual(ctx context.Context, what string, list []*portal) (time.Duration, error) {
	// equal makes two requests to each portal, so its interval is longer. At first every portal has a
	// handshake with every other one, which takes processor time that all share.
	n := len(list)
	return paced(ctx, 4*pace(n), what, max(generous, time.Duration(n*n)*50*time.Millisecond), func() error { return equal(list) })
}

// equal returns an error unless a search on every portal finds the agents of all portals and reports no
// portal as silent.
func equal(list []*portal) error {
	sum := 0
	for _, p := range list {
		f, err := p.search("", "portal")
		if err != nil {
			return err
		}
		sum += f.Total
	}
	for _, p := range list {
		f, err := p.search("", "")
		if err != nil {
			return err
		}
		if f.Total != sum || f.Portals.Known < len(list) || len(f.Portals.Silent) > 0 {
			return fmt.Errorf("%s knows %d agents of %d, %d portals of %d, silent: %s", p.host, f.Total, sum, f.Portals.Known, len(list), strings.Join(f.Portals.Silent, ", "))
		}
	}
	return nil
}

// bytes returns the total size of the portals' answers to each other so far, without headers.
func (w *world) bytes() (n int64) {
	for _, p := range w.portals {
		n += p.bytes.Load()
	}
	return n
}

func temp() (string, func(), error) {
	dir, err := os.MkdirTemp("", "nets")
	return dir, func() { os.RemoveAll(dir) }, err
}

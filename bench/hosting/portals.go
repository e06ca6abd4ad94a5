package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"agentsite/bench/proc"
	"agentsite/bench/report"
	"agentsite/internal/testing/wasmtest"
)

// The bars of the rows with real portals.
const (
	maxFetch   = 10 * time.Second
	maxSlower  = 1.5
	maxGrowth  = 20 << 20
	pollEvery  = 50 * time.Millisecond
	pageEvery  = 10 * time.Millisecond
	pagesRound = 1000
)

// site is a portal with an operator. The caller must end its process.
type site struct {
	*proc.Process
	token string
}

func (b *bench) openSite(name string, args ...string) (*site, error) {
	dir := filepath.Join(b.dir, name)
	command := func(stdin string, args ...string) (string, error) {
		cmd := exec.Command(b.portal, append(args, "--data", dir)...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	if _, err := command("a long password of mine\n", "user", "add", name, "--admin", "--password-stdin"); err != nil {
		return nil, fmt.Errorf("add an operator: %w", err)
	}
	token, err := command("", "token", "add")
	if err != nil {
		return nil, fmt.Errorf("make a token: %w", err)
	}
	p, err := proc.Start(name, b.portal, append([]string{"serve", "--listen", "127.0.0.1:0", "--data", dir, "--log-level",
		"error"}, args...)...)
	return &site{p, token}, err
}

// call makes a request by the token of the operator.
func (s *site) call(method, path string, body, out any) error {
	var r io.Reader
	switch x := body.(type) {
	case nil:
	case []byte:
		r = bytes.NewReader(x)
	default:
		b, err := json.Marshal(x)
		if err != nil {
			return err
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, "http://"+s.Addr+path, r)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 400 {
		err = fmt.Errorf("%s %s: %s: %.300s", method, path, res.Status, text)
	}
	if err == nil && out != nil {
		err = json.Unmarshal(text, out)
	}
	return err
}

// publish uploads a module and publishes it as a package.
func (s *site) publish(name string, module []byte) error {
	var m struct{ Hash string }
	if err := s.call(http.MethodPost, "/api/v1/hosting/modules", module, &m); err != nil {
		return err
	}
	return s.call(http.MethodPost, "/api/v1/packages", map[string]any{"name": name, "version": "1.0.0", "summary": "Greets.",
		"licence": "MIT", "module": m.Hash}, nil)
}

// knows waits until the portal has a package of another one.
func (s *site) knows(ref string) error {
	limit := time.After(time.Minute)
	for {
		err := s.call(http.MethodGet, "/api/v1/packages/"+ref, nil, nil)
		if err == nil {
			return nil
		}
		select {
		case <-limit:
			return fmt.Errorf("the package did not come: %w", err)
		case <-time.After(pollEvery):
		}
	}
}

// host runs a package and waits for its first answer.
func (b *bench) host(s *site, ref, agent string) error {
	if err := s.call(http.MethodPost, "/api/v1/agents", map[string]any{"name": agent, "package": ref, "visibility": "public"},
		nil); err != nil {
		return err
	}
	cmd := exec.Command(b.portal, "chat", agent, "hello")
	cmd.Env = append(os.Environ(), "AGENTSITE_PORTAL=http://"+s.Addr, "AGENTSITE_TOKEN="+s.token)
	out, err := cmd.CombinedOutput()
	if err == nil && !strings.Contains(string(out), "Hello.") {
		err = errors.New("it does not answer")
	}
	if err != nil {
		return fmt.Errorf("ask %s: %w: %.300s", agent, err, out)
	}
	return nil
}

// measureFetch publishes on portal A and runs on C, then the same with A gone and B running it.
func (b *bench) measureFetch(context.Context, int) error {
	a, err := b.openSite("ann")
	if err != nil {
		return err
	}
	defer a.Kill()
	var others [2]*site
	for i, name := range []string{"bob", "cat"} {
		if others[i], err = b.openSite(name, "--join", "http://"+a.Addr); err != nil {
			return err
		}
		defer others[i].Kill()
	}
	second, third := others[0], others[1]
	if err := a.publish("warm", wasmtest.Says("Hello.").Bytes()); err != nil {
		return err
	}
	for _, s := range others {
		if err := s.knows("warm@" + a.Addr); err != nil {
			return err
		}
	}
	var took [2]time.Duration
	began := time.Now()
	far := "greeter@" + a.Addr
	err = a.publish("greeter", append(wasmtest.Says("Hello.").Bytes(), wasmtest.Raw(0, wasmtest.Name("g"))...))
	if err == nil {
		err = third.knows(far)
	}
	if err == nil {
		err = b.host(third, far, "greeter")
	}
	if took[0] = time.Since(began); err == nil {
		err = b.host(second, "warm@"+a.Addr, "warm")
	}
	if err != nil {
		return err
	}
	time.Sleep(3 * time.Second) // until the record that B runs it has come to C
	a.Kill()
	began = time.Now()
	if err := b.host(third, "warm@"+a.Addr, "warm"); err != nil {
		return err
	}
	took[1] = time.Since(began)
	for i, what := range []string{"published on A, running on C", "running on C from B, with A gone"} {
		b.table.Add(report.Line{What: what, Portal: report.Millis(took[i]), Bar: "≤ " + report.Millis(maxFetch), Absolute: true,
			Judged: true, Met: took[i] <= maxFetch})
	}
	return nil
}

// measureHostile loads pages of a portal while its operator hosts and asks modules that try to do harm.
func (b *bench) measureHostile(context.Context, int) error {
	s, err := b.openSite("rob")
	if err != nil {
		return err
	}
	defer s.Kill()
	agents, refused := []string{}, 0
	for i, m := range wasmtest.HostileModules() {
		var out struct{ Hash string }
		if s.call(http.MethodPost, "/api/v1/hosting/modules", m.Bytes, &out) != nil {
			refused++
			continue
		}
		name := fmt.Sprintf("hostile-%d", i)
		if err := s.call(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": m.Name, "kind": "wasm",
			"config": map[string]any{"module": out.Hash}}, nil); err != nil {
			return err
		}
		agents = append(agents, name)
	}
	idle, _, err := s.loadPages()
	if err != nil {
		return err
	}
	before, _, err := s.Memory()
	if err != nil {
		return err
	}
	stop, asked := make(chan struct{}), 0
	var asking sync.WaitGroup
	asking.Go(func() {
		for {
			for _, name := range agents {
				select {
				case <-stop:
					return
				case <-time.After(pollEvery):
				}
				if s.ask(name) == nil {
					asked++
				}
			}
		}
	})
	busy, peak, err := s.loadPages()
	close(stop)
	asking.Wait()
	if err != nil {
		return err
	}
	was, is := report.Percentile(idle, 0.99), report.Percentile(busy, 0.99)
	ratio := float64(is) / float64(was)
	b.table.Add(report.Line{What: fmt.Sprintf("a page, while %d hostile modules were asked %d times (%d more were refused)",
		len(agents), asked, refused), P50: report.Join(report.Millis(report.Percentile(idle, 0.5)),
		report.Millis(report.Percentile(busy, 0.5))), P99: report.Join(report.Millis(was), report.Millis(is)),
		Ratio: fmt.Sprintf("%.2f", ratio), Bar: fmt.Sprintf("p99 ≤ %.1f times", maxSlower), Judged: true, Met: ratio <= maxSlower})
	b.table.Add(report.Line{What: "the same: memory of the portal's own process", Portal: fmt.Sprintf("%+d MiB", (peak-before)>>20),
		Bar: fmt.Sprintf("≤ +%d MiB", maxGrowth>>20), Judged: true, Met: peak-before <= maxGrowth})
	return nil
}

// ask begins a task of an agent, and waits for no answer.
func (s *site) ask(agent string) error {
	var room struct{ ID string }
	if err := s.call(http.MethodPost, "/api/v1/conversations", map[string]any{"members": []string{agent}}, &room); err != nil {
		return err
	}
	return s.call(http.MethodPost, "/api/v1/conversations/"+room.ID+"/messages", map[string]any{"client_id": "m1", "text": "go"}, nil)
}

// loadPages loads a page at a steady rate. It returns the times and the greatest memory of the portal.
func (s *site) loadPages() (times []time.Duration, peak int64, err error) {
	tick := time.NewTicker(pageEvery)
	defer tick.Stop()
	for i := range pagesRound {
		began := <-tick.C
		if err := s.call(http.MethodGet, "/agents", nil, nil); err != nil {
			return nil, 0, err
		}
		times = append(times, time.Since(began))
		if i%50 == 0 {
			rss, _, err := s.Memory()
			if err != nil {
				return nil, 0, err
			}
			peak = max(peak, rss)
		}
	}
	return times, peak, nil
}

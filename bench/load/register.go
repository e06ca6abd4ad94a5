package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"agentsite/bench/corpus"
	"agentsite/bench/report"
	"agentsite/store"
)

// registerBar is what a registration may cost, in floors.
const registerBar = 2

// register compares what a registration costs: checked, on the disk, and found
// by the next search, which is tried with the last of each worker.
func (b *bench) register(workers, each int, crowded bool) error {
	x, err := b.theBig()
	if err != nil {
		return err
	}
	one := func(s *server, path, find string, tokens bool) *side {
		last := make([]string, workers)
		side := &side{server: s, load: load{workers: workers, each: each, status: http.StatusCreated}}
		side.load.request = func(addr string, w, i int) []byte {
			name, token, body := x.registration(corpus.Draft)
			last[w] = name
			switch {
			case !tokens:
				token = ""
			case crowded:
				token = x.crowded
			}
			return request(addr, path, token, body)
		}
		side.after = func() error {
			var list []error
			for _, name := range last {
				list = append(list, finds("http://"+s.Addr+find, name))
			}
			return errors.Join(list...)
		}
		return side
	}
	floor, portal := one(x.floor, "/agents", floorSearch, false), one(x.portal, "/api/v1/agents", portalSearch, true)
	if err := interleave(b.rounds, floor, portal); err != nil {
		return err
	}
	what, bar := fmt.Sprintf("register, durable (FULL), found by the next search, among %s, c=%d", short(x.full.agents), workers), float64(registerBar)
	if crowded {
		what, bar = fmt.Sprintf("  the same by an owner of %d agents already, c=%d", crowd, workers), 0
	}
	b.compare(what, portal, floor, bar)
	return nil
}

// imports compares moving many agents in, each time into an empty directory.
func (b *bench) imports(n, rounds int) error {
	var body bytes.Buffer
	name := func(i int) string { return fmt.Sprintf("moved-%07d", i) }
	for i := range n {
		body.Write(corpus.Draft(name(i), i))
		body.WriteByte('\n')
	}
	var per, speed [2][]float64
	for round := range rounds {
		for i := range 2 {
			cpu, took, err := b.importInto(i == 1, round, body.Bytes(), n, name(n-1))
			if err != nil {
				return err
			}
			per[i] = append(per[i], us(cpu)/float64(n))
			speed[i] = append(speed[i], float64(n)/took.Seconds())
		}
	}
	both := func(i int) string {
		return fmt.Sprintf("%.0f µs, %.0f/s", report.Median(per[i]), report.Median(speed[i]))
	}
	b.Add(report.Line{What: fmt.Sprintf("import of %s agents, FULL, a thousand in a commit, into an empty portal", short(n)), Floor: both(0), Portal: both(1),
		Ratio: report.Spread(quotients(per[1], per[0])), Bar: "≥ 20,000/s", Gated: true, Met: report.Median(speed[1]) >= 20_000})
	return nil
}

// importInto is one import into a new portal or floor.
func (b *bench) importInto(portal bool, round int, body []byte, n int, last string) (cpu, took time.Duration, err error) {
	dir := filepath.Join(b.work, fmt.Sprintf("import-%d-%v", round, portal))
	defer os.RemoveAll(dir)
	var (
		s          *server
		token      string
		path, find = "/import", floorSearch
	)
	if portal {
		path, find = "/api/v1/import", portalSearch
		data, err := seed(dir, 0, 0)
		if err != nil {
			return 0, 0, err
		}
		if err := data.with(func(db *store.DB) (err error) { _, token, err = person(db, "operator", true); return err }); err != nil {
			return 0, 0, err
		}
		s, err = start("portal", b.binary, serve(dir)...)
		if err != nil {
			return 0, 0, err
		}
	} else {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return 0, 0, err
		}
		if s, err = start("floor", b.floorBinary, "-data", dir, "-agents", "0"); err != nil {
			return 0, 0, err
		}
	}
	defer s.Kill()
	before, err := s.CPU()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	req, err := http.NewRequest(http.MethodPost, "http://"+s.Addr+path, bytes.NewReader(body))
	if err != nil {
		return 0, 0, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/x-ndjson")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: import: %w", s.Name, err)
	}
	defer resp.Body.Close()
	var done struct {
		Registered int
		Errors     []string
	}
	if err := json.NewDecoder(resp.Body).Decode(&done); err != nil {
		return 0, 0, fmt.Errorf("%s: import: %s: %w", s.Name, resp.Status, err)
	}
	took = time.Since(began)
	after, err := s.CPU()
	if err != nil {
		return 0, 0, err
	}
	if done.Registered != n {
		return 0, 0, fmt.Errorf("%s: import: %s: %d of %d agents were registered: %q", s.Name, resp.Status, done.Registered, n, done.Errors[:min(3, len(done.Errors))])
	}
	return after - before, took, finds("http://"+s.Addr+find, last)
}

// registerMany registers agents without a word that anybody asks for, by many
// at once, and does not measure it.
func (x *big) registerMany(n int) error {
	const workers = 16
	fails := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			c, err := dial(x.portal.Addr)
			if err != nil {
				fails[w] = err
				return
			}
			defer c.Close()
			for range n / workers {
				_, token, body := x.registration(corpus.Strange)
				status, _, err := c.do(request(x.portal.Addr, "/api/v1/agents", token, body))
				if err != nil || status != http.StatusCreated {
					fails[w] = fmt.Errorf("register: status %d, %v", status, err)
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(fails...)
}

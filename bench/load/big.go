package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"agentsite/bench/corpus"
	"agentsite/bench/report"
	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/store"
)

// big is a portal with many agents and the floor with the same ones; made when
// the first row asks for it.
type big struct {
	data          *portal
	portal, floor *server
	untouched     string   // a copy of the folder before anything was asked
	owners        []string // tokens of those who register
	crowded       string   // token of an owner who has many agents
	run           string   // makes names of this run
	next          atomic.Int64
	small, full   filled // before and after the last hundred thousand
}

// crowd is how many agents the crowded owner has, of as many as one may have.
const crowd = 400

func (b *bench) theBig() (*big, error) {
	if b.large != nil {
		return b.large, nil
	}
	few, many, accounts := 10_000, 110_000, 5000
	if b.quick {
		many, accounts = 50_000, 1000
	}
	x := &big{run: strconv.FormatInt(time.Now().UnixNano()/1e6%1e8, 36), untouched: filepath.Join(b.work, "untouched")}
	var err error
	if x.data, err = seed(filepath.Join(b.work, "big"), 2, few); err != nil {
		return nil, err
	}
	if err := x.data.with(func(db *store.DB) (err error) {
		if x.owners, err = owners(db, accounts); err != nil {
			return err
		}
		a, token, err := person(db, "crowded", false)
		if err != nil {
			return err
		}
		x.crowded = token
		list := make([]hub.Agent, crowd)
		for i := range list {
			list[i] = corpus.Agent(i)
			list[i].ID, list[i].Name, list[i].OwnerID, list[i].OwnerName = ident.NewID(), fmt.Sprintf("crowd-%d", i), a.ID, a.Name
			list[i].CreatedAt = clock.Now()
		}
		return db.CreateAgents(context.Background(), list)
	}); err != nil {
		return nil, err
	}
	settle := 5 * time.Second
	if b.quick {
		settle = time.Second
	}
	s, small, err := b.fill(x.data.dir, few+crowd, settle)
	if err != nil {
		return nil, err
	}
	s.Stop()
	if err := x.data.with(func(db *store.DB) error { return x.data.list(db, many) }); err != nil {
		return nil, err
	}
	if err := os.CopyFS(x.untouched, os.DirFS(x.data.dir)); err != nil {
		return nil, err
	}
	if x.portal, x.full, err = b.fill(x.data.dir, many+crowd, settle); err != nil {
		return nil, err
	}
	x.small = small
	b.large = x
	data := filepath.Join(b.work, "big-floor")
	if err := os.Mkdir(data, 0o700); err != nil {
		return nil, err
	}
	x.floor, err = start("floor", b.floorBinary, "-data", data, "-agents", strconv.Itoa(many))
	return x, err
}

// end stops what runs.
func (x *big) end() {
	for _, s := range []*server{x.portal, x.floor} {
		if s != nil {
			s.Kill()
		}
	}
}

// name is the n-th new name of this run.
func (x *big) name(n int64) string { return fmt.Sprintf("r%sx%07d", x.run, n) }

// registration is the body of the next one, and whose it is: some in a row are
// of one owner.
func (x *big) registration(make func(name string, i int) []byte) (name, token, body string) {
	n := x.next.Add(1)
	name = x.name(n)
	return name, x.owners[int(n/8)%len(x.owners)], string(make(name, 2_000_000+int(n)))
}

// filled is how a portal filled its index while it was asked.
type filled struct {
	agents   int
	took     time.Duration // from the start of the process
	cpu      time.Duration
	answers  []time.Duration
	rss, pss int64 // when it had settled
}

// fill starts a portal on a folder of n agents and asks how many it finds
// until it finds all.
func (b *bench) fill(dir string, n int, settle time.Duration) (s *server, f filled, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, f, err
	}
	addr := l.Addr().String()
	l.Close()
	began := time.Now()
	all := make(chan error, 1)
	var answers []time.Duration
	go func() {
		for until := began.Add(3 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
			t := time.Now()
			found, err := total(addr)
			if err == nil {
				answers = append(answers, time.Since(t))
			}
			if err == nil && found >= n {
				all <- nil
				return
			}
			if time.Now().After(until) {
				all <- fmt.Errorf("the index has %d of %d agents: %v", found, n, err)
				return
			}
		}
	}()
	if s, err = start("portal", b.binary, "serve", "--listen", addr, "--data", dir, "--log-level", "warn"); err != nil {
		return nil, f, err
	}
	if err = <-all; err != nil {
		s.Kill()
		return nil, f, err
	}
	f = filled{agents: n, took: time.Since(began), answers: answers}
	if f.cpu, err = s.CPU(); err != nil {
		s.Kill()
		return nil, f, err
	}
	time.Sleep(settle)
	f.rss, f.pss, err = s.Memory()
	return s, f, err
}

// total is how many agents a portal lists now.
func total(addr string) (int, error) {
	var page struct{ Total int }
	err := fetch("http://"+addr+"/api/v1/search?limit=1", &page)
	return page.Total, err
}

// fetch reads an answer as JSON.
func fetch(address string, v any) error {
	resp, err := http.Get(address)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		io.Copy(io.Discard, resp.Body)
		return errors.New(resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(v)
}

// finds asks a portal or floor for the agent of a name.
func finds(address, name string) error {
	var page struct {
		Results []struct {
			Name  string
			Agent struct{ Name string }
		}
	}
	if err := fetch(address+url.QueryEscape(name), &page); err != nil {
		return err
	}
	for _, r := range page.Results {
		if r.Name == name || r.Agent.Name == name {
			return nil
		}
	}
	return fmt.Errorf("%s was registered, and %s does not find it", name, address)
}

// agents reports how the index was filled and what an agent takes.
func (b *bench) agents() error {
	x, err := b.theBig()
	if err != nil {
		return err
	}
	b.filled("index", x.small, x.full, true)
	return nil
}

func (b *bench) filled(what string, small, full filled, gated bool) {
	speed := float64(full.agents) / full.took.Seconds()
	b.Add(report.Line{What: fmt.Sprintf("%s of %s agents, from the start of the process until a search knows all", what, short(full.agents)),
		Portal: fmt.Sprintf("%.0f/s (%s; CPU %.0f µs an agent)", speed, report.Millis(full.took), us(full.cpu)/float64(full.agents)), P50: report.Millis(report.Percentile(full.answers, 0.5)), P99: report.Millis(report.Percentile(full.answers, 0.99)),
		Bar: "≥ 100,000/s", Gated: gated, Met: speed >= 100_000})
	each := float64(full.rss-small.rss) / float64(full.agents-small.agents)
	b.Add(report.Line{What: fmt.Sprintf("  its memory, from %s (%s RSS) to %s (%s)", short(small.agents), mib(small.rss), short(full.agents), mib(full.rss)),
		Portal: fmt.Sprintf("%.0f B an agent", each), Bar: "≤ 1,331 B (1.3 KB)", Gated: gated, Met: each <= 1331})
}

func short(n int) string {
	if n >= 1_000_000 {
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	}
	return fmt.Sprintf("%.0fk", float64(n)/1000)
}

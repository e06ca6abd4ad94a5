package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"agentsite/bench/corpus"
	"agentsite/bench/proc"
	"agentsite/bench/report"
	"agentsite/store"
)

// Addresses of a search, to which the query is appended.
const (
	portalSearch = "/api/v1/search?q="
	floorSearch  = "/search?q="
)

const (
	// searchRate is the rate of searches, and of registrations, per second in an open loop.
	searchRate = 500
	// few is the number of agents at the first measurement of memory.
	few = 10_000
	// ownerCount is the number of accounts that register agents in turn, so that no account reaches its
	// limits.
	ownerCount = 2000
)

// big holds a portal with many agents and one conversation, and a floor with the same agents. Several
// rows share it.
type big struct {
	data          *portal
	portal, floor *server
	owners        []string // API tokens of the accounts that register
	run           string   // part of each registered name, so that names of two runs differ
	next          atomic.Int64
	small, full   filled // results with few agents, and with all of them
}

func (b *bench) makeBig() (*big, error) {
	if b.big != nil {
		return b.big, nil
	}
	x := &big{run: strconv.FormatInt(time.Now().UnixNano()/1e6%1e8, 36)}
	b.big = x
	var err error
	if x.data, err = seed(filepath.Join(b.Dir, "big"), 2, few); err != nil {
		return nil, err
	}
	if err := x.data.with(func(db *store.DB) (err error) {
		if err := x.data.say(db, 0, chatLength, textSize); err != nil {
			return err
		}
		x.owners, err = owners(db, ownerCount)
		return err
	}); err != nil {
		return nil, err
	}
	settle := time.Duration(b.Pick(1, 5)) * time.Second
	s, small, err := b.fill(x.data.dir, few, settle)
	if err != nil {
		return nil, err
	}
	s.Stop()
	if err := x.data.with(func(db *store.DB) error { return x.data.list(db, b.agents) }); err != nil {
		return nil, err
	}
	x.small = small
	if x.portal, x.full, err = b.fill(x.data.dir, b.agents, settle); err != nil {
		return nil, err
	}
	x.floor, err = b.startFloor(b.agents)
	return x, err
}

func (x *big) end() {
	for _, s := range []*server{x.portal, x.floor} {
		if s != nil {
			s.Kill()
		}
	}
}

// registration returns the name, the owner's token and the JSON body of the next registration.
func (x *big) registration(draft func(name string, i int) []byte) (name, token, body string) {
	n := x.next.Add(1)
	name = fmt.Sprintf("r%sx%07d", x.run, n)
	return name, x.owners[int(n/8)%len(x.owners)], string(draft(name, 2_000_000+int(n)))
}

// filled is the result of a start with an empty index, which the portal fills from its database.
type filled struct {
	agents  int
	took    time.Duration // from the start of the process until a search finds all agents
	cpu     time.Duration
	answers []time.Duration // latencies of the searches while the index was filled
	rss     int64           // resident memory after the settle time, in bytes
}

// fill starts a portal on a folder with n agents, searches until the index has all of them, and
// measures memory after a settle time. The caller must end the server.
func (b *bench) fill(dir string, n int, settle time.Duration) (s *server, f filled, err error) {
	const limit = 3 * time.Minute
	began := time.Now()
	if s, err = b.startPortal(dir); err != nil {
		return nil, f, err
	}
	f.agents = n
	for found := 0; found < n; {
		t := time.Now()
		if found, err = total(s.Addr); err != nil {
			break
		}
		f.answers = append(f.answers, time.Since(t))
		if time.Since(began) > limit {
			err = fmt.Errorf("the index has %d of %d agents after %s", found, n, limit)
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.took = time.Since(began)
	if err == nil {
		f.cpu, err = s.CPU()
	}
	if err == nil {
		time.Sleep(settle)
		f.rss, _, err = s.Memory()
	}
	if err != nil {
		s.Kill()
		return nil, f, err
	}
	return s, f, nil
}

// total returns the number of agents that a portal's search finds.
func total(addr string) (int, error) {
	var page struct{ Total int }
	err := fetch("http://"+addr+"/api/v1/search?limit=1", &page)
	return page.Total, err
}

// fetch requests an address and parses the answer from JSON into v. A status other than 200 is an
// error.
func fetch(address string, v any) error {
	resp, err := http.Get(address)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(v)
}

// checkFound searches for an agent by its name and returns an error if the result does not contain it.
func checkFound(address, name string) error {
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
	return fmt.Errorf("%s was registered, but %s does not find it", name, address)
}

// reportAgents reports the speed of filling the index and the memory. Its bars are printed but not
// judged.
func (b *bench) reportAgents() error {
	x, err := b.makeBig()
	if err != nil {
		return err
	}
	f := x.full
	speed := float64(f.agents) / f.took.Seconds()
	b.Add(report.Line{What: fmt.Sprintf("index of %s agents after a start", short(f.agents)),
		Portal: fmt.Sprintf("%.0f/s, CPU %.0f µs an agent", speed, us(f.cpu)/float64(f.agents)),
		P50:    report.Millis(report.Percentile(f.answers, 0.5)), P99: report.Millis(report.Percentile(f.answers, 0.99)),
		Bar: "≥ 40,000/s", Met: speed >= 40_000})
	b.Add(report.Line{What: fmt.Sprintf("memory with %s agents, RSS", short(x.small.agents)), Portal: mib(x.small.rss), Bar: "≤ 130 MiB", Met: x.small.rss <= 130<<20})
	each := float64(f.rss-x.small.rss) / float64(f.agents-x.small.agents)
	b.Add(report.Line{What: fmt.Sprintf("memory of a further agent, up to %s", short(f.agents)), Portal: fmt.Sprintf("%.1f KB", each/1000), Bar: "≤ 4.5 KB", Met: each <= 4500})
	return nil
}

// registers compares registrations. When one is answered it is checked, signed, on disk and found by
// the next search. Work that the portal does later counts too.
func (b *bench) registers() error {
	// A round is long enough that the work after its last answer is small compared to the whole.
	if err := b.register(16, b.Pick(25, 125)); err != nil {
		return err
	}
	return b.register(1, b.Pick(60, 1000))
}

func (b *bench) register(workers, each int) error {
	const bar = 2.5
	x, err := b.makeBig()
	if err != nil {
		return err
	}
	one := func(s *server, path, find string, signed bool) *side {
		last := make([]string, workers)
		side := &side{server: s, rest: signed, load: load{workers: workers, each: each, status: http.StatusCreated}}
		side.load.request = func(addr string, w, i int) []byte {
			name, token, body := x.registration(corpus.Draft)
			last[w] = name
			if !signed {
				token = ""
			}
			return request(addr, path, token, body)
		}
		side.load.after = func() error {
			var list []error
			for _, name := range last {
				list = append(list, checkFound("http://"+s.Addr+find, name))
			}
			return errors.Join(list...)
		}
		return side
	}
	name := func() string {
		return fmt.Sprintf("register, durable, signed, found by the next search, among %s, c=%d", short(b.agents), workers)
	}
	return b.compare(name, one(x.floor, "/agents", floorSearch, false), one(x.portal, "/api/v1/agents", portalSearch, true), bar, true)
}

// search compares searches with facets, and measures the latency of searches while agents register. Its
// bars are printed but not judged.
func (b *bench) search() error {
	x, err := b.makeBig()
	if err != nil {
		return err
	}
	one := func(s *server, path string) *side {
		return &side{server: s, load: load{workers: 64, during: b.Round, status: http.StatusOK, request: func(addr string, worker, i int) []byte {
			return request(addr, path+url.QueryEscape(corpus.Hard(worker*7919+i)), "", "")
		}}}
	}
	name := func() string {
		return fmt.Sprintf("search with facets, hard mix of words, among %s, JSON, c=64", short(b.agents))
	}
	if err := b.compare(name, one(x.floor, floorSearch), one(x.portal, portalSearch), 4, false); err != nil {
		return err
	}
	return b.searchWhileRegistering(x)
}

// latency is the 99th percentile of search latencies in one round: alone, and while agents register.
type latency struct{ quiet, busy time.Duration }

// searchWhileRegistering measures searches at a fixed rate: alone, and while agents register at the
// same rate.
func (b *bench) searchWhileRegistering(x *big) error {
	const (
		quietBar = 25 * time.Millisecond
		ratioBar = 1.5
		busyBar  = 15 * time.Millisecond
	)
	searches := func(path string) pace {
		return pace{rate: searchRate, status: http.StatusOK, request: func(addr string, i int) []byte {
			text := corpus.Hard(i)
			if i%8 == 7 {
				text = corpus.Commonest()
			}
			return request(addr, path+url.QueryEscape(text), "", "")
		}}
	}
	registrations := func(path string, signed bool) pace {
		return pace{rate: searchRate, status: http.StatusCreated, request: func(addr string, _ int) []byte {
			_, token, body := x.registration(corpus.Strange)
			if !signed {
				token = ""
			}
			return request(addr, path, token, body)
		}}
	}
	sides := []struct {
		*server
		search, register pace
	}{{x.floor, searches(floorSearch), registrations("/agents", false)}, {x.portal, searches(portalSearch), registrations("/api/v1/agents", true)}}
	turn := 4 * b.Round / 3
	rounds, err := proc.Measure(b.Rounds, func() (list [2]latency, err error) {
		for i, s := range sides {
			quiet, err := s.together(turn, s.search)
			if err != nil {
				return list, err
			}
			busy, err := s.together(turn, s.search, s.register)
			if err != nil {
				return list, err
			}
			list[i] = latency{report.Percentile(quiet[0], 0.99), report.Percentile(busy[0], 0.99)}
			if _, err := s.Rest(); err != nil { // deferred work of this turn must not count in the next one
				return list, err
			}
		}
		return list, nil
	})
	if err != nil {
		return err
	}
	var quiet, busy [2][]time.Duration
	for _, r := range rounds.List {
		for i, l := range r {
			quiet[i], busy[i] = append(quiet[i], l.quiet), append(busy[i], l.busy)
		}
	}
	median := func(list [2][]time.Duration) string {
		return report.Join(report.Millis(report.Median(list[0])), report.Millis(report.Median(list[1])))
	}
	b.Add(report.Line{What: fmt.Sprintf("search at %d/s, open loop, among %s", searchRate, short(b.agents)), P99: median(quiet), Others: rounds.Share(),
		Bar: "p99 ≤ 25 ms among 100,000", Met: report.Median(quiet[1]) <= quietBar})
	ratio := report.Ratios(busy[1], quiet[1])
	steady := report.Median(ratio) <= ratioBar
	b.Add(report.Line{What: fmt.Sprintf("the same while %d agents/s register, p99 to quiet", searchRate), Floor: report.Spread(report.Ratios(busy[0], quiet[0])),
		Ratio: report.Spread(ratio), P99: median(busy), Others: rounds.Share(), Doubt: rounds.Doubt,
		Bar: "≤ 1.5×, or p99 ≤ 15 ms", Judged: true, Absolute: !steady, Met: steady || report.Median(busy[1]) <= busyBar})
	return nil
}

// imported is the result of one import: agents per second and µs of processor time per agent.
type imported struct {
	cpu, speed float64
}

// imports compares imports of many agents into an empty directory.
func (b *bench) imports() error {
	const bar = 20_000
	n := b.Pick(5_000, 20_000)
	var body bytes.Buffer
	name := func(i int) string { return fmt.Sprintf("moved-%07d", i) }
	for i := range n {
		body.Write(corpus.Draft(name(i), i))
		body.WriteByte('\n')
	}
	rounds, err := proc.Measure(b.Rounds, func() (list [2]imported, err error) {
		for i := range list {
			if list[i], err = b.importInto(i == 1, body.Bytes(), n, name(n-1)); err != nil {
				return list, err
			}
		}
		return list, nil
	})
	if err != nil {
		return err
	}
	var cpu, speed [2][]float64
	for _, r := range rounds.List {
		for i, v := range r {
			cpu[i], speed[i] = append(cpu[i], v.cpu), append(speed[i], v.speed)
		}
	}
	figure := func(i int) string {
		return fmt.Sprintf("%s, %.0f/s", report.Micros(report.Median(cpu[i])), report.Median(speed[i]))
	}
	b.Add(report.Line{What: fmt.Sprintf("import of %s agents into an empty portal", short(n)), Floor: figure(0), Portal: figure(1),
		Ratio: report.Spread(report.Ratios(cpu[1], cpu[0])), Others: rounds.Share(), Doubt: rounds.Doubt,
		Bar: "≥ 20,000/s", Judged: true, Absolute: true, Met: report.Median(speed[1]) >= bar})
	return nil
}

// importInto imports n agents into a new portal or floor. Work that the portal does after its answer
// counts as processor time, but not as duration.
func (b *bench) importInto(portal bool, body []byte, n int, last string) (r imported, err error) {
	var (
		s          *server
		token      string
		path, find = "/import", floorSearch
	)
	if portal {
		path, find = "/api/v1/import", portalSearch
		dir, err := os.MkdirTemp(b.Dir, "import-")
		if err != nil {
			return r, err
		}
		defer os.RemoveAll(dir)
		data, err := seed(dir, 0, 0)
		if err != nil {
			return r, err
		}
		if err := data.with(func(db *store.DB) (err error) { _, token, err = corpus.AddPerson(db, "operator", true); return err }); err != nil {
			return r, err
		}
		s, err = b.startPortal(dir)
		if err != nil {
			return r, err
		}
	} else if s, err = b.startFloor(0); err != nil {
		return r, err
	}
	defer s.Kill()
	before, err := s.Rest()
	if err != nil {
		return r, err
	}
	req, err := http.NewRequest(http.MethodPost, "http://"+s.Addr+path, bytes.NewReader(body))
	if err != nil {
		return r, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/x-ndjson")
	began := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return r, fmt.Errorf("%s: import: %w", s.Name, err)
	}
	defer resp.Body.Close()
	var done struct {
		Registered int
		Errors     []string
	}
	if err := json.NewDecoder(resp.Body).Decode(&done); err != nil {
		return r, fmt.Errorf("%s: import: %s: %w", s.Name, resp.Status, err)
	}
	r.speed = float64(n) / time.Since(began).Seconds()
	if done.Registered != n {
		return r, fmt.Errorf("%s: import: %s: %d of %d agents were registered: %q", s.Name, resp.Status, done.Registered, n, done.Errors[:min(3, len(done.Errors))])
	}
	if err := checkFound("http://"+s.Addr+find, last); err != nil {
		return r, err
	}
	after, err := s.Rest()
	r.cpu = us(after-before) / float64(n)
	return r, err
}

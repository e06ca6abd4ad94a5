// Command load measures the portal beside bench/floor: both run as processes
// of their own, are given the same load in turn over connections that stay
// open, and are judged by the processor time the kernel says they used for
// it. It prints a table, and ends with status 1 when a bar is missed.
//
//	go run ./bench/load -quick     a minute and a half: what a change may have spoiled
//	go run ./bench/load            all of it: about ten minutes
//	go run ./bench/load -rows page,message
//	go run ./bench/load -rows million
//
// Absolute figures are this machine's; the bars are ratios and what a person
// notices. Read docs/performance.md for what came out and how it is judged.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"agentsite/bench/corpus"
	"agentsite/bench/proc"
	"agentsite/bench/report"
	"agentsite/internal/hub"
	"agentsite/store"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// bench is one run: its settings, the two servers, and what came out.
type bench struct {
	report.Table
	quick  bool
	rounds int
	round  time.Duration
	work   string
	// binary is the portal's.
	binary, floorBinary string

	floor, portal *server
	data          *portal
	large         *big
}

var (
	rowNames = []string{"page", "browse", "profile", "message", "seen", "messages", "talk", "growth", "start", "import", "agents", "register", "search", "idle", "size"}
	// moreRows take minutes and are measured when they are named.
	moreRows = []string{"million"}
)

func run(args []string, out io.Writer) (err error) {
	b := &bench{Table: report.Table{Out: out}, rounds: 5, round: 2 * time.Second}
	fs := flag.NewFlagSet("load", flag.ContinueOnError)
	fs.BoolVar(&b.quick, "quick", false, "a minute and a half: fewer and shorter rounds, up to 100,000 messages, 50,000 agents, no 1 GiB database")
	rows := fs.String("rows", strings.Join(rowNames, ","), "which rows; beside these there is "+strings.Join(moreRows, ", "))
	product := fs.String("portal", "", "`PATH` of the portal's binary; default: built from here")
	fs.IntVar(&b.rounds, "rounds", b.rounds, "rounds of each side; 3 with -quick")
	temp := fs.String("temp", "", "`DIR` for data; it is on the disk that is measured")
	if err := fs.Parse(args); err != nil {
		return err
	}
	want := strings.Split(*rows, ",")
	for _, r := range want {
		if !slices.Contains(rowNames, r) && !slices.Contains(moreRows, r) {
			return fmt.Errorf("there is no row %q; the rows are %s", r, strings.Join(slices.Concat(rowNames, moreRows), ", "))
		}
	}
	if b.quick {
		b.round = 400 * time.Millisecond
		given := false
		fs.Visit(func(f *flag.Flag) { given = given || f.Name == "rounds" })
		if !given {
			b.rounds = 3
		}
	}
	if b.work, err = os.MkdirTemp(*temp, "load-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.work)
	if b.binary = *product; b.binary == "" {
		b.binary = filepath.Join(b.work, "agentsite")
		if err := proc.Build(b.binary, "."); err != nil {
			return err
		}
	}
	b.floorBinary = filepath.Join(b.work, "floor")
	if err := proc.Build(b.floorBinary, "./bench/floor"); err != nil {
		return err
	}
	began := time.Now()
	first, err := calibrate(b.work)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "before: %s\n", first)

	if b.data, err = seed(filepath.Join(b.work, "portal"), 32, 10_000); err != nil {
		return fmt.Errorf("fill a portal: %w", err)
	}
	if b.portal, err = start("portal", b.binary, serve(b.data.dir)...); err != nil {
		return err
	}
	defer func() { b.portal.Stop() }()
	floorData := filepath.Join(b.work, "floor-data")
	if err := os.Mkdir(floorData, 0o700); err != nil {
		return err
	}
	if b.floor, err = start("floor", b.floorBinary, "-data", floorData); err != nil {
		return err
	}
	defer func() { b.floor.Stop() }()
	defer func() {
		if b.large != nil {
			b.large.end()
		}
	}()

	for _, r := range want {
		at := time.Now()
		if err := b.row(r); err != nil {
			return fmt.Errorf("row %s: %w", r, err)
		}
		fmt.Fprintf(out, "row %s took %s\n", r, time.Since(at).Round(100*time.Millisecond))
	}
	last, err := calibrate(b.work)
	if err != nil {
		return err
	}
	missed := b.Print()
	fmt.Fprintf(out, "\nbefore: %s\nafter:  %s\n%d rounds each of %s, %s in all\n", first, last, b.rounds, b.round, time.Since(began).Round(time.Second))
	if d := float64(last.loop)/float64(first.loop) - 1; max(d, -d) > 0.1 {
		fmt.Fprintf(out, "the machine's speed changed by %.0f %% meanwhile: trust ratios only\n", d*100)
	}
	if missed > 0 {
		return fmt.Errorf("%d bars missed", missed)
	}
	return nil
}

func serve(dir string) []string {
	return []string{"serve", "--listen", "127.0.0.1:0", "--data", dir, "--log-level", "warn"}
}

func (b *bench) row(name string) error {
	pick := func(quick, full int) int {
		if b.quick {
			return quick
		}
		return full
	}
	switch name {
	case "page":
		return b.pages()
	case "browse":
		return b.browse()
	case "profile":
		return b.profile()
	case "search":
		return b.search(time.Duration(pick(400, 2000))*time.Millisecond, pick(2_000, 100_000))
	case "million":
		return b.million(pick(100_000, 1_000_000), time.Duration(pick(400, 4000))*time.Millisecond)
	case "agents":
		return b.agents()
	case "register":
		if err := b.register(16, pick(25, 100), false); err != nil {
			return err
		}
		if err := b.register(1, pick(60, 150), false); err != nil {
			return err
		}
		return b.register(1, min(15, (hub.MaxAgentsPerOwner-crowd)/(b.rounds+1)), true)
	case "import":
		return b.imports(pick(20_000, 100_000), pick(1, 3))
	case "message":
		// A person may say 20,000 at once and 2,000 a second: rounds stay below.
		if err := b.messages(16, pick(150, 250), 8, 2); err != nil {
			return err
		}
		return b.messages(1, pick(60, 150), 1, 2)
	case "seen":
		return b.seen(time.Duration(pick(1, 4)) * time.Second)
	case "messages":
		return b.pageOfMessages()
	case "talk":
		return b.talk(pick(20_000, 1_000_000))
	case "growth":
		return b.grow()
	case "start":
		return b.starts()
	case "idle":
		return b.idle(time.Duration(pick(5, 60)) * time.Second)
	case "size":
		return b.size()
	}
	return nil
}

// fullSize is the database that a start after a kill is measured on.
const fullSize = 1 << 30

// grow measures long conversations, and in a full run the start on what is
// then a database of 1 GiB.
func (b *bench) grow() error {
	sizes := grown
	if b.quick {
		sizes = grown[:3]
	}
	p, err := seed(filepath.Join(b.work, "grown"), 16, 100)
	if err != nil {
		return err
	}
	defer os.RemoveAll(p.dir)
	if err := p.with(func(db *store.DB) error {
		for i, n := range sizes {
			if err := p.say(db, i, n, textSize); err != nil {
				return err
			}
		}
		if b.quick {
			return nil
		}
		for {
			if n, _ := p.size(); n >= fullSize {
				return nil
			}
			if err := p.say(db, len(sizes), 4000, 8<<10); err != nil {
				return err
			}
		}
	}); err != nil {
		return fmt.Errorf("fill conversations: %w", err)
	}
	s, err := start("portal", b.binary, serve(p.dir)...)
	if err != nil {
		return err
	}
	defer func() { s.Kill() }()
	if err := b.growth(s, p, sizes); err != nil {
		return err
	}
	if b.quick {
		return nil
	}
	return b.afterKill(&s, p)
}

// afterKill kills a portal in the middle of writing, and measures the start on
// what is left, read from the disk.
func (b *bench) afterKill(s **server, p *portal) error {
	var took []float64
	var wal int64
	for i := range 3 {
		stop := make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for j := 0; ; j++ {
				select {
				case <-stop:
					return
				default:
					(*s).under(load{workers: 8, each: 100, status: 201, request: func(addr string, w, k int) []byte {
						body, _ := json.Marshal(map[string]string{"client_id": fmt.Sprintf("kill-%d-%d-%d-%d", i, j, w, k), "text": corpus.Text(k, textSize)})
						return request(addr, "/api/v1/conversations/"+p.rooms[w]+"/messages", p.tokens[2*w+j%2], string(body))
					}}, nil)
				}
			}
		}()
		time.Sleep(1500 * time.Millisecond)
		(*s).Kill()
		close(stop)
		<-ended
		_, n := p.size()
		wal = max(wal, n)
		if err := forget(p.dir); err != nil {
			return err
		}
		next, err := start("portal", b.binary, serve(p.dir)...)
		if err != nil {
			return err
		}
		*s = next
		took = append(took, float64(next.Took))
	}
	db, _ := p.size()
	at := time.Duration(slices.Max(took))
	b.Add(report.Line{What: fmt.Sprintf("start to ready after kill -9, database of %s, WAL of %s, from the disk: slowest of 3", mib(db), mib(wal)), Portal: report.Millis(at),
		P50: report.Millis(time.Duration(report.Median(took))), Bar: "≤ 2 s", Gated: true, Met: at <= 2*time.Second})
	return nil
}

// starts measures the first start of all, on an empty folder.
func (b *bench) starts() error {
	var took []float64
	for i := range 9 {
		dir := filepath.Join(b.work, fmt.Sprintf("empty-%d", i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		s, err := start("portal", b.binary, serve(dir)...)
		if err != nil {
			return err
		}
		took = append(took, float64(s.Took))
		s.Stop()
		os.RemoveAll(dir)
	}
	at := time.Duration(report.Median(took))
	b.Add(report.Line{What: "start to ready, empty folder, median of 9", Portal: report.Millis(at), P99: report.Millis(time.Duration(slices.Max(took))), Bar: "≤ 100 ms", Gated: true, Met: at <= 100*time.Millisecond})
	return nil
}

// idle measures what a portal uses while nobody asks anything: one that is
// new, one of 100 agents that had some traffic, and the one of 10,000 agents
// that had all the load before, which no bar is for.
func (b *bench) idle(during time.Duration) error {
	dir := filepath.Join(b.work, "idle")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	fresh, err := start("portal", b.binary, serve(dir)...)
	if err != nil {
		return err
	}
	defer fresh.Stop()
	data, err := seed(filepath.Join(b.work, "some"), 16, 100)
	if err != nil {
		return err
	}
	some, err := start("portal", b.binary, serve(data.dir)...)
	if err != nil {
		return err
	}
	defer some.Stop()
	for _, l := range []load{
		{workers: 16, during: 2 * time.Second, status: 200, request: get("/agents?q=data", "")},
		{workers: 16, each: 500, status: 201, request: func(addr string, w, i int) []byte {
			body, _ := json.Marshal(map[string]string{"client_id": fmt.Sprintf("%d-%d", w, i), "text": corpus.Text(i, textSize)})
			return request(addr, "/api/v1/conversations/"+data.rooms[w/2]+"/messages", data.tokens[w], string(body))
		}},
	} {
		if _, err := some.under(l, nil); err != nil {
			return err
		}
	}
	// It has settled when what the start or the load left is cleaned up.
	time.Sleep(min(5*time.Second, during/2))
	list := []struct {
		what  string
		s     *server
		gated bool
	}{{"empty portal", fresh, true}, {"100 agents, after 8,000 messages and 2 s of searches", some, true}, {"10,000 agents, after the load above", b.portal, false}}
	var before []time.Duration
	for _, x := range list {
		t, err := x.s.CPU()
		if err != nil {
			return err
		}
		before = append(before, t)
	}
	time.Sleep(during)
	for i, x := range list {
		t, err := x.s.CPU()
		if err != nil {
			return err
		}
		rss, pss, err := x.s.Memory()
		if err != nil {
			return err
		}
		share := float64(t-before[i]) / float64(during) * 100
		b.Add(report.Line{What: fmt.Sprintf("idle for %s, %s", during, x.what), Portal: fmt.Sprintf("%.3f %% of a core", share), Bar: "≤ 0.1 %", Gated: true, Met: share <= 0.1})
		b.Add(report.Line{What: "  its memory", Portal: fmt.Sprintf("%s RSS, %s PSS", mib(rss), mib(pss)), Bar: "≤ 60 MiB RSS", Gated: x.gated, Met: rss <= 60<<20})
	}
	return nil
}

func (b *bench) size() error {
	st, err := os.Stat(b.binary)
	if err != nil {
		return err
	}
	b.Add(report.Line{What: "binary, stripped", Portal: fmt.Sprintf("%.1f MB", float64(st.Size())/1e6), Bar: "≤ 36 MB", Gated: true, Met: st.Size() <= 36e6})
	return nil
}

// portalJSON reads an answer of the portal under load.
func (b *bench) portalJSON(path, token string, v any) error {
	req, err := http.NewRequest("GET", "http://"+b.portal.Addr+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		return errors.New(resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(v)
}

// selfCPU is what this process has used.
func selfCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Peers puts the same load on this project's DHT and on those of two libraries,
// one after the other on the same machine, and prints what each cost and the
// ratios:
//
//	go run . -nodes 100 -keys 200 -seconds 10
//
// Nodes of one network share a process of their own, so that memory and
// processor time are that network's alone, and where the system allows it a
// network namespace too, so that the bytes on the loopback are. Ours are the
// portal's own parts: databases, registry, guard, door, client and overlay, with
// requests that are signed, over TLS and HTTP/2. It ends with status 1 when one
// of our bars is missed.
//
// It is a module of its own: the portal itself needs none of these libraries.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	dht "github.com/libp2p/go-libp2p-kad-dht"
)

// Config is the load, the same for all.
type Config struct {
	Nodes   int
	Keys    int
	Gets    int // one after the other
	Clients int
	Seconds int // of what runs at once
	Idle    int // seconds in which nothing is asked
	Young   time.Duration
	Long    time.Duration
	Seed    uint64
	Temp    string // folder for databases
}

// subjects are the networks in the order they are measured.
var subjects = []struct {
	name string
	make func(context.Context, Config) (network, error)
}{
	{"ours", newOurs},
	{"libp2p", newKadDHT()},
	{"libp2p-tuned", newKadDHT(dht.BucketSize(8), dht.Concurrency(3))},
	{"anacrolix", newMainline},
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run() error {
	var cfg Config
	flag.IntVar(&cfg.Nodes, "nodes", 100, "nodes of each network")
	flag.IntVar(&cfg.Keys, "keys", 200, "keys that are put before anything is got")
	flag.IntVar(&cfg.Gets, "gets", 1000, "first values that are got one after the other")
	flag.IntVar(&cfg.Clients, "clients", 16, "clients at once")
	flag.IntVar(&cfg.Seconds, "seconds", 10, "how long they get, and then put")
	flag.IntVar(&cfg.Idle, "idle", 20, "how many seconds nothing is asked for the idle rows, 0 for not")
	flag.Uint64Var(&cfg.Seed, "seed", 1, "where the choice of nodes and keys comes from")
	flag.StringVar(&cfg.Temp, "temp", inMemory(), "folder for the portals' databases; one in memory, as disks are not what is measured")
	flag.DurationVar(&cfg.Young, "young", 15*time.Minute, "with -gossip: how long portals are new to each other")
	flag.DurationVar(&cfg.Long, "long", 30*time.Minute, "with -gossip: how long they are watched after that, in parts of 5m; the upkeep of a table comes round in 30m")
	only := flag.String("only", "", "what to measure: "+strings.Join(names(), ",")+" (default all)")
	one := flag.String("one", "", "measure this one in this process and print JSON (the program calls itself so)")
	mute := flag.Bool("mute", false, "with -one: the part in which nodes fall silent")
	quiet := flag.Bool("quiet", false, "with -gossip: only what portals cost that do nothing")
	gossiping := flag.Bool("gossip", false, "measure gossip alone: a hint at 50 portals with LAN timings, and what -nodes portals cost that do nothing")
	profile := flag.String("profile", "", "folder for profiles of each")
	flag.Parse()
	if cfg.Nodes < 30 || cfg.Keys < 1 || cfg.Gets < 1 || cfg.Clients < 1 || cfg.Seconds < 1 {
		return errors.New("-nodes takes 30 or more, -keys, -gets, -clients and -seconds 1 or more")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *one != "" {
		return child(ctx, *one, *mute, cfg, *profile)
	}
	if *gossiping {
		return gossipAlone(ctx, cfg, *quiet, *profile)
	}
	want := names()
	if *only != "" {
		want = strings.Split(*only, ",")
	}
	for _, w := range want {
		if !slices.Contains(names(), w) {
			return fmt.Errorf("-only %q: take some of %s", w, strings.Join(names(), ","))
		}
	}
	b, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("%d nodes, %d keys, %d processors, %s, ed25519 check %.0f µs of processor time, load average %s", cfg.Nodes, cfg.Keys, runtime.GOMAXPROCS(0), runtime.Version(), speed(), b)
	all := make(map[string]Result)
	for _, name := range want {
		var r Result
		for _, mute := range []bool{false, true} {
			began := time.Now()
			if err := measure(ctx, name, mute, &r); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			fmt.Printf("  %s, mute %t: %v\n", name, mute, time.Since(began).Round(time.Second))
		}
		all[name] = r
	}
	if missed := print(os.Stdout, want, all); missed > 0 {
		return fmt.Errorf("%d bars are missed", missed)
	}
	return nil
}

// gossipAlone measures gossip, in this process.
func gossipAlone(ctx context.Context, cfg Config, quiet bool, profile string) error {
	if os.Getenv(aloneEnv) != "" { // as under unshare --net
		if err := loopbackUp(); err != nil {
			return err
		}
	}
	raiseFiles()
	late := 0
	if !quiet {
		few := cfg
		few.Nodes = min(cfg.Nodes, 50)
		var err error
		if late, err = hints(ctx, few); err != nil {
			return err
		}
	}
	dear, err := idle(ctx, cfg, profile)
	if err == nil && late+dear > 0 {
		err = fmt.Errorf("%d bars of gossip are missed", late+dear)
	}
	return err
}

// inMemory is a folder in memory if there is one.
func inMemory() string {
	const shm = "/dev/shm"
	if s, err := os.Stat(shm); err == nil && s.IsDir() {
		return shm
	}
	return ""
}

func names() []string {
	var all []string
	for _, s := range subjects {
		all = append(all, s.name)
	}
	return all
}

// measure runs one part in a process of its own and adds what it prints to r.
func measure(ctx context.Context, name string, mute bool, r *Result) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := append(slices.Clone(os.Args[1:]), "-one", name, fmt.Sprintf("-mute=%t", mute))
	start := func(alone bool) ([]byte, error) {
		cmd := exec.CommandContext(ctx, self, args...)
		cmd.Stderr = os.Stderr
		var out bytes.Buffer
		cmd.Stdout = &out
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if alone {
			cmd.Env = append(os.Environ(), aloneEnv+"=1")
			cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNET
			if os.Getuid() != 0 {
				cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
				cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
				cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
			}
		}
		if err := cmd.Start(); err != nil {
			return nil, errNoSpace
		}
		err := cmd.Wait()
		return out.Bytes(), err
	}
	out, err := start(true)
	if errors.Is(err, errNoSpace) { // bytes are those of the whole machine then
		out, err = start(false)
	}
	if err != nil {
		return err
	}
	if !mute {
		return json.Unmarshal(out, r)
	}
	var second Result
	if err := json.Unmarshal(out, &second); err != nil {
		return err
	}
	r.MuteFirst, r.MutePut, r.MuteFull = second.MuteFirst, second.MutePut, second.MuteFull
	return nil
}

var errNoSpace = errors.New("no network namespace")

// aloneEnv tells the child that it has a network of its own.
const aloneEnv = "PEERS_ALONE"

func child(ctx context.Context, name string, mute bool, cfg Config, profile string) error {
	alone := os.Getenv(aloneEnv) != ""
	if alone {
		if err := loopbackUp(); err != nil {
			return fmt.Errorf("bring up the loopback: %w", err)
		}
	}
	raiseFiles()
	debug.SetTraceback("all")
	for _, s := range subjects {
		if s.name != name {
			continue
		}
		r, err := load(ctx, cfg, mute, profile, name, s.make)
		if err != nil {
			return err
		}
		r.Alone = alone
		return json.NewEncoder(os.Stdout).Encode(r)
	}
	return fmt.Errorf("-one %q is not known", name)
}

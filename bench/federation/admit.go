package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/index"
	"agentsite/internal/record"
	"agentsite/peering/translate"
	"agentsite/store"
)

// syncer takes in logs.
type syncer struct {
	gate    *record.Gate
	replica *store.Replica
	index   *index.Index // nil for none
	now     time.Time
	records atomic.Int64
	bytes   atomic.Int64
}

func admit(ctx context.Context, p plan) error {
	if p.data == "" {
		dir, err := os.MkdirTemp("", "agentsite-replica-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		p.data = dir
	}
	replica, err := store.OpenReplica(ctx, p.data, newPortal(-1, time.Now()).id, network, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	defer replica.Close()
	gate, err := record.NewGate(network, replica)
	if err != nil {
		return err
	}
	s := &syncer{gate: gate, replica: replica, now: time.Now()}
	if p.index {
		s.index = index.New()
	}
	files, err := filepath.Glob(filepath.Join(p.logs, "*.ndjson"))
	if err != nil {
		return err
	}
	if p.profile != "" {
		f, err := os.Create(p.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	began, used := time.Now(), cpu()
	if err := s.all(ctx, files, p.workers); err != nil {
		return err
	}
	took, used := time.Since(began), cpu()-used
	pprof.StopCPUProfile()
	return s.report(ctx, p.data, took, used)
}

// all takes in cards and heads first, as the answer of heads/diff gives them,
// and then the logs of several portals at once.
func (s *syncer) all(ctx context.Context, files []string, workers int) error {
	for some := range slices.Chunk(files, 1000) {
		var cards, heads [][]byte
		for _, file := range some {
			lines, err := read(file)
			if err != nil {
				return err
			}
			cards, heads = append(cards, bytes.Clone(lines[0])), append(heads, bytes.Clone(lines[1]))
		}
		for _, list := range [][][]byte{cards, heads} {
			if _, err := s.take(ctx, list); err != nil {
				return err
			}
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for _, file := range files {
		group.Go(func() error { return s.log(ctx, file) })
	}
	return group.Wait()
}

func read(file string) ([][]byte, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n")), nil
}

// log takes in the log of a portal and checks that it adds up.
func (s *syncer) log(ctx context.Context, file string) error {
	lines, err := read(file)
	if err != nil {
		return err
	}
	card, err := record.Open(network, lines[0])
	if err != nil {
		return err
	}
	head, err := record.Open(network, lines[1])
	if err != nil {
		return err
	}
	var tree record.Tree
	for some := range slices.Chunk(lines[2:], record.MaxBatch) {
		list, err := s.take(ctx, some)
		if err != nil {
			return err
		}
		agents := make([]hub.Agent, 0, len(list))
		for _, r := range list {
			tree.Apply(r)
			s.bytes.Add(int64(len(r.Wire)))
			if s.index != nil {
				a, err := translate.Agent(card.Body.(*record.Card), r.Body.(*record.Agent))
				if err != nil {
					return err
				}
				agents = append(agents, a)
			}
		}
		s.records.Add(int64(len(list)))
		if s.index != nil {
			i := 0
			s.index.Load(func() (hub.Agent, bool) {
				if i == len(agents) {
					return hub.Agent{}, false
				}
				i++
				return agents[i-1], true
			})
		}
	}
	if !head.Body.(*record.Head).Describes(&tree) {
		return fmt.Errorf("%s does not add up", file)
	}
	_, ok, err := s.replica.Complete(ctx, head.Portal, record.Version{}, head.Version(), federation.Whole{Version: head.Version(), Hash: head.Hash})
	if err == nil && !ok {
		err = fmt.Errorf("%s: what is held is not noted as whole", file)
	}
	return err
}

// take admits records, all of which must be new.
func (s *syncer) take(ctx context.Context, wires [][]byte) ([]*record.Record, error) {
	results, err := s.gate.AdmitAll(ctx, wires, s.now)
	if err != nil {
		return nil, err
	}
	list := make([]*record.Record, len(results))
	for i, r := range results {
		if r.Err != nil || !r.Fresh {
			return nil, fmt.Errorf("record %d: fresh %v, %w", i, r.Fresh, r.Err)
		}
		list[i] = r.Record
	}
	return list, nil
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// memory is a line of /proc/self/status, such as VmHWM.
func memory(what string) string {
	b, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, what+":"); ok {
			return strings.TrimSpace(rest)
		}
	}
	return "unknown"
}

func (s *syncer) report(ctx context.Context, dir string, took, used time.Duration) error {
	n := s.records.Load()
	var disk int64
	for _, end := range []string{"", "-wal"} {
		if st, err := os.Stat(filepath.Join(dir, store.ReplicaName+end)); err == nil {
			disk += st.Size()
		}
	}
	fmt.Printf("%d records in %.1f s: %.0f records/s, %.0f µs of processor each; %d bytes each as they travel, %d on disk; memory %s, peak %s\n",
		n, took.Seconds(), float64(n)/took.Seconds(), float64(used.Microseconds())/float64(n), s.bytes.Load()/n, disk/n, memory("VmRSS"), memory("VmHWM"))
	if s.index != nil && int64(s.index.Len()) != n {
		return fmt.Errorf("%d of %d agents are found", s.index.Len(), n)
	}
	began := time.Now()
	if err := s.replica.Sweep(ctx, s.now); err != nil {
		return err
	}
	swept := time.Since(began)
	began = time.Now()
	heads, err := s.replica.Heads(ctx)
	if err != nil {
		return err
	}
	listed := time.Since(began)
	began = time.Now()
	leaves := 0
	for _, h := range heads[:min(len(heads), 100)] {
		if err := s.replica.Leaves(ctx, h.Portal, func(_, _ record.Hash) bool { leaves++; return true }); err != nil {
			return err
		}
	}
	fmt.Printf("sweep %.1f s; %d heads in %s; %d leaves in %s\n", swept.Seconds(), len(heads), listed, leaves, time.Since(began))
	return nil
}

package proc

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// maxOthers is the share of the machine that other programs may use in a round; above it the round does
// not count.
const maxOthers = 0.2

// Rounds holds the rounds that count, and how much other programs disturbed them.
type Rounds[T any] struct {
	List []T
	// Others is the median share of the machine that other programs used, from 0 to 1.
	Others float64
	// Doubt is the reason why these rounds cannot be judged, "" if they can.
	Doubt string
}

// Measure repeats a round until n of them count. The first one warms up and
// never counts; a round in which other programs used more than maxOthers is
// repeated, at most n times in all. If too few remain, all are returned, with
// the reason for doubt.
func Measure[T any](n int, round func() (T, error)) (Rounds[T], error) {
	if _, err := round(); err != nil {
		return Rounds[T]{}, err
	}
	return measure(n, usage, round)
}

func measure[T any](n int, usage func() (busy, own, all time.Duration), round func() (T, error)) (r Rounds[T], err error) {
	var disturbed []T
	var quiet, loud []float64
	for len(r.List) < n && len(disturbed) <= n {
		busy0, own0, all0 := usage()
		v, err := round()
		if err != nil {
			return r, err
		}
		busy1, own1, all1 := usage()
		others := max(0, float64((busy1-busy0)-(own1-own0))/float64(max(1, all1-all0)))
		if others > maxOthers {
			disturbed, loud = append(disturbed, v), append(loud, others)
		} else {
			r.List, quiet = append(r.List, v), append(quiet, others)
		}
	}
	if len(r.List) < n {
		r.List, quiet = append(r.List, disturbed...), append(quiet, loud...)
		r.Doubt = fmt.Sprintf("other programs used more than %.0f %% of the machine", maxOthers*100)
	}
	slices.Sort(quiet)
	r.Others = quiet[len(quiet)/2]
	return r, nil
}

// Share returns Others as a percentage.
func (r Rounds[T]) Share() string { return fmt.Sprintf("%.0f %%", r.Others*100) }

// live holds the processes that were started and have not ended, so that usage can tell them from other
// programs.
var (
	liveMu sync.Mutex // guards live
	live   = make(map[*Process]bool)
)

func setLive(p *Process, running bool) {
	liveMu.Lock()
	defer liveMu.Unlock()
	if running {
		live[p] = true
	} else {
		delete(live, p)
	}
}

// usage returns processor times since boot: busy is that of the machine, own that of this process and
// of those it started, all the sum over all processors, idle or not. Time that the hypervisor took from
// this machine counts as busy. Interrupts do not, because the kernel accounts the loopback traffic of
// the benchmark there and not to its processes.
func usage() (busy, own, all time.Duration) {
	const jiffy = 10 * time.Millisecond
	b, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(b), "\n")
	const idle, iowait, irq, softirq, guest = 3, 4, 5, 6, 8
	for i, f := range strings.Fields(line)[1:] {
		var n int64
		fmt.Sscan(f, &n)
		if i >= guest {
			break // guest time is contained in user time
		}
		all += time.Duration(n) * jiffy
		if i != idle && i != iowait && i != irq && i != softirq {
			busy += time.Duration(n) * jiffy
		}
	}
	for _, self := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(self, &u) == nil {
			own += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	liveMu.Lock()
	defer liveMu.Unlock()
	for p := range live {
		if t, err := p.CPU(); err == nil {
			own += t
		}
	}
	return busy, own, all
}

const (
	// A process rests while it uses less than restBelow in an interval of restEvery: a hundredth of a
	// processor.
	restEvery = 100 * time.Millisecond
	restBelow = restEvery / 100
	// restCalm is the number of resting intervals in a row that Rest waits for, because the portal may
	// defer work by two seconds.
	restCalm = 25
	// restMost is the longest time that Rest waits.
	restMost = 20 * time.Second
)

// Rest waits until the process rests, so that the work it deferred counts in the same round, and
// returns the processor time it has used until then.
func (p *Process) Rest() (time.Duration, error) {
	var calm int
	last, err := p.CPU()
	for until := time.Now().Add(restMost); err == nil && calm < restCalm && time.Now().Before(until); {
		time.Sleep(restEvery)
		var now time.Duration
		if now, err = p.CPU(); now-last < restBelow {
			calm++
		} else {
			calm = 0
		}
		last = now
	}
	return last, err
}

package settings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits are the bounds on the use of resources by one account, guest, agent or portal. --limits changes single
// ones, the others keep the values of DefaultLimits. docs/operate/limits.md lists all of them.
type Limits struct {
	Work        WorkLimits
	Memory      MemoryLimits
	Disk        DiskLimits
	Connections ConnectionLimits
	Rooms       RoomLimits
	Credentials CredentialLimits
}

// WorkLimits bound the tasks that run at the same time and those that wait for their turn: of the portal,
// and of one account (address group of guests, other portal), conversation, agent, owner of agents, and
// host that runs agents.
type WorkLimits struct {
	Running, RunningPerAccount, RunningPerRoom, RunningPerAgent, RunningPerOwner, RunningPerProvider int64
	// GoalsPerAccount bounds the goals of an account on which teams work at the same time.
	GoalsPerAccount                                                                                  int64
	Waiting, WaitingPerAccount, WaitingPerRoom, WaitingPerAgent, WaitingPerOwner, WaitingPerProvider int64
}

// DefaultLimits returns the bounds of a portal without --limits.
func DefaultLimits() Limits {
	return Limits{
		Work:        defaultWork(),
		Memory:      defaultMemoryLimits(),
		Disk:        defaultDisk(),
		Connections: defaultConnectionLimits(),
		Rooms:       defaultRoomLimits(),
		Credentials: defaultCredentialLimits(),
	}
}

func defaultWork() WorkLimits {
	return WorkLimits{
		Running: 512, RunningPerAccount: 64, RunningPerRoom: 64, RunningPerAgent: 32, RunningPerOwner: 128, RunningPerProvider: 128,
		Waiting: 100_000, WaitingPerAccount: 1000, WaitingPerRoom: 1000, WaitingPerAgent: 10_000, WaitingPerOwner: 20_000,
		WaitingPerProvider: 20_000, GoalsPerAccount: 20,
	}
}

// Limit is one bound as operators know it.
type Limit struct {
	Name     string // as in --limits, lower case and hyphens
	Unit     LimitUnit
	Min, Max int64
	value    *int64
}

// LimitUnit is the way in which the value of a bound is written.
type LimitUnit string

// A count is a plain number. Bytes may end in k, M, G or T, powers of 1,024. A duration is in
// milliseconds and written as in Go, for example 90s.
const (
	UnitCount    LimitUnit = "count"
	UnitBytes    LimitUnit = "bytes"
	UnitDuration LimitUnit = "duration"
)

// List returns all bounds, in the order of docs/operate/limits.md. They refer to l.
func (l *Limits) List() []Limit {
	return slices.Concat(
		l.Work.list(),
		l.Memory.list(),
		l.Disk.list(),
		l.Connections.list(),
		l.Rooms.list(),
		l.Credentials.list(),
	)
}

func (w *WorkLimits) list() []Limit {
	return []Limit{
		{"running", UnitCount, 2, 100_000, &w.Running},
		{"running-per-account", UnitCount, 1, 100_000, &w.RunningPerAccount},
		{"running-per-room", UnitCount, 1, 100_000, &w.RunningPerRoom},
		{"running-per-agent", UnitCount, 2, 100_000, &w.RunningPerAgent},
		{"running-per-owner", UnitCount, 2, 100_000, &w.RunningPerOwner},
		{"running-per-provider", UnitCount, 2, 100_000, &w.RunningPerProvider},
		{"waiting", UnitCount, 1, 1_000_000, &w.Waiting},
		{"waiting-per-account", UnitCount, 1, 1_000_000, &w.WaitingPerAccount},
		{"waiting-per-room", UnitCount, 1, 1_000_000, &w.WaitingPerRoom},
		{"waiting-per-agent", UnitCount, 1, 1_000_000, &w.WaitingPerAgent},
		{"waiting-per-owner", UnitCount, 1, 1_000_000, &w.WaitingPerOwner},
		{"waiting-per-provider", UnitCount, 1, 1_000_000, &w.WaitingPerProvider},
		{"goals-per-account", UnitCount, 1, 10_000, &w.GoalsPerAccount},
	}
}

// Value returns the bound in the form in which --limits takes it.
func (l Limit) Value() string {
	v := *l.value
	switch l.Unit {
	case UnitDuration:
		return (time.Duration(v) * time.Millisecond).String()
	case UnitBytes:
		for i := len(byteUnits) - 1; i >= 0; i-- {
			if size := int64(1) << (10 * (i + 1)); v >= size && v%size == 0 {
				return strconv.FormatInt(v/size, 10) + byteUnits[i:i+1]
			}
		}
	}
	return strconv.FormatInt(v, 10)
}

// byteUnits are the endings of sizes: the first is 1,024 bytes, each further one 1,024 times more.
const byteUnits = "kMGT"

// parseLimits parses the value of --limits, NAME=VALUE pairs separated by commas. "" gives the defaults.
func parseLimits(text string) (Limits, error) {
	l := DefaultLimits()
	known := make(map[string]Limit)
	for _, one := range l.List() {
		known[one.Name] = one
	}
	set := make(map[string]bool)
	for pair := range strings.SplitSeq(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		limit, is := known[name]
		switch {
		case !ok:
			return l, fmt.Errorf("--limits %q: write NAME=VALUE, separated by commas, for example running-per-agent=16", pair)
		case !is:
			return l, fmt.Errorf("--limits %q: there is no limit of that name; see /docs/operate/limits", name)
		case set[name]:
			return l, fmt.Errorf("--limits: %s is given twice", name)
		}
		set[name] = true
		v, err := limit.parse(value)
		if err != nil {
			return l, fmt.Errorf("--limits %s: %w", pair, err)
		}
		*limit.value = v
	}
	return l, l.Memory.check()
}

func (l Limit) parse(text string) (int64, error) {
	v, err := l.parseUnit(text)
	if err != nil {
		return 0, err
	}
	if v < l.Min || v > l.Max {
		least, most := l, l
		least.value, most.value = &l.Min, &l.Max
		return 0, fmt.Errorf("give a value from %s to %s", least.Value(), most.Value())
	}
	return v, nil
}

func (l Limit) parseUnit(text string) (int64, error) {
	switch l.Unit {
	case UnitDuration:
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return 0, fmt.Errorf("give a duration like 90s or 15m")
		}
		return d.Milliseconds(), nil
	case UnitBytes:
		digits, factor := text, int64(1)
		if n := len(text); n > 1 && strings.Contains(byteUnits, text[n-1:]) {
			digits, factor = text[:n-1], int64(1)<<(10*(strings.Index(byteUnits, text[n-1:])+1))
		}
		v, err := strconv.ParseUint(digits, 10, 62)
		if err != nil || int64(v) > (1<<62)/factor {
			return 0, fmt.Errorf("give a size like 500k, 64M or 2G")
		}
		return int64(v) * factor, nil
	default:
		v, err := strconv.ParseUint(text, 10, 62)
		if err != nil {
			return 0, fmt.Errorf("give a whole number")
		}
		return int64(v), nil
	}
}

package task

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Budget is what some work may lead to in all. It goes along with what agents
// ask for, from portal to portal, and only shrinks. The zero Budget bounds
// nothing: then the bounds of the portal hold alone.
type Budget struct {
	// Calls is how many further calls of agents the work may lead to.
	Calls int
	// Until is when all of it must have ended.
	Until time.Time
	// Bytes is how much may be said in all, by who asks and who answers.
	Bytes int64
}

// BudgetField is the header field that holds a budget. An endpoint that asks
// this or another portal for something in the course of an answer sends it
// along as it came.
const BudgetField = "Agentsite-Budget"

// The most that a budget gives: more is read as that much.
const (
	MaxBudgetCalls   = 1000
	MaxBudgetSeconds = 24 * 60 * 60
	MaxBudgetBytes   = 1 << 30
)

// ErrBudget is in the chain of the faults that say that a budget is used up.
var ErrBudget = errors.New("the budget is used up")

// Bounds reports whether there is a budget at all.
func (b Budget) Bounds() bool { return !b.Until.IsZero() }

// Less is what is left after one further call, in which size bytes were said.
// It is for who passes work on; of no budget it is none.
func (b Budget) Less(size int) Budget {
	if !b.Bounds() {
		return b
	}
	b.Calls, b.Bytes = max(b.Calls-1, 0), max(b.Bytes-int64(size), 0)
	return b
}

// Within is the tighter of two budgets in everything.
func (b Budget) Within(o Budget) Budget {
	switch {
	case !b.Bounds():
		return o
	case !o.Bounds():
		return b
	}
	if o.Until.Before(b.Until) {
		b.Until = o.Until
	}
	return Budget{Calls: min(b.Calls, o.Calls), Until: b.Until, Bytes: min(b.Bytes, o.Bytes)}
}

// Field is the budget as the value of the header field, at a time; "" for none.
func (b Budget) Field(now time.Time) string {
	if !b.Bounds() {
		return ""
	}
	return fmt.Sprintf("calls=%d, seconds=%d, bytes=%d", b.Calls, max(int64(b.Until.Sub(now)/time.Second), 0), b.Bytes)
}

// ParseBudgetField is the inverse of Field, for the lines of a header field: a
// dictionary (RFC 9651) of which all three members have to be there. Others
// are ignored.
func ParseBudgetField(lines []string, now time.Time) (Budget, error) {
	if len(lines) == 0 {
		return Budget{}, nil
	}
	bad := errors.New(`write it like calls=3, seconds=600, bytes=262144`)
	in := strings.Join(lines, ",")
	if len(in) > 500 {
		return Budget{}, bad
	}
	got := map[string]int64{}
	for item := range strings.SplitSeq(in, ",") {
		name, value, ok := strings.Cut(strings.Trim(item, " \t"), "=")
		most, known := map[string]int64{"calls": MaxBudgetCalls, "seconds": MaxBudgetSeconds,
			"bytes": MaxBudgetBytes}[name]
		if !known {
			continue
		}
		n, err := strconv.ParseUint(value, 10, 62)
		if _, twice := got[name]; !ok || err != nil || twice || len(value) > 15 {
			return Budget{}, bad
		}
		got[name] = min(int64(n), most)
	}
	if len(got) < 3 {
		return Budget{}, bad
	}
	return Budget{Calls: int(got["calls"]), Until: now.Add(time.Duration(got["seconds"]) * time.Second),
		Bytes: got["bytes"]}, nil
}

// String is the budget as it is stored, and as ParseBudget reads it.
func (b Budget) String() string {
	if !b.Bounds() {
		return ""
	}
	return fmt.Sprintf("%d %d %d", b.Calls, b.Until.UnixMilli(), b.Bytes)
}

// ParseBudget is the inverse of String.
func ParseBudget(s string) (Budget, error) {
	if s == "" {
		return Budget{}, nil
	}
	var b Budget
	var until int64
	if n, err := fmt.Sscanf(s, "%d %d %d", &b.Calls, &until, &b.Bytes); err != nil || n != 3 || b.Calls < 0 ||
		b.Bytes < 0 || until <= 0 {
		return Budget{}, errors.New("no budget")
	}
	b.Until = time.UnixMilli(until).UTC()
	return b, nil
}

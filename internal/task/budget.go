package task

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Budget bounds the total work that one request may cause. It is passed on with every request that
// agents make, from portal to portal, and only shrinks. The zero Budget sets no bounds: then only the
// bounds of the portal apply.
type Budget struct {
	// Calls is the number of further calls of agents that the work may cause.
	Calls int
	// Until is the deadline of all of the work. The zero time marks a Budget without bounds.
	Until time.Time
	// Bytes bounds the total size of all further requests and answers.
	Bytes int64
}

// BudgetField is the header field that holds a budget. An endpoint that makes requests to this or
// another portal while it answers copies the field from the request that it answers.
const BudgetField = "Agentsite-Budget"

// The upper bounds that a received budget is reduced to.
const (
	MaxBudgetCalls   = 1000
	MaxBudgetSeconds = 24 * 60 * 60
	MaxBudgetBytes   = 1 << 30
)

// ErrBudget is wrapped by the faults for a used-up budget, so that each protocol endpoint can
// answer with its own error.
var ErrBudget = errors.New("the budget is used up")

// IsSet reports whether b has bounds.
func (b Budget) IsSet() bool { return !b.Until.IsZero() }

// SpendCall returns the rest of the budget after one more call with a message of size bytes, never
// below 0. A budget without bounds is returned unchanged.
func (b Budget) SpendCall(size int) Budget {
	if !b.IsSet() {
		return b
	}
	b.Calls, b.Bytes = max(b.Calls-1, 0), max(b.Bytes-int64(size), 0)
	return b
}

// CombineWith returns the tighter bound of b and o in each field. A budget without bounds does not
// restrict the other.
func (b Budget) CombineWith(o Budget) Budget {
	switch {
	case !b.IsSet():
		return o
	case !o.IsSet():
		return b
	}
	if o.Until.Before(b.Until) {
		b.Until = o.Until
	}
	return Budget{Calls: min(b.Calls, o.Calls), Until: b.Until, Bytes: min(b.Bytes, o.Bytes)}
}

// Field formats the budget as the value of the header field, relative to now; "" for none.
func (b Budget) Field(now time.Time) string {
	if !b.IsSet() {
		return ""
	}
	return fmt.Sprintf("calls=%d, seconds=%d, bytes=%d", b.Calls, max(int64(b.Until.Sub(now)/time.Second), 0), b.Bytes)
}

// ParseBudgetField is the inverse of Field. It parses the lines of a header field as a dictionary
// (RFC 9651) that must have calls, seconds and bytes; other members are ignored. No lines give a
// budget without bounds.
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

// String formats the budget for storage; "" for one without bounds. ParseBudget parses the result.
func (b Budget) String() string {
	if !b.IsSet() {
		return ""
	}
	return fmt.Sprintf("%d %d %d", b.Calls, b.Until.UnixMilli(), b.Bytes)
}

// ParseBudget is the inverse of String. It returns an error for text that String did not write.
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

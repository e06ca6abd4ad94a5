package demo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/internal/clock"
)

// cronField is one of the five: its bounds and the names of its values.
type cronField struct {
	name     string
	min, max int
	names    []string // from min
}

var cronFields = []cronField{
	{"minute", 0, 59, nil}, {"hour", 0, 23, nil}, {"day of the month", 1, 31, nil},
	{"month", 1, 12, strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec")},
	{"day of the week", 0, 7, strings.Fields("sun mon tue wed thu fri sat")},
}

// explainCron says when a line of a crontab runs, and when next.
func explainCron(in string) (string, error) { return explainCronAt(in, clock.Now().UTC()) }

func explainCronAt(in string, now time.Time) (string, error) {
	f := strings.Fields(strings.Trim(strings.TrimSpace(in), "`"))
	if len(f) < 5 {
		return "", sorryf("Send me five fields, like 30 6 * * 1-5: minute, hour, day, month, day of the week.")
	}
	var sets [5][]bool
	var b strings.Builder
	b.WriteString("| field | | |\n|---|---|---|\n")
	for i, c := range cronFields {
		set, err := c.parse(strings.ToLower(f[i]))
		if err != nil {
			return "", err
		}
		sets[i] = set
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.name, cell(f[i]), c.words(f[i], set))
	}
	sets[4][0] = sets[4][0] || sets[4][7]
	next := nextRuns(sets, f[2] == "*", f[4] == "*", now, 3)
	if len(next) == 0 {
		b.WriteString("\nIt does not run in the next five years.")
		return b.String(), nil
	}
	b.WriteString("\nNext, in UTC:\n\n")
	for _, t := range next {
		fmt.Fprintf(&b, "- %s\n", t.Format("Monday, 2 January 2006, 15:04"))
	}
	return b.String(), nil
}

// parse reads a field: *, values, ranges and steps, with commas between.
func (c cronField) parse(s string) ([]bool, error) {
	set := make([]bool, c.max+1)
	bad := sorryf("I cannot read %q as %s.", s, c.name)
	for _, part := range strings.Split(s, ",") {
		part, every, stepped := strings.Cut(part, "/")
		step := 1
		if stepped {
			var err error
			if step, err = strconv.Atoi(every); err != nil || step < 1 || step > c.max {
				return nil, bad
			}
		}
		from, to := c.min, c.max
		if part != "*" {
			a, z, ranged := strings.Cut(part, "-")
			var ok bool
			if from, ok = c.value(a); !ok {
				return nil, bad
			}
			switch {
			case ranged:
				if to, ok = c.value(z); !ok || to < from {
					return nil, bad
				}
			case !stepped:
				to = from
			}
		}
		for v := from; v <= to; v += step {
			set[v] = true
		}
	}
	return set, nil
}

func (c cronField) value(s string) (int, bool) {
	if i := slices.Index(c.names, s); i >= 0 {
		return c.min + i, true
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= c.min && n <= c.max
}

// words lists the values of a field.
func (c cronField) words(s string, set []bool) string {
	if s == "*" {
		return "every " + c.name
	}
	var list []string
	for v, in := range set {
		if !in {
			continue
		}
		if c.names == nil {
			list = append(list, strconv.Itoa(v))
		} else {
			list = append(list, title(c.names[(v-c.min)%len(c.names)]))
		}
	}
	if len(list) > 12 {
		return plural(len(list), "value") + ", from " + list[0] + " to " + list[len(list)-1]
	}
	return strings.Join(list, ", ")
}

// nextRuns are the next n minutes that fit. If both days are restricted one of
// them is enough, as cron has it.
func nextRuns(sets [5][]bool, anyDay, anyWeekday bool, now time.Time, n int) (out []time.Time) {
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	for range 5 * 366 {
		d, w := sets[2][day.Day()], sets[4][int(day.Weekday())]
		fits := d && w
		if !anyDay && !anyWeekday {
			fits = d || w
		}
		if fits && sets[3][int(day.Month())] {
			for m := range 24 * 60 {
				t := day.Add(time.Duration(m) * time.Minute)
				if sets[1][m/60] && sets[0][m%60] && t.After(now) {
					if out = append(out, t); len(out) == n {
						return out
					}
				}
			}
		}
		day = day.AddDate(0, 0, 1)
	}
	return out
}

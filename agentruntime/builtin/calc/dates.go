package calc

import (
	"fmt"
	"math/big"
	"strings"
	"time"

	"agentsite/internal/fault"
)

const (
	dayLayout = "2006-01-02"
	// maxYear keeps every answer in the four-digit form it is typed in.
	maxYear = 9999
	// maxDays spans the calendar above, so larger steps fail before adding.
	maxDays = 366 * maxYear
)

var months = map[string]time.Month{
	"january": 1, "jan": 1, "february": 2, "feb": 2, "march": 3, "mar": 3, "april": 4, "apr": 4, "may": 5, "june": 6, "jun": 6,
	"july": 7, "jul": 7, "august": 8, "aug": 8, "september": 9, "sep": 9, "sept": 9, "october": 10, "oct": 10,
	"november": 11, "nov": 11, "december": 12, "dec": 12,
}

// civil drops the clock and zone of t: dates here are calendar squares, kept
// as midnight UTC so that subtracting two gives whole days in every zone.
func civil(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

// namedDate reads "25 Dec 2026", "25th of December, 2026", "December 25,
// 2026". Without a year it is the year of today, which the answer shows.
func (p *parser) namedDate() (*node, bool, error) {
	start, t := p.pos, p.peek()
	var day token
	var month time.Month
	ordinal := func() {
		if s := p.peek(); s.glued {
			p.acceptAny("st", "nd", "rd", "th")
		}
	}
	switch t.kind {
	case tokenNumber:
		day = p.take()
		ordinal()
		p.acceptAny("of")
		if m, ok := months[p.peek().low]; ok && p.peek().kind == tokenWord {
			p.take()
			month = m
		}
	case tokenWord:
		if m, ok := months[t.low]; ok {
			p.take()
			if p.peek().kind == tokenNumber {
				month, day = m, p.take()
				ordinal()
			}
		}
	}
	if month == 0 || !day.num.IsInt() || day.num.Sign() <= 0 || day.num.Cmp(big.NewRat(31, 1)) > 0 {
		p.pos = start
		return nil, false, nil
	}
	p.acceptOp(".")
	year := p.today.Year()
	mark := p.pos
	p.acceptOp(",")
	if y := p.peek(); y.kind == tokenNumber && y.num.IsInt() && len(y.text) == 4 && y.num.Cmp(big.NewRat(1000, 1)) >= 0 {
		p.take()
		year = int(y.num.Num().Int64())
	} else {
		p.pos = mark
	}
	d := int(day.num.Num().Int64())
	date := time.Date(year, month, d, 0, 0, 0, 0, time.UTC)
	if date.Day() != d {
		return nil, false, fault.New(fault.Invalid, "There is no %d %s %d (character %d). Try: %s", d, month, year, t.at, exampleDate)
	}
	return p.dateNode(date, t), true, nil
}

func errDateRange() error {
	return fault.New(fault.Invalid, "The date would fall outside the years 1 to %d. Use a shorter time, for example: %s", maxYear, exampleDate)
}

// addToDate adds sign times each quantity of span, in the order typed. The
// note says what the calendar made of it.
func addToDate(day time.Time, span []value, sign int) (value, error) {
	var notes []string
	for _, q := range span {
		n := q.num
		if sign < 0 {
			n = new(big.Rat).Neg(n)
		}
		var note string
		var err error
		switch dim := q.unit.dim(); {
		case q.kind != kindNumber:
			return value{}, fault.New(fault.Invalid, "To a date a time can be added, not %s. Try: %s", q.describe(), `"2026-11-20 + 45 days"`)
		case len(q.unit) == 0:
			return value{}, fault.New(fault.Invalid, "%s has no unit, so I cannot add it to a date. Say days, weeks, months or years: %s", short(q.num), `"2026-11-20 + 45 days"`)
		case dim == dimWorkday:
			day, note, err = addWorkdays(day, n)
		case dim != dimTime:
			return value{}, fault.New(fault.Invalid, "%s is not a time, so it cannot be added to a date. Try: %s", q.unit.name(), `"2026-11-20 + 45 days"`)
		case q.unit.isCalendar():
			day, note, err = addMonths(day, new(big.Rat).Quo(new(big.Rat).Mul(n, q.unit.factor()), monthSeconds))
		default:
			day, err = addDays(day, new(big.Rat).Quo(new(big.Rat).Mul(n, q.unit.factor()), daySeconds))
		}
		if err != nil {
			return value{}, err
		}
		if note != "" {
			notes = append(notes, note)
		}
	}
	return value{kind: kindDate, day: day, note: strings.Join(notes, " ")}, nil
}

var (
	daySeconds   = big.NewRat(86400, 1)
	monthSeconds = big.NewRat(2629746, 1)
)

func wholeSteps(n *big.Rat, what string) (int, error) {
	if !n.IsInt() {
		return 0, fault.New(fault.Invalid, "A date moves by whole %s only, not by %s. Try: %s", what, short(n), `"2026-11-20 + 45 days"`)
	}
	if n.Num().CmpAbs(big.NewInt(maxDays)) > 0 {
		return 0, errDateRange()
	}
	return int(n.Num().Int64()), nil
}

func inRange(day time.Time) error {
	if y := day.Year(); y < 1 || y > maxYear {
		return errDateRange()
	}
	return nil
}

func addDays(day time.Time, n *big.Rat) (time.Time, error) {
	steps, err := wholeSteps(n, "days")
	if err != nil {
		return day, err
	}
	day = day.AddDate(0, 0, steps)
	return day, inRange(day)
}

// addMonths keeps the day of the month, or takes the last one the month has:
// time.AddDate would run over into the next month.
func addMonths(day time.Time, n *big.Rat) (time.Time, string, error) {
	steps, err := wholeSteps(n, "months")
	if err != nil {
		return day, "", err
	}
	first := time.Date(day.Year(), day.Month()+time.Month(steps), 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	out := first.AddDate(0, 0, min(day.Day(), last)-1)
	note := ""
	if last < day.Day() {
		note = fmt.Sprintf("%s %d has only %d days, so the last one is taken.", first.Month(), first.Year(), last)
	}
	return out, note, inRange(out)
}

func isWorkday(day time.Time) bool {
	return day.Weekday() != time.Saturday && day.Weekday() != time.Sunday
}

const workdayNote = "Working days are Monday to Friday; holidays are not considered."

// addWorkdays steps over weekends. The start day does not count; from a
// weekend the first step leads to the next working day.
func addWorkdays(day time.Time, n *big.Rat) (time.Time, string, error) {
	steps, err := wholeSteps(n, "working days")
	if err != nil {
		return day, "", err
	}
	step := 1
	if steps < 0 {
		step, steps = -1, -steps
	}
	// Every five working days are one week, wherever they start; the rest is
	// walked. This keeps the cost independent of the number typed.
	weeks, rest := steps/5, steps%5
	if steps > 0 && rest == 0 {
		weeks, rest = weeks-1, 5 // walk the last week, to end on a working day
	}
	day = day.AddDate(0, 0, 7*weeks*step)
	for rest > 0 {
		day = day.AddDate(0, 0, step)
		if isWorkday(day) {
			rest--
		}
	}
	return day, workdayNote, inRange(day)
}

// workdaysBetween counts the working days after a, up to and including b, for
// a not after b; so it inverts addWorkdays.
func workdaysBetween(a, b time.Time) int {
	days := daysBetween(a, b)
	n := days / 7 * 5
	for d := a.AddDate(0, 0, days/7*7); d.Before(b); {
		d = d.AddDate(0, 0, 1)
		if isWorkday(d) {
			n++
		}
	}
	return n
}

func daysBetween(a, b time.Time) int {
	// Not b.Sub(a): a Duration holds only 292 years.
	return int((b.Unix() - a.Unix()) / 86400)
}

// between computes the distance from a to b for dates, clock times and plain
// quantities.
func between(n *node, a, b value) (value, error) {
	switch {
	case a.kind == kindDate && b.kind == kindDate:
		return betweenDates(n, a.day, b.day)
	case a.kind == kindClock && b.kind == kindClock:
		seconds := new(big.Rat).Sub(b.num, a.num)
		note := ""
		if seconds.Sign() < 0 {
			seconds.Add(seconds, daySeconds)
			note = "The second time is taken to be on the next day."
		}
		v := value{kind: kindNumber, num: seconds, unit: secondUnit, note: note}
		if n.unit == nil {
			return splitValue(v, []target{{unit: mustUnit("h")}, {unit: mustUnit("min")}})
		}
		return convert(v, target{unit: n.unit})
	case a.kind == kindNumber && b.kind == kindNumber && !n.keepSign:
		v, err := add(a, b, -1)
		if err != nil {
			return v, err
		}
		v.num = new(big.Rat).Abs(v.num)
		if n.unit != nil {
			return convert(v, target{unit: n.unit})
		}
		return v, nil
	}
	return value{}, fault.New(fault.Invalid, "The distance between %s and %s is not defined. Use two dates or two clock times, for example: %s",
		a.describe(), b.describe(), exampleBetween)
}

var secondUnit = mustUnit("s")

func mustUnit(name string) unit {
	u, ok := lookupUnit(name)
	if !ok {
		panic("calc: no unit " + name) // programmer error
	}
	return u
}

func betweenDates(n *node, a, b time.Time) (value, error) {
	days := daysBetween(a, b)
	past := days < 0
	if past {
		a, b, days = b, a, -days
	}
	note := ""
	if past && n.keepSign {
		note = "That day is on the other side of today, so this counts backwards."
	}
	u := n.unit
	if u == nil {
		u = mustUnit("days")
	}
	v := value{kind: kindNumber, num: big.NewRat(int64(days), 1), unit: mustUnit("days"), note: note}
	switch {
	case u.dim() == dimWorkday:
		v.num, v.unit = big.NewRat(int64(workdaysBetween(a, b)), 1), u
		v.note = strings.TrimSpace(note + " Counted after " + a.Format(dayLayout) + " up to and including " + b.Format(dayLayout) + ". " + workdayNote)
		return v, nil
	case u.isCalendar():
		return calendarSpan(a, b, u, note), nil
	case len(u) == 1 && u[0].def.symbol == "week" && days%7 != 0:
		note = strings.TrimSpace(note + " " + count(days, "day") + " in all.")
		v, err := splitValue(v, []target{{unit: u}, {unit: mustUnit("days")}})
		v.note = note
		return v, err
	}
	v, err := convert(v, target{unit: u})
	return v, err
}

// calendarSpan counts whole years or months by the calendar, then days.
func calendarSpan(a, b time.Time, u unit, note string) value {
	m := (b.Year()-a.Year())*12 + int(b.Month()) - int(a.Month())
	reach := func(m int) time.Time {
		d, _, _ := addMonths(a, big.NewRat(int64(m), 1)) // within [a, b], so never out of range
		return d
	}
	if reach(m).After(b) {
		m--
	}
	rest := daysBetween(reach(m), b)
	var parts []string
	if u[0].def.symbol != "month" && m >= 12 {
		parts = append(parts, count(m/12, "year"))
		m %= 12
	}
	if m > 0 {
		parts = append(parts, count(m, "month"))
	}
	if rest > 0 || len(parts) == 0 {
		parts = append(parts, count(rest, "day"))
	}
	total := count(daysBetween(a, b), "day") + " in all."
	return value{kind: kindText, text: strings.Join(parts, " "), note: strings.TrimSpace(note + " " + total)}
}

func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

package calc

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
)

const (
	maxYear = 9999
	// maxSteps bounds the days, months or working days that are added at once. Longer steps leave the
	// calendar in any case, and fail before they are added.
	maxSteps    = 366 * maxYear
	workdayNote = "Working days are Monday to Friday; holidays are not considered."
)

var (
	daySeconds   = big.NewRat(86400, 1)
	monthSeconds = big.NewRat(2629746, 1)

	monthNames = map[string]time.Month{
		"january": 1, "jan": 1, "february": 2, "feb": 2, "march": 3, "mar": 3, "april": 4, "apr": 4,
		"may": 5, "june": 6, "jun": 6,
		"july": 7, "jul": 7, "august": 8, "aug": 8, "september": 9, "sep": 9, "sept": 9, "october": 10, "oct": 10,
		"november": 11, "nov": 11, "december": 12, "dec": 12,
	}
)

// calendarDay returns the day of t at midnight UTC, so that the distance of two days is whole days in
// every zone.
func calendarDay(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

func makeDay(year int, month time.Month, day int) (time.Time, error) {
	t := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	if t.Day() != day || t.Month() != month || year < 1 {
		return t, refuse(exampleDate, "There is no date %04d-%02d-%02d.", year, month, day)
	}
	return t, nil
}

func parseDay(year, month, day string) (time.Time, error) {
	y, _ := strconv.Atoi(year)
	m, _ := strconv.Atoi(month)
	d, _ := strconv.Atoi(day)
	return makeDay(y, time.Month(m), d)
}

func parseClock(match []string) (*big.Rat, error) {
	h, _ := strconv.Atoi(match[1])
	m, _ := strconv.Atoi(match[2])
	s, _ := strconv.Atoi(match[3])
	if h > 24 || m > 59 || s > 59 || h == 24 && m+s > 0 {
		return nil, refuse("09:30 + 8 h", "There is no clock time %s.", match[0])
	}
	return big.NewRat(int64(h*3600+m*60+s), 1), nil
}

func formatClock(seconds *big.Rat) string {
	n := floor(seconds).Int64()
	s := fmt.Sprintf("%02d:%02d", n/3600, n/60%60)
	if n%60 != 0 {
		s += fmt.Sprintf(":%02d", n%60)
	}
	return s
}

// addToDate adds sign times each quantity of span, in the order typed, because months and days do not
// commute. The error is an Invalid fault.
func addToDate(day time.Time, span value, sign int) (value, error) {
	parts := span.parts
	if len(parts) == 0 {
		parts = []value{span}
	}
	var notes []string
	for _, q := range parts {
		if q.kind != number || q.unit == nil || q.unit.dim != duration && q.unit.dim != workdays {
			return value{}, refuse(
				exampleDate,
				"To a date a time is added, in days, weeks, months or years, not %s.",
				q.describe(),
			)
		}
		count := new(big.Rat).Mul(q.num, q.unit.factor)
		switch {
		case q.unit.isMonths():
			count.Quo(count, monthSeconds)
		case q.unit.dim == duration:
			count.Quo(count, daySeconds)
		}
		if !count.IsInt() {
			return value{}, refuse(exampleDate, "A date moves by whole days and months only.")
		}
		if count.Num().CmpAbs(big.NewInt(maxSteps)) > 0 {
			return value{}, errDateRange()
		}
		n, note := int(count.Num().Int64())*sign, ""
		switch {
		case q.unit.isMonths():
			day, note = addMonths(day, n)
		case q.unit.dim == workdays:
			day, note = addWorkdays(day, n), workdayNote
		default:
			day = day.AddDate(0, 0, n)
		}
		if day.Year() < 1 || day.Year() > maxYear {
			return value{}, errDateRange()
		}
		if note != "" {
			notes = append(notes, note)
		}
	}
	return value{kind: date, day: day, note: strings.Join(notes, " ")}, nil
}

func errDateRange() error {
	return refuse(exampleDate, "The date would fall outside the years 1 to %d.", maxYear)
}

// addMonths adds n months and keeps the day of the month, or takes the month's last day; the text notes
// that. time.AddDate would continue into the next month instead.
func addMonths(day time.Time, n int) (time.Time, string) {
	first := time.Date(day.Year(), day.Month()+time.Month(n), 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1)
	if last.Day() < day.Day() {
		return last, fmt.Sprintf(
			"%s %d has only %d days, so the last one is taken.",
			first.Month(),
			first.Year(),
			last.Day(),
		)
	}
	return first.AddDate(0, 0, day.Day()-1), ""
}

func isWorkday(day time.Time) bool {
	return day.Weekday() != time.Saturday && day.Weekday() != time.Sunday
}

// addWorkdays adds n working days, without weekends. Whole weeks are added at once, so that the cost
// does not depend on n.
func addWorkdays(day time.Time, n int) time.Time {
	step := 1
	if n < 0 {
		step, n = -1, -n
	}
	weeks, rest := n/5, n%5
	if n > 0 && rest == 0 {
		weeks, rest = weeks-1, 5 // Step through the last week, to end on a working day.
	}
	for day = day.AddDate(0, 0, 7*weeks*step); rest > 0; {
		if day = day.AddDate(0, 0, step); isWorkday(day) {
			rest--
		}
	}
	return day
}

// countWorkdays counts the working days after a, up to and including b; weekends are Saturday and
// Sunday.
func countWorkdays(a, b time.Time) int {
	weeks := countDays(a, b) / 7
	n := weeks * 5
	for d := a.AddDate(0, 0, weeks*7); d.Before(b); {
		if d = d.AddDate(0, 0, 1); isWorkday(d) {
			n++
		}
	}
	return n
}

// countDays returns the days from a to b. It does not use b.Sub(a), because a Duration holds only 292
// years.
func countDays(a, b time.Time) int { return int((b.Unix() - a.Unix()) / 86400) }

// addToClock adds a span to a clock time, modulo one day; a note says when the result is on another day.
func addToClock(c, span value, sign int) (value, error) {
	if span.unit == nil {
		return value{}, refuse(
			"09:30 + 8 h",
			"To a clock time a time is added, in hours or minutes, not %s.",
			span.describe(),
		)
	}
	span, err := convertTo(span, units["s"])
	if err != nil {
		return value{}, err
	}
	at := new(big.Rat).Add(c.num, new(big.Rat).Mul(span.num, big.NewRat(int64(sign), 1)))
	days := floor(new(big.Rat).Quo(at, daySeconds))
	out := value{kind: clock, num: at.Sub(at, new(big.Rat).Mul(new(big.Rat).SetInt(days), daySeconds))}
	if days.Sign() != 0 {
		out.note = "That is on another day."
	}
	return out, nil
}

// measureDistance returns the distance from a to b, in u or, with u nil, in a usual unit. keepSign keeps
// a negative distance, for dates counted from today.
func measureDistance(a, b value, u *unit, keepSign bool) (value, error) {
	switch {
	case a.kind == date && b.kind == date:
		return measureDates(a.day, b.day, u, keepSign)
	case a.kind == clock && b.kind == clock:
		v := value{num: new(big.Rat).Sub(b.num, a.num), unit: units["s"]}
		if v.num.Sign() < 0 {
			v.num.Add(v.num, daySeconds)
			v.note = "The second time is taken to be on the next day."
		}
		if u == nil {
			return convertToUnits(v, []*unit{units["h"], units["min"]})
		}
		return convertTo(v, u)
	case a.kind != number || b.kind != number:
		return value{}, refuse(
			"days between 2026-01-01 and 2026-12-25",
			"There is no distance between %s and %s.",
			a.describe(),
			b.describe(),
		)
	}
	v, err := addValues(b, a, -1)
	if err != nil {
		return value{}, err
	}
	if v.num = new(big.Rat).Abs(v.num); u != nil {
		return convertTo(v, u)
	}
	return v, nil
}

func measureDates(a, b time.Time, u *unit, keepSign bool) (value, error) {
	sign := int64(1)
	if b.Before(a) {
		a, b = b, a
		if keepSign {
			sign = -1
		}
	}
	days := value{num: big.NewRat(sign*int64(countDays(a, b)), 1), unit: units["day"]}
	switch {
	case u == nil:
		return days, nil
	case u.dim == workdays:
		return value{num: big.NewRat(sign*int64(countWorkdays(a, b)), 1), unit: u, note: workdayNote}, nil
	case u.isMonths():
		months := (b.Year()-a.Year())*12 + int(b.Month()-a.Month())
		from, _ := addMonths(a, months)
		if from.After(b) {
			months--
			from, _ = addMonths(a, months)
		}
		list := []value{
			{num: big.NewRat(int64(months), 1), unit: units["month"]},
			{num: big.NewRat(int64(countDays(from, b)), 1), unit: units["day"]},
		}
		if u == units["year"] {
			list[0].num.SetInt64(int64(months % 12))
			list = append([]value{{num: big.NewRat(int64(months/12), 1), unit: u}}, list...)
		}
		return joinQuantities(list, sign < 0), nil
	case u == units["week"]:
		return convertToUnits(days, []*unit{u, units["day"]})
	}
	return convertTo(days, u)
}

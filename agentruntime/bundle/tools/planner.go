package tools

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

const plannerHelp = notUnderstood + "Send one of these:\n\n" +
	"- `deadline 2027-03-01: design 5d, build 10d, test 3d` plans backwards in working days, `start 2026-12-01: …` " +
	"forwards\n" +
	"- `every 2 weeks from 2026-12-01, 6 times` lists the dates; also days, workdays, months and years\n\n" +
	"A line `free 2026-12-24, 2026-12-25` names days without work. Saturdays and Sundays are free."

var (
	planLine  = regexp.MustCompile(`(?is)^(deadline|due|end|start|begin)\s+(\d{4}-\d{2}-\d{2})\s*:\s*(.+)$`)
	stepForm  = regexp.MustCompile(`(?i)^(.+?)\s+(\d{1,3})\s*(d|day|days|workdays?|w|weeks?)$`)
	everyLine = regexp.MustCompile(`(?i)^every\s+(?:(\d{1,3}|other|second)\s+)?` +
		`(day|workday|week|month|year)s?\s+from\s+` +
		`(\d{4}-\d{2}-\d{2})[,;]?\s*(?:for\s+)?(\d{1,3})\s*(?:times|x|dates)?[.!]?$`)
	dateForm = regexp.MustCompile(`\d{4}-\d{2}-\d{2}`)
)

const (
	maxSteps = 50
	maxDates = 200
)

// calendar knows the days without work.
type calendar map[string]bool

func (c calendar) works(t time.Time) bool {
	return t.Weekday() != time.Saturday && t.Weekday() != time.Sunday && !c[t.Format(time.DateOnly)]
}

// move goes a number of working days forward, or backward if it is negative, from a day that counts as none of them.
func (c calendar) move(t time.Time, days int) time.Time {
	step := 1
	if days < 0 {
		step, days = -1, -days
	}
	for days > 0 {
		if t = t.AddDate(0, 0, step); c.works(t) {
			days--
		}
	}
	return t
}

func answerPlanner(text string) string {
	free := calendar{}
	var rest []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "free") {
			for _, day := range dateForm.FindAllString(line, maxDates) {
				free[day] = true
			}
			continue
		}
		rest = append(rest, line)
	}
	text = strings.TrimSpace(strings.Join(rest, "\n"))
	if m := planLine.FindStringSubmatch(text); m != nil {
		day, err := time.Parse(time.DateOnly, m[2])
		if err != nil {
			return "I cannot plan that: " + m[2] + " is no date. Write year-month-day."
		}
		word := strings.ToLower(m[1])
		return planSteps(day, word != "start" && word != "begin", m[3], free)
	}
	if m := everyLine.FindStringSubmatch(text); m != nil {
		return listDates(m, free)
	}
	return plannerHelp
}

// step is one part of a plan, in working days.
type step struct {
	name string
	days int
}

func readSteps(text string) (list []step, wrong string) {
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == '\n' || r == ';' }) {
		part = strings.Trim(strings.TrimSpace(part), "-*. ")
		if part == "" {
			continue
		}
		m := stepForm.FindStringSubmatch(part)
		if m == nil {
			return nil, "“" + part + "” has no length. Write for example `" + part + " 3d`."
		}
		days, _ := strconv.Atoi(m[2]) // at most three digits
		if strings.HasPrefix(strings.ToLower(m[3]), "w") && !strings.HasPrefix(strings.ToLower(m[3]), "work") {
			days *= 5
		}
		if days == 0 {
			return nil, "“" + part + "” takes no day."
		}
		list = append(list, step{m[1], days})
	}
	if len(list) == 0 || len(list) > maxSteps {
		return nil, "name 1 to " + strconv.Itoa(maxSteps) + " steps."
	}
	return list, ""
}

// planSteps returns the days of steps that follow each other, so that the last ends on day, or the first begins there.
func planSteps(day time.Time, backwards bool, text string, free calendar) string {
	list, wrong := readSteps(text)
	if wrong != "" {
		return "I cannot plan that: " + wrong
	}
	all := 0
	for _, s := range list {
		all += s.days
	}
	begin := free.move(day.AddDate(0, 0, -1), 1) // day itself, or the next working day
	if backwards {
		last := free.move(day.AddDate(0, 0, 1), -1)
		begin = free.move(last.AddDate(0, 0, 1), -all)
	}
	first, end := begin, begin
	var rows [][]string
	for i, s := range list {
		if i > 0 {
			begin = free.move(end, 1)
		}
		end = free.move(begin.AddDate(0, 0, -1), s.days)
		rows = append(rows, []string{s.name, dayText(begin), dayText(end), countOf(s.days, "day")})
	}
	return writeTable([]string{"step", "begins", "ends", "takes"}, rows) + "\n" + countOf(all, "working day") + ", " +
		"from " +
		dayText(first) + " to " + dayText(end) + "."
}

func dayText(t time.Time) string { return t.Format("Mon 2006-01-02") }

// listDates returns the dates of something that repeats.
func listDates(m []string, free calendar) string {
	every := 1
	switch word := strings.ToLower(m[1]); word {
	case "":
	case "other", "second":
		every = 2
	default:
		every, _ = strconv.Atoi(word) // at most three digits
	}
	first, err := time.Parse(time.DateOnly, m[3])
	times, _ := strconv.Atoi(m[4]) // at most three digits
	if err != nil || every == 0 || times == 0 || times > maxDates {
		return "I cannot list these dates: give a date as year-month-day, and 1 to " + strconv.Itoa(maxDates) + " times."
	}
	var rows [][]string
	for i := range times {
		day := first
		switch strings.ToLower(m[2]) {
		case "day":
			day = first.AddDate(0, 0, i*every)
		case "workday":
			day = free.move(first.AddDate(0, 0, -1), 1+i*every)
		case "week":
			day = first.AddDate(0, 0, 7*i*every)
		case "month":
			day = addMonths(first, i*every)
		case "year":
			day = addMonths(first, 12*i*every)
		}
		note := ""
		if !free.works(day) {
			note = "no working day; the next is " + dayText(free.move(day, 1))
		}
		rows = append(rows, []string{strconv.Itoa(i + 1), dayText(day), note})
	}
	return writeTable([]string{"", "date", "note"}, rows)
}

// addMonths keeps the day of the month, or takes the last one of a shorter month.
func addMonths(t time.Time, months int) time.Time {
	to := t.AddDate(0, months, 0)
	if to.Day() != t.Day() {
		to = to.AddDate(0, 0, -to.Day())
	}
	return to
}

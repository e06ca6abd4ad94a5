package demo

import (
	"fmt"
	"math"
	"regexp"
	"time"

	"agentsite/internal/clock"
)

// writtenDate matches 2026-12-24, 24 December 2026, 24th of Dec. 2026, and December 24, 2026.
var writtenDate = regexp.MustCompile(`(?i)\b([0-9]{4})-([0-9]{2})-([0-9]{2})\b|` +
	`\b([0-9]{1,2})(?:st|nd|rd|th)?(?: of)? (` + monthNames + `)\.?,? ([0-9]{4})\b|` +
	`\b(` + monthNames + `)\.? ([0-9]{1,2})(?:st|nd|rd|th)?,? ([0-9]{4})\b`)

const monthNames = `jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|` +
	`oct(?:ober)?|nov(?:ember)?|dec(?:ember)?`

// findDates returns the first dates in a text, at most n. A day that does not exist is an error.
func findDates(in string, n int) (days []time.Time, err error) {
	for _, m := range writtenDate.FindAllStringSubmatch(in, n) {
		text, layout := m[1]+"-"+m[2]+"-"+m[3], time.DateOnly
		switch {
		case m[5] != "":
			text, layout = m[4]+" "+m[5][:3]+" "+m[6], "2 Jan 2006"
		case m[7] != "":
			text, layout = m[8]+" "+m[7][:3]+" "+m[9], "2 Jan 2006"
		}
		d, err := time.Parse(layout, text)
		if err != nil {
			return nil, sorryf("There is no day %s.", m[0])
		}
		days = append(days, d)
	}
	return days, nil
}

// describeDay describes the day of a date in a text, today without one, or the time between two dates.
func describeDay(in string) (string, error) {
	days, err := findDates(in, 2)
	if err != nil {
		return "", err
	}
	if len(days) == 2 {
		n := int(math.Abs(days[1].Sub(days[0]).Hours() / 24))
		return fmt.Sprintf(
			"**%s** lie between %s and %s: %s and %s.",
			plural(n, "day"),
			days[0].Format("Monday, 2 January 2006"),
			days[1].Format("Monday, 2 January 2006"),
			plural(n/7, "week"),
			plural(n%7, "day"),
		), nil
	}
	today := clock.Now().UTC().Truncate(24 * time.Hour)
	if len(days) == 0 {
		days = append(days, today)
	}
	d := days[0]
	year, week := d.ISOWeek()
	when := "It is today"
	if n := int(d.Sub(today).Hours() / 24); n > 0 {
		when = "It is in " + plural(n, "day")
	} else if n < 0 {
		when = "It was " + plural(-n, "day") + " ago"
	}
	return fmt.Sprintf(
		"**%s** is day %d of its year, in week %d of %d. %s (UTC).",
		d.Format("Monday, 2 January 2006"),
		d.YearDay(),
		week,
		year,
		when,
	), nil
}

// newMoon is a known time of a new moon. synodic is the mean time between two new moons, in days.
var newMoon = time.Date(2000, time.January, 6, 18, 14, 0, 0, time.UTC)

const synodic = 29.530588853

// describeMoon describes the phase of the moon on the day of a date in a text, today without one. Mean phases are used, so it may be wrong by some hours.
func describeMoon(in string) (string, error) {
	at := clock.Now().UTC()
	days, err := findDates(in, 1)
	if err != nil {
		return "", err
	}
	if len(days) > 0 {
		at = days[0].Add(12 * time.Hour)
	}
	age := math.Mod(at.Sub(newMoon).Hours()/24, synodic)
	if age < 0 {
		age += synodic
	}
	lit := (1 - math.Cos(2*math.Pi*age/synodic)) / 2
	phase := []string{"new moon", "waxing crescent", "first quarter", "waxing gibbous", "full moon", "waning gibbous",
		"last quarter", "waning crescent"}[int(age/synodic*8+0.5)%8]
	return fmt.Sprintf(
		"On %s: **%s**, %.0f%% lit. The next full moon is in %.0f days.",
		at.Format("2 January 2006"),
		phase,
		lit*100,
		math.Mod(synodic*1.5-age, synodic),
	), nil
}

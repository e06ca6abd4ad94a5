package pages

import (
	"fmt"
	"strings"
	"time"

	"agentsite/handlers/respond"
	"agentsite/internal/clock"
	"agentsite/templates"
)

// FormatSpan formats a duration in its two largest units, for example "2 days 3 hours".
func FormatSpan(t time.Duration) string {
	days, hours, minutes := int(t.Hours())/24, int(t.Hours())%24, int(t.Minutes())%60
	switch {
	case days > 0:
		return fmt.Sprintf("%d d %d h", days, hours)
	case hours > 0:
		return fmt.Sprintf("%d h %d min", hours, minutes)
	}
	if minutes == 0 {
		return "less than a minute"
	}
	return fmt.Sprintf("%d min", minutes)
}

func FormatCounted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return FormatNumber(int64(n)) + " " + many
}

// FormatBytes formats a size in bytes with a suitable unit.
func FormatBytes(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 1024:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1024), ".0") + " KiB"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/(1<<20)), ".0") + " MiB"
}

// FormatAge formats the age of something in its largest unit.
func FormatAge(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(int(d/time.Second), 1))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d/time.Minute))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d hours", int(d/time.Hour))
	}
	return fmt.Sprintf("%d days", int(d/(24*time.Hour)))
}

// FormatMoment formats a time for people, together with the machine-readable form for the time element.
func FormatMoment(t time.Time) templates.Time {
	if t.IsZero() {
		return templates.Time{}
	}
	t = t.UTC()
	text := t.Format("2 Jan 2006, 15:04")
	if now := clock.Now(); t.Year() == now.Year() {
		text = t.Format("2 Jan, 15:04")
		if t.YearDay() == now.YearDay() {
			text = t.Format("15:04")
		}
	}
	return templates.Time{Text: text, ISO: respond.FormatTime(t)}
}

func FormatLatency(t time.Duration) string {
	switch {
	case t <= 0:
		return ""
	case t < time.Second:
		return fmt.Sprintf("%d ms", max(1, t.Milliseconds()))
	}
	return fmt.Sprintf("%.1f s", t.Seconds())
}

// FormatNumber formats a count with separators between thousands, for people.
func FormatNumber(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

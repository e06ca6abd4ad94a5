package agents

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"agentsite/handlers/pages"
	"agentsite/internal/hub"
	"agentsite/templates"
)

// Sizes of the chart of past contacts in pixels: one bar for each contact, the newest at the right,
// higher for a slower answer.
const (
	historyBars   = 48
	historyStep   = 6 // distance between the left edges of two bars
	historyBar    = 4
	historyHeight = 40
	historyLeast  = 6 // height of the bar for the fastest answer
)

// historyPicture draws the last contacts of list, which is sorted oldest first. It returns nil for an
// empty list.
func historyPicture(list []hub.Contact) *templates.Picture {
	if len(list) == 0 {
		return nil
	}
	list = list[max(0, len(list)-historyBars):]
	p := &templates.Picture{Width: strconv.Itoa(historyBars*historyStep - (historyStep - historyBar)),
		Height: strconv.Itoa(historyHeight),
		From:   pages.FormatMoment(list[0].At), To: pages.FormatMoment(list[len(list)-1].At), Desc: historyWords(list)}
	left := (historyBars - len(list)) * historyStep
	for i, c := range list {
		h := barHeight(c)
		p.AddBar(left+i*historyStep, historyBar, h, historyHeight, string(c.State), contactWords(c))
	}
	return p
}

// barHeight returns the height of a contact's bar. The scale is logarithmic, so that 20 ms and 2 s are
// both visible: 1 ms has the least height, 10 s and a failed contact the full height.
func barHeight(c hub.Contact) int {
	switch {
	case c.State == hub.Unreachable || c.State == hub.WrongProtocol:
		return historyHeight
	case c.State == hub.Unknown:
		return historyLeast
	}
	ms := float64(c.Latency.Milliseconds())
	share := math.Log10(1+ms) / 4
	return historyLeast + int(math.Round(float64(historyHeight-historyLeast)*min(1, share)))
}

func contactWords(c hub.Contact) string {
	text := c.At.UTC().Format("2 Jan, 15:04 UTC") + ": " + stateWords(c.State)
	if l := pages.FormatLatency(c.Latency); l != "" && c.State != hub.Unreachable {
		text += ", " + l
	}
	return text
}

// stateWords returns the name of a liveness state for use in a sentence.
func stateWords(s hub.Live) string { return strings.ReplaceAll(string(s), "_", " ") }

func historyWords(list []hub.Contact) string {
	n := make(map[hub.Live]int)
	for _, c := range list {
		n[c.State]++
	}
	var parts []string
	for _, s := range []hub.Live{hub.Alive, hub.NeedsAuth, hub.WrongProtocol, hub.Unreachable, hub.Unknown} {
		if n[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[s], stateWords(s)))
		}
	}
	last := list[len(list)-1]
	return fmt.Sprintf("%s since %s: %s. The last on %s.", pages.FormatCounted(len(list), "check", "checks"),
		list[0].At.UTC().Format("2 Jan, 15:04 UTC"),
		strings.Join(parts, ", "), contactWords(last))
}

// sinceText returns a sentence about the liveness of an agent, and the time since when it has not
// changed, the zero time if unknown.
func sinceText(list []hub.Contact, now hub.Liveness) (line string, since templates.Time) {
	line = map[hub.Live]string{hub.Alive: "Alive", hub.NeedsAuth: "Answers, but wants a credential",
		hub.WrongProtocol: "Answers, but not as this kind of agent",
		hub.Unreachable:   "Does not answer"}[now.State]
	if line == "" {
		return "Not checked yet", templates.Time{}
	}
	i := len(list)
	for i > 0 && list[i-1].State == now.State {
		i--
	}
	switch {
	case i == len(list):
		return line, templates.Time{}
	case now.State == hub.NeedsAuth || now.State == hub.WrongProtocol:
		line += ","
	}
	if i == 0 && len(list) == hub.MaxHistory {
		return line + " since before", pages.FormatMoment(list[0].At)
	}
	return line + " since", pages.FormatMoment(list[i].At)
}

// uptime returns the share of time within the last span in which an agent was alive. A check's result
// counts until the next check. known is the part of the span that checks cover; if it is 0, share is 0.
func uptime(list []hub.Contact, now time.Time, span time.Duration) (share float64, known time.Duration) {
	var alive time.Duration
	from := now.Add(-span)
	for i, c := range list {
		end := now
		if i+1 < len(list) {
			end = list[i+1].At
		}
		begin := c.At
		if begin.Before(from) {
			begin = from
		}
		if took := end.Sub(begin); took > 0 {
			known += took
			if c.State == hub.Alive {
				alive += took
			}
		}
	}
	if known == 0 {
		return 0, 0
	}
	return float64(alive) / float64(known), known
}

// uptimeTexts returns sentences about the share of the last day and week in which an agent was alive.
func uptimeTexts(list []hub.Contact, now time.Time) []string {
	var out []string
	for _, s := range []struct {
		span time.Duration
		name string
	}{{24 * time.Hour, "24 hours"}, {7 * 24 * time.Hour, "7 days"}} {
		share, known := uptime(list, now, s.span)
		if known < time.Minute {
			return nil
		}
		// One check may be missing at the beginning of the span, so 1/24 less counts as the whole span.
		if known < s.span-s.span/24 {
			return append(out, "Alive "+shareWords(share)+" of the last "+strings.TrimSuffix(agoWords(now.Add(-known),
				now), " ago"))
		}
		out = append(out, "Alive "+shareWords(share)+" of the last "+s.name)
	}
	return out
}

// shareWords formats a share in percent, rounded down so that 100% means all and never almost all.
func shareWords(share float64) string {
	switch {
	case share >= 1:
		return "100%"
	case share <= 0:
		return "0%"
	case share > .99:
		return strconv.FormatFloat(math.Floor(share*1000)/10, 'f', 1, 64) + "%"
	}
	return strconv.Itoa(max(1, int(share*100))) + "%"
}

// agoWords returns the age of a time in words, "" for the zero time.
func agoWords(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	since := now.Sub(t)
	switch {
	case since < time.Minute:
		return "just now"
	case since < time.Hour:
		return pages.FormatCounted(int(since.Minutes()), "minute", "minutes") + " ago"
	case since < 48*time.Hour:
		return pages.FormatCounted(int(since.Hours()), "hour", "hours") + " ago"
	}
	return pages.FormatCounted(int(since.Hours()/24), "day", "days") + " ago"
}

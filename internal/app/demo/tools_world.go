package demo

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"agentsite/internal/clock"
)

var hexColour = regexp.MustCompile(`#?\b([0-9a-fA-F]{6}|[0-9a-fA-F]{3})\b`)

// colours are some that have names of their own (CSS Color 4, section 6.1).
var colours = map[string]uint32{"black": 0, "white": 0xffffff, "red": 0xff0000, "lime": 0xff00, "blue": 0xff, "yellow": 0xffff00, "cyan": 0xffff, "magenta": 0xff00ff, "silver": 0xc0c0c0, "grey": 0x808080, "maroon": 0x800000,
	"olive": 0x808000, "green": 0x8000, "purple": 0x800080, "teal": 0x8080, "navy": 0x80, "orange": 0xffa500, "gold": 0xffd700, "pink": 0xffc0cb, "coral": 0xff7f50, "tomato": 0xff6347, "salmon": 0xfa8072,
	"chocolate": 0xd2691e, "crimson": 0xdc143c, "indigo": 0x4b0082, "ivory": 0xfffff0, "khaki": 0xf0e68c, "lavender": 0xe6e6fa, "orchid": 0xda70d6, "plum": 0xdda0dd, "sienna": 0xa0522d, "tan": 0xd2b48c,
	"turquoise": 0x40e0d0, "violet": 0xee82ee, "wheat": 0xf5deb3, "sky blue": 0x87ceeb, "steel blue": 0x4682b4, "slate grey": 0x708090, "sea green": 0x2e8b57, "forest green": 0x228b22, "royal blue": 0x4169e1, "midnight blue": 0x191970}

// nameColour names a colour, and rates how well text reads on it.
func nameColour(in string) (string, error) {
	m := hexColour.FindStringSubmatch(in)
	var rgb uint32
	if m == nil {
		name := strings.ToLower(strings.TrimSpace(in))
		v, ok := colours[strings.ReplaceAll(name, "gray", "grey")]
		if !ok {
			return "", sorryf("Send me a colour like #2e8b57, or the name of one.")
		}
		rgb = v
	} else {
		s := m[1]
		if len(s) == 3 {
			s = string([]byte{s[0], s[0], s[1], s[1], s[2], s[2]})
		}
		v, err := strconv.ParseUint(s, 16, 32)
		if err != nil {
			return "", errEmpty
		}
		rgb = uint32(v)
	}
	best, least := "", math.Inf(1)
	for name, c := range colours {
		if d := apart(rgb, c); d < least || d == least && name < best {
			best, least = name, d
		}
	}
	how := "close to"
	switch {
	case least == 0:
		how = "exactly"
	case least > 60:
		how = "somewhere near"
	}
	light := luminance(rgb)
	return fmt.Sprintf("`#%06x` is %s **%s**: red %d, green %d, blue %d.\n\nText on it reads best in %s, with a contrast of %.1f : 1.", rgb, how, best, rgb>>16, rgb>>8&255, rgb&255,
		map[bool]string{true: "black", false: "white"}[light > 0.179], math.Max((light+0.05)/0.05, 1.05/(light+0.05))), nil
}

// apart is how different two colours look, roughly.
func apart(a, b uint32) float64 {
	dr, dg, db := float64(a>>16)-float64(b>>16), float64(a>>8&255)-float64(b>>8&255), float64(a&255)-float64(b&255)
	return math.Sqrt(0.3*dr*dr + 0.59*dg*dg + 0.11*db*db)
}

// luminance is WCAG's relative luminance.
func luminance(rgb uint32) float64 {
	lin := func(v uint32) float64 {
		f := float64(v&255) / 255
		if f <= 0.04045 {
			return f / 12.92
		}
		return math.Pow((f+0.055)/1.055, 2.4)
	}
	return 0.2126*lin(rgb>>16) + 0.7152*lin(rgb>>8) + 0.0722*lin(rgb)
}

// units by name, each with its size in the base unit of its kind.
var units = map[string]struct {
	kind string
	size float64
}{"mm": {"length", 0.001}, "cm": {"length", 0.01}, "m": {"length", 1}, "km": {"length", 1000}, "in": {"length", 0.0254}, "inch": {"length", 0.0254}, "ft": {"length", 0.3048}, "foot": {"length", 0.3048}, "feet": {"length", 0.3048},
	"yd": {"length", 0.9144}, "mi": {"length", 1609.344}, "mile": {"length", 1609.344}, "nmi": {"length", 1852}, "g": {"mass", 0.001}, "kg": {"mass", 1}, "t": {"mass", 1000}, "oz": {"mass", 0.028349523125}, "lb": {"mass", 0.45359237}, "pound": {"mass", 0.45359237},
	"ml": {"volume", 0.001}, "l": {"volume", 1}, "litre": {"volume", 1}, "liter": {"volume", 1}, "gal": {"volume", 3.785411784}, "gallon": {"volume", 3.785411784}, "pint": {"volume", 0.473176473}, "cup": {"volume", 0.2365882365},
	"s": {"time", 1}, "min": {"time", 60}, "minute": {"time", 60}, "h": {"time", 3600}, "hour": {"time", 3600}, "day": {"time", 86400}, "week": {"time", 604800}, "kmh": {"speed", 1 / 3.6}, "km/h": {"speed", 1 / 3.6}, "mph": {"speed", 0.44704},
	"m/s": {"speed", 1}, "knot": {"speed", 1852.0 / 3600}, "kb": {"data", 1e3}, "mb": {"data", 1e6}, "gb": {"data", 1e9}, "kib": {"data", 1 << 10}, "mib": {"data", 1 << 20}, "gib": {"data", 1 << 30}}

var conversion = regexp.MustCompile(`(?i)(-?[0-9]+(?:\.[0-9]+)?)\s*°?\s*([a-z/]+)\s+(?:in|to|as|into)\s+°?([a-z/]+)`)

// convertUnits converts lengths, masses, volumes, times, speeds and temperatures.
func convertUnits(in string) (string, error) {
	m := conversion.FindStringSubmatch(in)
	if m == nil {
		return "", sorryf("Ask me like this: 26.2 miles in km, or 72 F in C.")
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return "", errEmpty
	}
	from, to := strings.ToLower(m[2]), strings.ToLower(m[3])
	if k, ok := kelvin(v, from); ok {
		for scale, back := range map[string]float64{"c": k - 273.15, "f": (k-273.15)*9/5 + 32, "k": k} {
			if strings.HasPrefix(to, scale) && k >= 0 {
				return fmt.Sprintf("%s °%s = **%s %s**", short(v), strings.ToUpper(from[:1]), short(back), map[string]string{"c": "°C", "f": "°F", "k": "K"}[scale]), nil
			}
		}
	}
	a, aok := units[from]
	if !aok {
		a, aok = units[strings.TrimSuffix(from, "s")]
	}
	b, bok := units[to]
	if !bok {
		b, bok = units[strings.TrimSuffix(to, "s")]
	}
	switch {
	case !aok || !bok:
		return "", sorryf("I do not know both of %s and %s.", from, to)
	case a.kind != b.kind:
		return "", sorryf("%s is a %s and %s is a %s.", from, a.kind, to, b.kind)
	}
	return fmt.Sprintf("%s %s = **%s %s**", short(v), from, short(v*a.size/b.size), to), nil
}

// kelvin reads a temperature. A scale is one letter or its name.
func kelvin(v float64, scale string) (float64, bool) {
	switch scale {
	case "c", "celsius":
		return v + 273.15, true
	case "f", "fahrenheit":
		return (v-32)*5/9 + 273.15, true
	case "k", "kelvin":
		return v, true
	}
	return 0, false
}

var isoDate = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}`)

// dates describes a day, or the time between two days.
func dates(in string) (string, error) {
	var days []time.Time
	for _, s := range isoDate.FindAllString(in, 2) {
		d, err := time.Parse(time.DateOnly, s)
		if err != nil {
			return "", sorryf("There is no day %s.", s)
		}
		days = append(days, d)
	}
	if len(days) == 2 {
		n := int(math.Abs(days[1].Sub(days[0]).Hours() / 24))
		return fmt.Sprintf("**%s** lie between %s and %s: %s and %s.", plural(n, "day"), days[0].Format("Monday, 2 January 2006"), days[1].Format("Monday, 2 January 2006"), plural(n/7, "week"), plural(n%7, "day")), nil
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
	return fmt.Sprintf("**%s** is day %d of its year, in week %d of %d. %s (UTC).", d.Format("Monday, 2 January 2006"), d.YearDay(), week, year, when), nil
}

// newMoon is one that is known; synodic is the mean time between two.
var newMoon = time.Date(2000, time.January, 6, 18, 14, 0, 0, time.UTC)

const synodic = 29.530588853

// moon says how the moon looks on a day, to within some hours.
func moon(in string) (string, error) {
	at := clock.Now().UTC()
	if s := isoDate.FindString(in); s != "" {
		d, err := time.Parse(time.DateOnly, s)
		if err != nil {
			return "", sorryf("There is no day %s.", s)
		}
		at = d.Add(12 * time.Hour)
	}
	age := math.Mod(at.Sub(newMoon).Hours()/24, synodic)
	if age < 0 {
		age += synodic
	}
	lit := (1 - math.Cos(2*math.Pi*age/synodic)) / 2
	phase := []string{"new moon", "waxing crescent", "first quarter", "waxing gibbous", "full moon", "waning gibbous", "last quarter", "waning crescent"}[int(age/synodic*8+0.5)%8]
	return fmt.Sprintf("On %s: **%s**, %.0f%% lit. The next full moon is in %.0f days.", at.Format("2 January 2006"), phase, lit*100, math.Mod(synodic*1.5-age, synodic)), nil
}

var bookNumber = regexp.MustCompile(`[0-9][0-9 -]{6,}[0-9Xx]`)

// checkDigits tests numbers that carry a check digit.
func checkDigits(in string) (string, error) {
	s := strings.ToUpper(strings.NewReplacer(" ", "", "-", "").Replace(bookNumber.FindString(in)))
	if s == "" || strings.Contains(s[:len(s)-1], "X") {
		return "", sorryf("Send me the number of a book or a card.")
	}
	say := func(what string, good bool) (string, error) {
		if good {
			return fmt.Sprintf("%s is **right** as %s.", s, what), nil
		}
		return fmt.Sprintf("%s is **wrong** as %s: a digit is mistyped or two are swapped.", s, what), nil
	}
	sum := 0
	switch {
	case len(s) == 10:
		for i, r := range s {
			d := int(r - '0')
			if r == 'X' {
				d = 10
			}
			sum += (10 - i) * d
		}
		return say("an ISBN-10", sum%11 == 0)
	case strings.HasSuffix(s, "X"):
		return "", sorryf("Only a number of ten digits ends in X.")
	case len(s) == 13 && (s[:3] == "978" || s[:3] == "979"):
		for i, r := range s {
			sum += int(r-'0') * (1 + i%2*2)
		}
		return say("an ISBN-13", sum%10 == 0)
	}
	for i := range s {
		d := int(s[len(s)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return say("a card number (Luhn)", sum%10 == 0)
}

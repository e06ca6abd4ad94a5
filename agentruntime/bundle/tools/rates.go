package tools

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const ratesHelp = notUnderstood + "Send an amount with a currency or unit, such as `100 EUR in USD`, `250 DKK` for a " +
	"table, `12 lb` for all units of weight, or `100 EUR in USD at 1.12` to use your own rate. `rates` lists the currencies."

// ratesNote stands below every conversion of money.
const ratesNote = "Reference rates of the European Central Bank of " + RatesDay +
	". They do not change until this portal is updated; banks use others."

var (
	asked = regexp.MustCompile(`(?i)(-?[\d][\d.,' ]*|)\s*([a-zA-Z€$£¥²³/]+)` +
		`(?:\s+(?:in|to|as|into|=)\s+([a-zA-Z€$£¥²³/]+))?(?:\s+at\s+([\d.]+))?\s*[?.!]*$`)
	signs = map[string]string{"€": "EUR", "$": "USD", "£": "GBP", "¥": "JPY", "EURO": "EUR", "EUROS": "EUR",
		"DOLLAR": "USD", "DOLLARS": "USD", "POUND": "GBP", "YEN": "JPY", "FRANCS": "CHF"}
)

// measures are the units of each measure, with their size in the first one.
var measures = []struct {
	name  string
	units []unit
}{
	{"length", []unit{{"m", 1}, {"mm", 0.001}, {"cm", 0.01}, {"km", 1000}, {"in", 0.0254}, {"ft", 0.3048},
		{"yd", 0.9144}, {"mi", 1609.344}, {"nmi", 1852}}},
	{"weight", []unit{{"kg", 1}, {"g", 0.001}, {"mg", 1e-6}, {"t", 1000}, {"oz", 0.028349523125}, {"lb", 0.45359237},
		{"st", 6.35029318}}},
	{"volume", []unit{{"l", 1}, {"ml", 0.001}, {"m³", 1000}, {"tsp", 0.00492892159375}, {"tbsp", 0.01478676478125},
		{"cup", 0.2365882365}, {"pt", 0.473176473}, {"gal", 3.785411784}}},
	{"area", []unit{{"m²", 1}, {"cm²", 0.0001}, {"km²", 1e6}, {"ha", 10_000}, {"ft²", 0.09290304},
		{"acre", 4046.8564224}, {"mi²", 2589988.110336}}},
	{"speed", []unit{{"m/s", 1}, {"km/h", 1 / 3.6}, {"mph", 0.44704}, {"kn", 1852.0 / 3600}}},
	{"data", []unit{{"MB", 1e6}, {"kB", 1000}, {"GB", 1e9}, {"TB", 1e12}, {"KiB", 1 << 10}, {"MiB", 1 << 20},
		{"GiB", 1 << 30}}},
}

type unit struct {
	name string
	size float64
}

func answerRates(text string) string {
	text = strings.TrimSpace(text)
	word := strings.ToLower(strings.Trim(text, "?.! "))
	if word == "rates" || word == "currencies" || word == "rate" {
		return rateTable(1, "EUR")
	}
	for sign, code := range signs { // €100 is 100 EUR
		if rest, ok := strings.CutPrefix(text, sign); ok && len(sign) < 4 {
			amount, more, _ := strings.Cut(strings.TrimSpace(rest), " ")
			text = amount + " " + code + " " + more
			break
		}
	}
	m := asked.FindStringSubmatch(text)
	if m == nil {
		return ratesHelp
	}
	amount, err := strconv.ParseFloat(strings.NewReplacer(",", "", "'", "", " ", "").Replace(cmp.Or(m[1], "1")), 64)
	if err != nil {
		return ratesHelp
	}
	from, to := currencyOf(m[2]), currencyOf(m[3])
	switch {
	case rates[from] == 0:
		return convertUnits(amount, m[2], m[3])
	case m[3] == "":
		return rateTable(amount, from)
	case m[4] != "":
		rate, err := strconv.ParseFloat(m[4], 64)
		if err != nil || rates[to] == 0 && len(to) != 3 {
			return ratesHelp
		}
		return formatMoney(amount) + " " + from + " = **" + formatMoney(amount*rate) + " " + to + "**, at your rate " +
			"of " +
			m[4] + "."
	case rates[to] == 0:
		return "I cannot convert that: there is no rate for " + to + ". Give your own, such as `" +
			formatMoney(amount) + " " + from + " in " + to +
			" at 1.5`. `rates` lists the currencies that are known."
	}
	rate := rates[to] / rates[from]
	return formatMoney(amount) + " " + from + " = **" + formatMoney(amount*rate) + " " + to + "**, at " +
		strconv.FormatFloat(rate, 'g', 6, 64) + ".\n\n" + ratesNote
}

// currencyOf returns the code of a currency for a sign, a name or a code.
func currencyOf(s string) string {
	s = strings.ToUpper(s)
	return cmp.Or(signs[s], s)
}

// rateTable returns an amount in all currencies.
func rateTable(amount float64, from string) string {
	var codes []string
	for c := range rates {
		if c != from {
			codes = append(codes, c)
		}
	}
	slices.Sort(codes)
	var rows [][]string
	for _, c := range codes {
		rows = append(rows, []string{c, formatMoney(amount * rates[c] / rates[from])})
	}
	return writeTable([]string{"currency", formatMoney(amount) + " " + from}, rows) + "\n" + ratesNote
}

// convertUnits returns an amount of a unit in another one, or in all units of the measure.
func convertUnits(amount float64, from, to string) string {
	for _, m := range measures {
		at := slices.IndexFunc(m.units, func(u unit) bool { return unitNamed(u.name, from) })
		if at < 0 {
			continue
		}
		base := amount * m.units[at].size
		if to != "" {
			other := slices.IndexFunc(m.units, func(u unit) bool { return unitNamed(u.name, to) })
			if other < 0 {
				return "I cannot convert that: " + to + " is no unit of " + m.name + " that is known here."
			}
			u := m.units[other]
			return formatNumber(amount) + " " + m.units[at].name + " = **" + shortNumber(base/u.size) + " " +
				u.name + "**"
		}
		var rows [][]string
		for _, u := range m.units {
			if u.name != m.units[at].name {
				rows = append(rows, []string{u.name, shortNumber(base / u.size)})
			}
		}
		return writeTable([]string{m.name, formatNumber(amount) + " " + m.units[at].name}, rows)
	}
	return ratesHelp
}

// unitNamed reports whether a text means a unit. Its plural does, and 2 and 3 stand for raised digits.
func unitNamed(name, text string) bool {
	return strings.EqualFold(name, text) || strings.EqualFold(name+"s", text)
}

// shortNumber writes a number with seven digits at most.
func shortNumber(v float64) string {
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 7, 64), 64)
	if err != nil {
		return formatNumber(v)
	}
	return formatNumber(short)
}

// formatMoney writes an amount with two decimals, or more if it is small.
func formatMoney(v float64) string {
	if v > -1 && v < 1 && v != 0 {
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	s := strconv.FormatFloat(v, 'f', 2, 64)
	return strings.TrimSuffix(s, ".00")
}

package demo

import (
	"encoding/csv"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	numeral = regexp.MustCompile(`(?i)\b[MDCLXVI]+\b`)
	integer = regexp.MustCompile(`[0-9][0-9_,' ]*[0-9]|[0-9]`)
	decimal = regexp.MustCompile(`-?[0-9]+(?:\.[0-9]+)?`)
)

// wholeIn is the first whole number in a text.
func wholeIn(in string) (uint64, bool) {
	s := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, integer.FindString(in))
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

var romans = []struct {
	value uint64
	text  string
}{{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"}, {40, "XL"}, {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"}}

func roman(n uint64) string {
	var b strings.Builder
	for _, r := range romans {
		for ; n >= r.value; n -= r.value {
			b.WriteString(r.text)
		}
	}
	return b.String()
}

// romanNumerals turns numbers into Roman numerals and back.
func romanNumerals(in string) (string, error) {
	if n, ok := wholeIn(in); ok {
		if n < 1 || n > 3999 {
			return "", sorryf("The Romans wrote 1 to 3999 with these letters.")
		}
		return fmt.Sprintf("%d is **%s**.", n, roman(n)), nil
	}
	// “I” is more often a word than a number: the longest one counts.
	var best string
	for _, s := range numeral.FindAllString(in, -1) {
		if len(s) > len(best) {
			best = s
		}
	}
	var n uint64
	rest := strings.ToUpper(best)
	for _, r := range romans {
		for strings.HasPrefix(rest, r.text) {
			n, rest = n+r.value, rest[len(r.text):]
		}
	}
	if best == "" || rest != "" || n > 3999 || roman(n) != strings.ToUpper(best) {
		return "", sorryf("Send me a number from 1 to 3999, or a Roman one like MCMXCIV.")
	}
	return fmt.Sprintf("%s is **%d**.", strings.ToUpper(best), n), nil
}

// maxFactored keeps a factorization below a few milliseconds.
const maxFactored = 1_000_000_000_000

// primeFactors takes a number apart.
func primeFactors(in string) (string, error) {
	n, ok := wholeIn(in)
	if !ok || n < 2 || n > maxFactored {
		return "", sorryf("Send me a whole number from 2 to 1 000 000 000 000.")
	}
	var list []string
	rest := n
	for p := uint64(2); p*p <= rest; p++ {
		k := 0
		for ; rest%p == 0; rest /= p {
			k++
		}
		switch {
		case k == 1:
			list = append(list, fmt.Sprint(p))
		case k > 1:
			list = append(list, fmt.Sprintf("%d^%d", p, k))
		}
	}
	if rest == n {
		return fmt.Sprintf("%d is **prime**.", n), nil
	}
	if rest > 1 {
		list = append(list, fmt.Sprint(rest))
	}
	return fmt.Sprintf("%d = **%s**", n, strings.Join(list, " × ")), nil
}

// bases writes a number as people and machines do.
func bases(in string) (string, error) {
	for _, w := range strings.Fields(in) {
		n, ok := new(big.Int).SetString(strings.Trim(w, ",.?!`"), 0)
		if !ok || n.BitLen() > 256 {
			continue
		}
		return fmt.Sprintf("| base | |\n|---|---|\n| 10 | `%d` |\n| 16 | `%#x` |\n| 8 | `%#o` |\n| 2 | `%#b` |\n\nIt needs %s.", n, n, n, n, plural(max(n.BitLen(), 1), "bit")), nil
	}
	return "", sorryf("Send me a number, like 42, 0xff or 0b1011.")
}

var (
	ones = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
	tens = strings.Fields("- - twenty thirty forty fifty sixty seventy eighty ninety")
)

func spelled(n uint64) string {
	for _, u := range []struct {
		size uint64
		name string
	}{{1e15, "quadrillion"}, {1e12, "trillion"}, {1e9, "billion"}, {1e6, "million"}, {1000, "thousand"}} {
		if n >= u.size {
			s := spelled(n/u.size) + " " + u.name
			switch rest := n % u.size; {
			case rest >= 100:
				s += " " + spelled(rest)
			case rest > 0:
				s += " and " + spelled(rest)
			}
			return s
		}
	}
	switch {
	case n < 20:
		return ones[n]
	case n < 100 && n%10 == 0:
		return tens[n/10]
	case n < 100:
		return tens[n/10] + "-" + ones[n%10]
	case n%100 == 0:
		return ones[n/100] + " hundred"
	}
	return ones[n/100] + " hundred and " + spelled(n%100)
}

// spellNumber writes a number in English words.
func spellNumber(in string) (string, error) {
	n, ok := wholeIn(in)
	if !ok || n >= 1e18 {
		return "", sorryf("Send me a whole number of at most 18 digits.")
	}
	return title(spelled(n)) + ".", nil
}

// loan computes the monthly cost of a loan: amount, rate, years.
func loan(in string) (string, error) {
	var v []float64
	for _, s := range decimal.FindAllString(strings.ReplaceAll(in, ",", ""), -1) {
		f, err := strconv.ParseFloat(s, 64)
		if err == nil {
			v = append(v, f)
		}
	}
	if len(v) < 3 || v[0] <= 0 || v[0] > 1e12 || v[1] < 0 || v[1] > 100 || v[2] <= 0 || v[2] > 100 {
		return "", sorryf("Send me amount, yearly interest and years, like: 250000 at 3.5%% for 25 years.")
	}
	months, rate := v[2]*12, v[1]/1200
	monthly := v[0] / months
	if rate > 0 {
		monthly = v[0] * rate / (1 - math.Pow(1+rate, -months))
	}
	return fmt.Sprintf("**%.2f a month** for %.0f months: %.2f in all, of which %.2f is interest.", monthly, months, monthly*months, monthly*months-v[0]), nil
}

// describeNumbers sums a list of numbers up.
func describeNumbers(in string) (string, error) {
	var v []float64
	for _, s := range decimal.FindAllString(in, 10_000) {
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			v = append(v, f)
		}
	}
	if len(v) < 2 {
		return "", sorryf("Send me at least two numbers, with spaces between them.")
	}
	slices.Sort(v)
	mean, dev := moments(v)
	return fmt.Sprintf("| | of %d numbers |\n|---|---|\n| least | %s |\n| median | %s |\n| mean | %s |\n| most | %s |\n| standard deviation | %s |\n", len(v), short(v[0]), short(median(v)), short(mean), short(v[len(v)-1]), short(dev)), nil
}

func moments(v []float64) (mean, deviation float64) {
	for _, f := range v {
		mean += f / float64(len(v))
	}
	for _, f := range v {
		deviation += (f - mean) * (f - mean) / float64(len(v))
	}
	return mean, math.Sqrt(deviation)
}

// median of a sorted list.
func median(v []float64) float64 {
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

func short(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }

// summarizeCSV describes the columns of a table.
func summarizeCSV(in string) (string, error) {
	in = unfenced(in)
	r := csv.NewReader(strings.NewReader(in))
	r.FieldsPerRecord, r.TrimLeadingSpace = -1, true
	if first, _, _ := strings.Cut(in, "\n"); strings.Count(first, ";") > strings.Count(first, ",") {
		r.Comma = ';'
	}
	rows, err := r.ReadAll()
	if err != nil || len(rows) < 2 || len(rows[0]) < 2 {
		return "", sorryf("Send me a table as CSV: a line of names, then at least one line of values.")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s.\n\n| column | holds | |\n|---|---|---|\n", plural(len(rows)-1, "row"), plural(len(rows[0]), "column"))
	for i, name := range rows[0][:min(len(rows[0]), 30)] {
		var numbers []float64
		var values []string
		for _, row := range rows[1:] {
			if i >= len(row) || row[i] == "" {
				continue
			}
			values = append(values, row[i])
			if f, err := strconv.ParseFloat(row[i], 64); err == nil {
				numbers = append(numbers, f)
			}
		}
		what, about := "text", plural(len(frequencies(values)), "different value")
		if len(values) == 0 {
			what, about = "nothing", ""
		} else if len(numbers) == len(values) {
			slices.Sort(numbers)
			mean, _ := moments(numbers)
			what, about = "numbers", fmt.Sprintf("%s to %s, mean %s", short(numbers[0]), short(numbers[len(numbers)-1]), short(mean))
		}
		if empty := len(rows) - 1 - len(values); empty > 0 {
			about += fmt.Sprintf(", %d empty", empty)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", cell(name), what, about)
	}
	return b.String(), nil
}

var throw = regexp.MustCompile(`(?i)([0-9]{0,3})[dw]([0-9]{1,4})\s*([+-]\s*[0-9]{1,4})?`)

// dice throws them.
func dice(in string) (string, error) {
	m := throw.FindStringSubmatch(in)
	if m == nil {
		return "", sorryf("Tell me what to throw, like d20 or 3d6+2.")
	}
	count, _ := strconv.Atoi(m[1])
	sides, _ := strconv.Atoi(m[2])
	plus, _ := strconv.Atoi(strings.ReplaceAll(m[3], " ", ""))
	if count = max(count, 1); count > 100 || sides < 2 {
		return "", sorryf("At most 100 dice, of at least 2 sides.")
	}
	sum, each := plus, make([]string, count)
	for i := range each {
		n := rand.IntN(sides) + 1
		sum += n
		each[i] = strconv.Itoa(n)
	}
	return fmt.Sprintf("**%d** (%s%s)", sum, strings.Join(each, " + "), strings.ReplaceAll(m[3], " ", "")), nil
}

package calc

import (
	"math/big"
	"runtime"
	"strings"
	"testing"
	"time"

	"agentsite/internal/fault"

	"pgregory.net/rapid"
)

// now is a Monday afternoon, in a zone where UTC is already a day ahead.
var now = time.Date(2026, 11, 2, 22, 4, 0, 0, time.FixedZone("", -5*3600))

// result is the answer without its working line.
func result(answer string) string {
	head, _, _ := strings.Cut(answer, "\n\n")
	return head
}

type answerCase struct{ question, want string }

func checkAnswers(t *testing.T, cases []answerCase) {
	t.Helper()
	for _, c := range cases {
		got, err := Answer(c.question, now)
		if err != nil {
			t.Errorf("Answer(%q): %v", c.question, err)
		} else if result(got) != c.want {
			t.Errorf("Answer(%q) = %q, want %q", c.question, result(got), c.want)
		}
	}
}

func TestAnswer_ComputesExactArithmetic(t *testing.T) {
	t.Parallel()
	checkAnswers(t, []answerCase{
		{"0.1+0.2", "**0.3**"},
		{"2+3*4", "**14**"},
		{"(2+3)*4", "**20**"},
		{"2 - 3 - 4", "**-5**"},
		{"100/10/2", "**5**"},
		{"10/4", "**2.5**"},
		{"1/3", "**1/3** ≈ 0.33333333333333333333"},
		{"2/3 + 1/6", "**5/6** ≈ 0.83333333333333333333"},
		{"3 × 4 − 2 · 5 ÷ 2", "**7**"},
		{"-2^2", "**-4**"},
		{"(-2)^2", "**4**"},
		{"2^-2", "**0.25**"},
		{"2^3^2", "**512**"},
		{"2**10", "**1024**"},
		{"0^0", "**1**"},
		{"--5", "**5**"},
		{"17 % 5", "**2**"},
		{"17 mod 5", "**2**"},
		{"-7 mod 3", "**2**"},
		{"5.5 mod 2", "**1.5**"},
		{"1,234,567.5 + 1", "**1234568.5**"},
		{"1_000 * 2", "**2000**"},
		{"1 000 000 / 8", "**125000**"},
		{".5 + .25", "**0.75**"},
		{"1e3 + 1", "**1001**"},
		{"1.5E-3 * 2", "**0.003**"},
		{"0xff + 0b101", "**260**"},
		{"2(3+4)", "**14**"},
		{"(1+2)(3+4)", "**21**"},
		{"12345678901234567890 * 98765432109876543210", "**1219326311370217952237463801111263526900**"},
		{"2^100", "**1267650600228229401496703205376**"},
		{"5!", "**120**"},
		{"0!", "**1**"},
		{"20!", "**2432902008176640000**"},
		{"1/3 as decimal", "**≈ 0.33333333333333333333**"},
		{"0.125 as a fraction", "**1/8**"},
	})
}

func TestAnswer_CallsFunctions(t *testing.T) {
	t.Parallel()
	checkAnswers(t, []answerCase{
		{"sqrt(16)", "**4**"},
		{"sqrt(9/4)", "**1.5**"},
		{"square root of 2", "**≈ 1.4142135623730950488**"},
		{"√144", "**12**"},
		{"2^0.5", "**≈ 1.4142135623730950488**"},
		{"abs(-3.5)", "**3.5**"},
		{"round(2.5)", "**3**"},
		{"round(-2.5)", "**-3**"},
		{"round(2.567, 2)", "**2.57**"},
		{"round 2.567 to 2 decimal places", "**2.57**"},
		{"floor(-2.5)", "**-3**"},
		{"ceil(-2.5)", "**-2**"},
		{"min(3, 2)", "**2**"},
		{"sum of 1, 2 and 3", "**6**"},
		{"sum of 1,200 and 300", "**1500**"},
		{"average of 3, 4 and 8", "**5**"},
		{"avg(1;2)", "**1.5**"},
		{"pi", "**≈ 3.1415926535897932385**"},
	})
}

func TestAnswer_ReadsPercentages(t *testing.T) {
	t.Parallel()
	checkAnswers(t, []answerCase{
		{"15% of 80", "**12**"},
		{"80 + 15%", "**92**"},
		{"80 - 15%", "**68**"},
		{"17% + 5", "**5.17**"},
		{"50% * 50%", "**0.25**"},
		{"20% off 80", "**64**"},
		{"take 15% off 80", "**68**"},
		{"what percent is 20 of 80", "**25%**"},
		{"what percent of 80 is 20", "**25%**"},
		{"20 is what percent of 80?", "**25%**"},
		{"20 is what % of 80", "**25%**"},
		{"what is 20 as a percentage of 80", "**25%**"},
		{"increase from 80 to 100", "**25%**"},
		{"percent change from 100 to 80", "**-20%**"},
		{"increase 80 by 15%", "**92**"},
		{"decrease 80 by 15%", "**68**"},
		{"add 19% VAT to 250", "**297.5**"},
		{"what is 5 percent of 20% of 1,000", "**10**"},
		{"80 + 15% vat", "**92**"},
		{"15% of 80 kg", "**12 kg**"},
		{"20/80 in percent", "**25%**"},
		{"300 g is what percent of 2 kg", "**15%**"},
	})
}

func TestAnswer_ConvertsUnits(t *testing.T) {
	t.Parallel()
	checkAnswers(t, []answerCase{
		{"5 km in miles", "**≈ 3.1068559611866698481 mi**"},
		{"1 mile in km", "**1.609344 km**"},
		{"how many feet in a mile", "**5280 ft**"},
		{"how many miles is 1.609344 km", "**1 mi**"},
		{"5 ft 11 in in cm", "**180.34 cm**"},
		{`5'11" in cm`, "**180.34 cm**"},
		{"12 in to cm", "**30.48 cm**"},
		{"180.34 cm in feet and inches", "**5 ft 11 in**"},
		{"5 nautical miles in km", "**9.26 km**"},
		{"2 kg + 300 g", "**2.3 kg**"},
		{"1 lb in g", "**453.59237 g**"},
		{"16 oz in lb", "**1 lb**"},
		{"3 h 25 min in minutes", "**205 min**"},
		{"3h25min in minutes", "**205 min**"},
		{"1 hour and 30 minutes in seconds", "**5400 s**"},
		{"half an hour in minutes", "**30 min**"},
		{"3.75 hours in hours and minutes", "**3 h 45 min**"},
		{"1 week in hours", "**168 h**"},
		{"72 f to c", "**≈ 22.222222222222222222 °C**"},
		{"-40 f in c", "**-40 °C**"},
		{"30 °C in K", "**303.15 K**"},
		{"100 C to F", "**212 °F**"},
		{"100 km/h in mph", "**≈ 62.137119223733396962 mph**"},
		{"36 km/h in m/s", "**10 m/s**"},
		{"10 knots in km/h", "**18.52 km/h**"},
		{"60 mph * 2 h", "**120 mi**"},
		{"60 km/h * 30 min", "**30 km**"},
		{"10 km / 500 m", "**20**"},
		{"3 m * 4 m", "**12 m²**"},
		{"1 acre in m2", "**4046.8564224 m²**"},
		{"5 square feet in m^2", "**0.4645152 m²**"},
		{"1 m³ in litres", "**1000 L**"},
		{"1 gallon in l", "**3.785411784 L**"},
		{"1.5 GiB in MB", "**1610.612736 MB**"},
		{"1 KiB in bytes", "**1024 B**"},
		{"1 kB in b", "**8000 bits**"},
		{"100 Mb/s in MB/s", "**12.5 MB/s**"},
		{"1/2 hour in minutes", "**30 min**"},
		{"1/2 in to cm", "**1.27 cm**"},
		{"100 km / 2 h", "**50 km/h**"},
		{"1 day - 3 h", "**0.875 days**"},
	})
}

func TestAnswer_KnowsTheCalendar(t *testing.T) {
	t.Parallel()
	checkAnswers(t, []answerCase{
		{"days between 2026-01-01 and 2026-12-25", "**358 days**"},
		{"days from 2024-02-28 to 2024-03-01", "**2 days**"},
		{"2026-12-25 - 2026-01-01", "**358 days**"},
		{"2026-11-20 + 45 days", "**2027-01-04** (Monday)"},
		{"90 days from today", "**2027-01-31** (Sunday)"},
		{"3 weeks ago", "**2026-10-12** (Monday)"},
		{"in 3 weeks", "**2026-11-23** (Monday)"},
		{"30 days before 2026-03-01", "**2026-01-30** (Friday)"},
		{"today", "**2026-11-02** (Monday)"},
		{"7 days after tomorrow", "**2026-11-10** (Tuesday)"},
		{"what weekday is 2030-05-01", "**Wednesday**"},
		{"what day of the week was July 4, 1776?", "**Thursday**"},
		{"weeks until 2027-01-01", "**8 weeks 4 days**"},
		{"days until 25 Dec 2026", "**53 days**"},
		{"how many days until December 25, 2026?", "**53 days**"},
		{"days since 25th of October 2026", "**8 days**"},
		{"2026-01-31 + 1 month", "**2026-02-28** (Saturday)"},
		{"2024-02-29 + 1 year", "**2025-02-28** (Friday)"},
		{"2026-01-31 + 1 month 3 days", "**2026-03-03** (Tuesday)"},
		{"2026-03-31 - 1 month", "**2026-02-28** (Saturday)"},
		{"months between 2026-01-15 and 2026-12-25", "**11 months 10 days**"},
		{"10 working days from 2026-11-20", "**2026-12-04** (Friday)"},
		{"add 2 business days to 2026-11-20", "**2026-11-24** (Tuesday)"},
		{"2026-11-21 + 1 working day", "**2026-11-23** (Monday)"},
		{"2026-11-23 - 1 working day", "**2026-11-20** (Friday)"},
		{"working days between 2026-11-02 and 2026-11-20", "**14 working days**"},
		{"hours between 09:30 and 17:15", "**7.75 h**"},
		{"time between 09:30 and 17:15", "**7 h 45 min**"},
		{"hours between 22:00 and 06:00", "**8 h**"},
		{"09:30 + 8 h 15 min", "**17:45**"},
		{"2 hours from 09:30", "**11:30**"},
		{"3 days + 2026-01-01", "**2026-01-04** (Sunday)"},
	})
}

func TestAnswer_ReadsPlainWords(t *testing.T) {
	t.Parallel()
	checkAnswers(t, []answerCase{
		{"What is two plus three?", "**5**"},
		{"what's the square root of 144", "**12**"},
		{"how much is 5 times 5", "**25**"},
		{"Please calculate 7 divided by 2, please", "**3.5**"},
		{"= 3*4 =", "**12**"},
		{"half of 90", "**45**"},
		{"a third of 90", "**30**"},
		{"two thirds of 90", "**60**"},
		{"a dozen times 12", "**144**"},
		{"half a dozen", "**6**"},
		{"one million divided by 8", "**125000**"},
		{"1.5 million + 1", "**1500001**"},
		{"twenty-one minus two hundred", "**-179**"},
		{"ten squared", "**100**"},
		{"three cubed", "**27**"},
		{"two to the power of ten", "**1024**"},
		{"SIX TIMES SEVEN", "**42**"},
		{"subtract 5 from 20", "**15**"},
		{"multiply 3 by 4", "**12**"},
		{"difference between 5 and 12", "**7**"},
	})
}

func TestAnswer_AddsNotes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ question, part string }{
		{"2026-01-31 + 1 month", "February 2026 has only 28 days"},
		{"10 working days from 2026-11-20", "holidays are not considered"},
		{"hours between 22:00 and 06:00", "next day"},
		{"5 km in miles", "exactly 78125/25146 mi"},
	} {
		got, err := Answer(c.question, now)
		if err != nil || !strings.Contains(got, c.part) {
			t.Errorf("Answer(%q) = %q, %v, want it to contain %q", c.question, got, err, c.part)
		}
	}
}

func TestAnswer_ExplainsWhatItRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ question, part string }{
		{"", "no question"},
		{"what is ?", "no question"},
		{"foo", `"foo" at character 1`},
		{"2 + blue", `"blue" at character 5`},
		{"2 +", "ends at character 4"},
		{"(1 + 2", "closing parenthesis"},
		{"1 + 2)", `")" at character 6`},
		{"2 3", `"3" at character 3`},
		{"2+2=4", `"=" at character 4`},
		{"1 @ 2", `"@" at character 3`},
		{"1.2.3", "two decimal points"},
		{"3,5 + 1", "decimals take a point"},
		{"20 of 80", `"of" at character 4`},
		{"1/0", "Division by zero"},
		{"5 mod (2-2)", "Division by zero"},
		{"0^-1", "Division by zero"},
		{"10 km / 0 m", "Division by zero"},
		{"20 is what percent of 0", "percentage of zero"},
		{"2^100000", "more than 5000 digits"},
		{"9^9^9^9", "more than 5000 digits"},
		{"sqrt(2)^1000000", "more than 5000 digits"},
		{"10^4000 * 10^4000", "more than 5000 digits"},
		{"1e9999", "too large"},
		{"1776!", "from 0 to 1775"},
		{"(-3)!", "whole numbers from 0"},
		{"2.5!", "whole numbers from 0"},
		{"sqrt(-1)", "not a real number"},
		{"(-8)^0.5", "not a real number"},
		{"ln(0)", `do not compute "ln"`},
		{"log(2, 1)", `do not compute "log"`},
		{"tan(90 deg)", `do not compute "tan"`},
		{"exp(1000)", `do not compute "exp"`},
		{"gcd(1.5, 2)", `do not compute "gcd"`},
		{"round(1, 2, 3)", "too many arguments"},
		{"round(1, 1000)", "decimal places"},
		{"5 km in kg", "km (a length) and kg (a mass)"},
		{"5 km + 3 h", "h (a time) and km (a length)"},
		{"5 + 3 km", "km (a length) and a plain number"},
		{"12 in hours", "12 has no unit"},
		{"5 km in foo", `"foo" at character 9`},
		{"20 c + 5 c", "arbitrary zero"},
		{"2 ^ (3 km)", "plain number"},
		{"2026-02-30", "no date 2026-02-30"},
		{"30 February 2026", "no date 2026-02-30"},
		{"25:00 + 1 h", "no clock time 25:00"},
		{"today + 1", "not a plain number"},
		{"today + 5 km", "not km (a length)"},
		{"today + 1.5 days", "whole days"},
		{"9999-12-31 + 1 day", "years 1 to 9999"},
		{"today + 1e30 days", "years 1 to 9999"},
		{"today * 2", "the date 2026-11-02"},
		{"what weekday is 5", "not of a plain number"},
		{"days between 5 and 2026-01-01", "a plain number and the date 2026-01-01"},
		{"days between 2026-01-01", `"between" at character 6`},
		{strings.Repeat("(", 65) + "1" + strings.Repeat(")", 65), "nested more than 64"},
		{strings.Repeat("-", 200) + "1", "nested more than 64"},
		{strings.Repeat("2^", 200) + "1", "nested more than 64"},
		{strings.Repeat("1+", 1000) + "1", "at most 2000"},
		{"8^(1/3)", "Only whole exponents"},
		{"e^2", `do not compute "e"`},
		{"100 kWh in MJ", "units of length, weight"},
		{"$20 + 15%", "Currencies are not units"},
		{"max(1,200)", "may be one number or two"},
		{"hours between 9 am and 17:00", `"am" at character 17`},
		{"-today", "has no negative"},
		{"1e999999999", "too large"},
		{"\xff", "UTF-8"},
	} {
		got, err := Answer(c.question, now)
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("Answer(%q) = %q, %v, want fault.Invalid", c.question, got, err)
			continue
		}
		if safe := fault.As(err).Safe; !strings.Contains(safe, c.part) {
			t.Errorf("Answer(%q): %q does not contain %q", c.question, safe, c.part)
		}
	}
}

func TestAnswer_GivesWorkingExampleInErrors(t *testing.T) {
	t.Parallel()
	for _, q := range []string{"foo", "1/0", "5 km in kg", "today + 1", "3,5", "sqrt(-1)", "2^99999", "1 @", "days between 2026-01-01"} {
		_, err := Answer(q, now)
		safe := fault.As(err).Safe
		_, example, ok := strings.Cut(strings.TrimSuffix(safe, `"`), `Try: "`)
		if _, err := Answer(example, now); !ok || err != nil {
			t.Errorf("the example %q in %q does not work: %v", example, safe, err)
		}
	}
}

func TestAnswer_PrintsLargestFactorial(t *testing.T) {
	t.Parallel()
	got, err := Answer("1775!", now)
	if n := len(strings.Trim(result(got), "*")); err != nil || n != 4999 {
		t.Errorf("1775! has %d digits, %v, want 4999", n, err)
	}
}

// TestAnswer_BoundsTheWork counts allocated bytes: big numbers are work and
// memory alike. It runs alone, because the count is that of the process.
func TestAnswer_BoundsTheWork(t *testing.T) {
	const maxBytes = 64 << 20
	for name, unit := range map[string]string{
		"dates": "+1 day", "factorials": "+1775!", "powers": "+9^5000", "roots": "+sqrt(3^9000)", "fractions": "+1/99991",
		"calls": "+max(1, 2)", "inexact roots": "+sqrt(1775!)", "approximations": "*sqrt(2)", "units": "+1 km/h", "parts": " 1 h",
	} {
		start := "1"
		if name == "dates" {
			start = "2026-01-02-2026-01-01"
		}
		q := start + strings.Repeat(unit, (maxQuestionBytes-len(start))/len(unit))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := Answer(q, now); err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > maxBytes {
			t.Errorf("%s: allocates %d bytes", name, n)
		}
	}
}

func TestExamples_Work(t *testing.T) {
	t.Parallel()
	for _, q := range Examples() {
		if _, err := Answer(q, now); err != nil {
			t.Errorf("example %q: %v", q, err)
		}
	}
}

// exprGen draws an expression and its value side by side, so the value never
// passes through the parser under test.
func exprGen(t *rapid.T, depth int) (string, *big.Int) {
	text, total := termGen(t, depth)
	for range rapid.IntRange(0, 3).Draw(t, "terms") {
		s, v := termGen(t, depth)
		if rapid.Bool().Draw(t, "plus") {
			text, total = text+" + "+s, new(big.Int).Add(total, v)
		} else {
			minus := "-"
			if len(text)-len(strings.TrimRight(text, "0123456789")) == 4 {
				minus = " - " // 1000-10-10 is a date
			}
			text, total = text+minus+s, new(big.Int).Sub(total, v)
		}
	}
	return text, total
}

func termGen(t *rapid.T, depth int) (string, *big.Int) {
	text, product := factorGen(t, depth)
	for range rapid.IntRange(0, 2).Draw(t, "factors") {
		s, v := factorGen(t, depth)
		sign := rapid.SampledFrom([]string{"*", " × ", " times "}).Draw(t, "sign")
		text, product = text+sign+s, new(big.Int).Mul(product, v)
	}
	return text, product
}

func factorGen(t *rapid.T, depth int) (string, *big.Int) {
	kind := rapid.IntRange(0, 3).Draw(t, "kind")
	if depth == 0 {
		kind = 0
	}
	switch kind {
	case 1:
		s, v := exprGen(t, depth-1)
		return "(" + s + ")", v
	case 2:
		s, v := factorGen(t, depth-1)
		return "-" + s, new(big.Int).Neg(v)
	case 3:
		s, v := exprGen(t, depth-1)
		n := rapid.IntRange(0, 3).Draw(t, "exponent")
		p := big.NewInt(1)
		for range n {
			p.Mul(p, v)
		}
		return "(" + s + ")^" + string(rune('0'+n)), p
	}
	n := big.NewInt(rapid.Int64Range(0, 1_000_000).Draw(t, "n"))
	return n.String(), n
}

func TestAnswer_AgreesWithIndependentEvaluation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, want := exprGen(t, 2)
		if len(text) > maxQuestionBytes || want.BitLen() > 5000 {
			t.Skip("beyond the limits")
		}
		got, err := Answer(text, now)
		if err != nil {
			if strings.Contains(err.Error(), "digits") {
				t.Skip("a step is beyond the limits")
			}
			t.Fatalf("Answer(%q): %v", text, err)
		}
		if result(got) != "**"+want.String()+"**" {
			t.Fatalf("Answer(%q) = %q, want %s", text, result(got), want)
		}
	})
}

func TestAddWorkdays_AgreesWithWalking(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		start := time.Date(2026, 1, 1+rapid.IntRange(0, 400).Draw(t, "start"), 0, 0, 0, 0, time.UTC)
		n := rapid.IntRange(-40, 40).Draw(t, "n")
		want, left, step := start, n, 1
		if n < 0 {
			left, step = -n, -1
		}
		for left > 0 {
			want = want.AddDate(0, 0, step)
			if d := want.Weekday(); d != time.Saturday && d != time.Sunday {
				left--
			}
		}
		got := addWorkdays(start, n)
		if !got.Equal(want) {
			t.Fatalf(
				"%s %+d working days = %s, want %s",
				start.Format(time.DateOnly),
				n,
				got.Format(time.DateOnly),
				want.Format(time.DateOnly),
			)
		}
		if n > 0 {
			if back := countWorkdays(start, got); back != n {
				t.Fatalf("working days back from %s = %d, want %d", got.Format(time.DateOnly), back, n)
			}
		}
	})
}

func FuzzAnswer(f *testing.F) {
	for _, q := range Examples() {
		f.Add(q)
	}
	for _, q := range []string{
		"", "?", "((((", "1e5000/3", "5'11\"", "in in in", "a a a", "1/2pi", "²", "m²³", "half half", "25 Dec", "Dec", "12:3", "24:00 + 1 s",
		"percent", "% % %", "how many", "how many days", "between", "from", "round 2 to", "max(", "max(,)", "$", "$$5", "0x", "0b2", "1,", "1,000,0",
		"5 km/h/h/h/h/h/h/h/h/h/h", "m^3^3", "2026-01-01-2026-01-01-2026-01-01", "9:00 pm am", "sqrt sqrt 16", "in", "°", "√", "-0", "1e-5000^2",
	} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, question string) {
		late := time.AfterFunc(time.Minute, func() { panic("an answer takes a minute") })
		got, err := Answer(question, now)
		late.Stop()
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		const maxAnswerBytes = maxDigits + 1000
		if got == "" || len(got) > maxAnswerBytes {
			t.Fatalf("answer of %d bytes", len(got))
		}
	})
}

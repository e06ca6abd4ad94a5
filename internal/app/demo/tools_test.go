package demo

import (
	"strings"
	"testing"
	"time"
)

func TestWork_DoesWhatItSays(t *testing.T) {
	t.Parallel()
	do := make(map[string]work)
	for _, a := range allAgents() {
		do[a.name] = a.do
	}
	for _, c := range []struct{ agent, in, want string }{
		{"roman-numerals", "1994", "MCMXCIV"}, {"roman-numerals", "What is 444?", "CDXLIV"}, {"roman-numerals", "I wonder about MMXXVI", "2026"}, {"roman-numerals", "IIII", "Send me"}, {"roman-numerals", "4000", "3999"},
		{"regex-explainer", `^a+(b|c)?$`, "once or more"}, {"regex-explainer", `(?P<year>\d{4})`, "exactly 4 times"}, {"regex-explainer", "(", "not a regular expression"},
		{"colour-namer", "#2e8b57", "exactly **sea green**"}, {"colour-namer", "is #fff bright?", "exactly **white**"}, {"colour-namer", "loud", "Send me a colour"},
		{"text-statistics", "One two. Three!", "| sentences | 2 |"}, {"text-statistics", "  ", "Send me"},
		{"unit-converter", "26.2 miles in km", "42.1648 km"}, {"unit-converter", "72 F in C", "22.2222 °C"}, {"unit-converter", "1 kg in m", "is a mass"}, {"unit-converter", "1 GiB in MB", "1073.74"},
		{"csv-summary", "a,b\n1,x\n3,x", "1 to 3, mean 2"}, {"csv-summary", "a;b\n1;x\n3;", "1 empty"}, {"csv-summary", "hello", "Send me"},
		{"moon-watch", "2000-01-21", "full moon"}, {"moon-watch", "2000-13-41", "There is no day"},
		{"json-formatter", `{"a":[1,2]}`, "\"a\": ["}, {"json-formatter", "```json\n[1]\n```", "```json\n[\n  1\n]\n```"}, {"json-formatter", "{\n\"a\": 1,\n}", "line 3"},
		{"readability", "The cat sat on the mat. The dog ran.", "very easy"}, {"readability", "Hi", "at least five"},
		{"ip-calculator", "10.1.2.0/22", "10.1.3.255"}, {"ip-calculator", "2001:db8::/32", "2^96"}, {"ip-calculator", "home", "Send me"},
		{"loan-calculator", "250,000 at 3.5% for 25 years", "1251.56 a month"}, {"loan-calculator", "1200 at 0 for 1", "100.00 a month"}, {"loan-calculator", "lots", "Send me"},
		{"password-judge", "password123", "Very weak"}, {"password-judge", "correct horse battery staple", "Strong"},
		{"date-desk", "1969-07-20", "Sunday, 20 July 1969"}, {"date-desk", "2026-01-01 2026-12-31", "364 days"}, {"date-desk", "2026-02-30", "There is no day"},
		{"morse-operator", "SOS", "... --- ..."}, {"morse-operator", "... --- ... / .", "SOS E"}, {"morse-operator", "........", "no letter"},
		{"prime-factors", "360", "2^3 × 3^2 × 5"}, {"prime-factors", "999983", "prime"}, {"prime-factors", "1", "Send me"},
		{"url-dissector", "https://a.example/x?q=red+shoes#top", "`red shoes`"}, {"url-dissector", "nonsense", "whole address"},
		{"keyword-finder", "The harbour and the harbour master", "**harbour**, twice"},
		{"http-status", "What is 404?", "Not Found"}, {"http-status", "299", "Send me"},
		{"number-speller", "1984", "One thousand nine hundred and eighty-four."}, {"number-speller", "1000001", "One million and one."}, {"number-speller", "0", "Zero."},
		{"check-digits", "978-0-306-40615-7", "right"}, {"check-digits", "978-0-306-40615-8", "wrong"}, {"check-digits", "0-8044-2957-X", "right"}, {"check-digits", "4111 1111 1111 1111", "right"}, {"check-digits", "12", "Send me"},
		{"case-converter", "maximum retryCount", "`maximumRetryCount`"}, {"case-converter", "ünder way", "`ÜNDER_WAY`"},
		{"dice-tower", "4d1", "at least 2"}, {"dice-tower", "d2+1", "("}, {"dice-tower", "hello", "Tell me"},
		{"unicode-inspector", "é", "U+00E9"}, {"number-cruncher", "1 2 3 4", "| median | 2.5 |"}, {"base-changer", "What is 42?", "0b101010"}, {"base-changer", "x", "Send me"},
		{"line-sorter", "pear\napple\npear", "apple\npear\n"}, {"rot13-clerk", "Gur ohgyre qvq vg.", "The butler did it."}, {"hash-desk", "hello", "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"},
	} {
		if got := runWork(do[c.agent], c.in); !strings.Contains(got, c.want) {
			t.Errorf("%s of %q: %q, want %q in it", c.agent, c.in, got, c.want)
		}
	}
}

func TestExplainCron(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 15, 0, 0, 0, time.UTC) // a Sunday
	for line, want := range map[string]string{
		"30 6 * * mon-fri": "Monday, 23 November 2026, 06:30", "*/15 * * * *": "Sunday, 22 November 2026, 15:15", "0 0 1 * *": "Tuesday, 1 December 2026, 00:00",
		"0 9 1 * 7": "Sunday, 29 November 2026, 09:00", "0 0 30 2 *": "does not run", "0 0 29 2 *": "Tuesday, 29 February 2028, 00:00", "5/20 3 * jan,mar *": "Jan, Mar",
	} {
		if got, err := explainCronAt(line, now); err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %q %v, want %q in it", line, got, err, want)
		}
	}
	for _, line := range []string{"", "60 * * * *", "* * * *", "* * 0 * *", "5-1 * * * *", "*/0 * * * *", "a * * * *", "* * * foo *"} {
		if got, err := explainCronAt(line, now); err == nil {
			t.Errorf("%s: %q", line, got)
		}
	}
}

// What people ask in a demo is never answered with an excuse, except where an
// excuse is what the agent shows.
func TestAgents_CanDoWhatTheyAreAsked(t *testing.T) {
	t.Parallel()
	meant := map[string]bool{`{"name": "Ada", "born": 1815,}`: true}
	try := func(name, in string, do work) {
		if _, err := do(in); (err != nil) != meant[in] {
			t.Errorf("%s is asked %q: %v", name, in, err)
		}
	}
	for _, a := range allAgents() {
		for _, in := range a.asks {
			try(a.name, in, a.do)
		}
	}
	for _, s := range allServers() {
		for _, k := range s.tools {
			try(s.name+" "+k.name, k.example, k.do)
		}
	}
}

func TestWork_NothingPanics(t *testing.T) {
	t.Parallel()
	strange := []string{"", " ", "\x00", "`", "```", "```\n", "-", "%", "é", "999999999999999999999999", "0", "-1", "1-1-1-1", "X", "0x", "((((", "{", "\"", "0000-00-00", "1e400 1e400", "1 to", "a\nb", ";", ",", "://", "1d99999"}
	for _, a := range allAgents() {
		for _, in := range strange {
			if runWork(a.do, in) == "" && strings.TrimSpace(in) != "" {
				t.Errorf("%s says nothing to %q", a.name, in)
			}
		}
	}
}

func TestPieces_AreTheWhole(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "a", "a b c d e\nf", " ", "| a | b |\n|---|---|\n"} {
		if got := strings.Join(splitAnswer(s), ""); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

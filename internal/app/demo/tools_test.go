package demo

import (
	"strings"
	"testing"

	"agentsite/internal/team/handover"
)

func TestWork_DoesWhatItSays(t *testing.T) {
	t.Parallel()
	do := make(map[string]work)
	list, _ := loadAgents()
	for _, a := range list {
		do[a.Name] = a.do
	}
	for _, c := range []struct{ agent, in, want string }{
		{"moon-watch", "2000-01-21", "full moon"},
		{"moon-watch", "2000-13-41", "There is no day"},
		{"roman-numerals", "1994", "MCMXCIV"},
		{"roman-numerals", "What is 444?", "CDXLIV"},
		{"roman-numerals", "I wonder about MMXXVI", "2026"},
		{"roman-numerals", "IIII", "Send me"},
		{"roman-numerals", "4000", "3999"},
		{"text-statistics", "One two. Three!", "| sentences | 2 |"},
		{"text-statistics", "  ", "Send me"},
		{"json-formatter", `{"a":[1,2]}`, "\"a\": ["},
		{"json-formatter", "```json\n[1]\n```", "```json\n[\n  1\n]\n```"},
		{"json-formatter", "{\n\"a\": 1,\n}", "line 3"},
		{"ip-calculator", "10.1.2.0/22", "10.1.3.255"},
		{"ip-calculator", "2001:db8::/32", "2^96"},
		{"ip-calculator", "home", "Send me"},
		{"date-desk", "1969-07-20", "Sunday, 20 July 1969"},
		{"date-desk", "2026-01-01 2026-12-31", "364 days"},
		{"date-desk", "2026-02-30", "There is no day"},
		{"date-desk", "Which weekday is 24 December 2026?", "Thursday, 24 December 2026"},
		{"date-desk", "the 1st of sept. 2026", "Tuesday, 1 September 2026"},
		{"date-desk", "from May 8, 1945 to July 20th 1969", "lie between Tuesday, 8 May 1945 and Sunday, 20 July 1969"},
		{"date-desk", "31 June 2026", "There is no day 31 June 2026"},
		{"prime-factors", "360", "2^3 × 3^2 × 5"},
		{"prime-factors", "999983", "prime"},
		{"prime-factors", "1", "Send me"},
		{"url-dissector", "https://a.example/x?q=red+shoes#top", "`red shoes`"},
		{"url-dissector", "nonsense", "whole address"},
		{"http-status", "What is 404?", "Not Found"},
		{"http-status", "299", "Send me"},
		{"line-sorter", "pear\napple\npear", "apple\npear\n"},
	} {
		if got := runWork(do[c.agent], c.in); !strings.Contains(got, c.want) {
			t.Errorf("%s of %q: %q, want %q in it", c.agent, c.in, got, c.want)
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
	list, benches := loadAgents()
	for _, a := range list {
		for _, in := range a.Asks {
			try(a.Name, in, a.do)
		}
	}
	for _, s := range benches {
		for _, k := range s.Tools {
			try(s.Name+" "+k.Name, k.Example, k.do)
		}
	}
}

func TestWork_NothingPanics(t *testing.T) {
	t.Parallel()
	strange := []string{
		"",
		" ",
		"\x00",
		"`",
		"```",
		"```\n",
		"-",
		"%",
		"é",
		"999999999999999999999999",
		"0",
		"-1",
		"1-1-1-1",
		"X",
		"0x",
		"((((",
		"{",
		"\"",
		"0000-00-00",
		"1e400 1e400",
		"1 to",
		"a\nb",
		";",
		",",
		"://",
		"1d99999",
	}
	list, _ := loadAgents()
	for _, a := range list {
		for _, in := range strange {
			if runWork(a.do, in) == "" && strings.TrimSpace(in) != "" {
				t.Errorf("%s says nothing to %q", a.Name, in)
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

// Agents of a team get the results of earlier tasks with their own.
func TestWork_TakesTheResultsOfATeam(t *testing.T) {
	t.Parallel()
	do := make(map[string]work)
	list, _ := loadAgents()
	for _, a := range list {
		do[a.Name] = a.do
	}
	days := "**67 days** lie between Thursday, 24 December 2026 and Monday, 1 March 2027: 9 weeks and 4 days."
	for _, c := range []struct{ agent, text, result, want string }{
		{"prime-factors", "Take that number apart into prime factors.", days, "67 is **prime**"},
		{"prime-factors", "Take 12 apart.", days, "12 = **2^2 × 3**"},
		{"roman-numerals", "Write it in Roman numerals.", days, "LXVII"},
		{"date-desk", "Which weekday is that?", "On 2026-12-24: new moon", "Thursday"},
		{"text-statistics", "Count the words in it.", "```\napple\nfig\n```\n\n1 line stood there", "| words | 2 |"},
		{"line-sorter", "Sort it", "pear, apple", "apple\npear\n"},
		{"url-dissector", "Take the address in it apart", "See https://a.example/x?b=c.", "`/x`"},
	} {
		in := handover.Join(c.text, []handover.Result{{Owner: "calc", Text: c.result}})
		if got := runWork(do[c.agent], in); !strings.Contains(got, c.want) {
			t.Errorf("%s of %q with %q: %q, want %q in it", c.agent, c.text, c.result, got, c.want)
		}
	}
	for _, c := range []struct{ agent, in, want string }{
		{"line-sorter", "Sort this list: pear, apple, fig, apple.", "apple\nfig\npear\n"},
		{"text-statistics", "Count the words: one two", "| words | 2 |"},
		{"url-dissector", "Take the web address https://shop.example/search?q=red+shoes&page=2 apart", "`red shoes`"},
		{"ip-calculator", "Which addresses are in the IP range 10.1.2.0/22?", "10.1.3.255"},
		{"date-desk", "How many days lie between 2026-12-24 and 2027-03-01?", "**67 days**"},
	} {
		if got := runWork(do[c.agent], c.in); !strings.Contains(got, c.want) {
			t.Errorf("%s of %q: %q, want %q in it", c.agent, c.in, got, c.want)
		}
	}
}

package tools

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"agentsite/internal/team/rules"
)

const sales = "city,amount,day\nRome,12,2026-01-02\nOslo,7,2026-01-03\nRome,3.5,2026-01-04\n\"Santa Fe, " +
	"NM\",40,2026-01-05\n"

func TestAnswer(t *testing.T) {
	t.Parallel()
	people := `{"people":[{"name":"Ada","born":{"year":1815}},{"name":"Bob","born":{"year":1990},"likes":["a"]}]}`
	for _, c := range []struct {
		program, text string
		earlier       []string
		want          []string
	}{
		{"tables", sales + "\nselect city, sum(amount) group by city order by sum(amount) desc limit 2", nil,
			[]string{"| Santa Fe, NM | 40 |\n| Rome | 15.5 |\n", "2 rows."}},
		{"tables", "select city where amount > 5 and day < 2026-01-05 or city contains fe\n\n" + sales, nil,
			[]string{"| Rome |\n| Oslo |\n| Santa Fe, NM |"}},
		{"tables", "where amount = 7", []string{"hello", sales, "thanks"}, []string{"| Oslo | 7 | 2026-01-03 |"}},
		{"tables", people + " select avg(born.year), count(likes)", nil, []string{"| 1902.5 | 1 |"}},
		{"tables", "```csv\nname;n\na;0.1\nb;0.2\n```\nselect sum(n), max(name)", nil, []string{"| 0.3 | b |"}},
		{"tables", "| a | b |\n|---|---|\n| 1 | x |\n| 2 | y |", nil, []string{"2 rows, 2 columns", "| a | numbers " +
			"| 2 | 1 | 2 |"}},
		{"tables", sales + "select town", nil, []string{`no column "town"`, "city, amount, day"}},
		{"tables", sales + "select city where amount ! 3", nil, []string{"no comparison"}},
		{"tables", "what can you do?", nil, []string{"Send a table"}},
		{"tables", `[{"a":`, nil, []string{"not complete"}},
		{"diff", "a\nb\nc\n---\na\nx\nc", nil, []string{"1 line added, 1 line removed", "@@ -1,3 +1,3 @@\n " +
			"a\n-b\n+x\n c\n"}},
		{"diff", "a\n---\na", nil, []string{"equal"}},
		{"diff", "one\ntwo\nthree\n---\n@@ -1,2 +1,2 @@\n one\n-two\n+2", nil, []string{"```\none\n2\nthree\n```"}},
		{"diff", "zero\nnew\none\ntwo\n---\n@@ -1,2 +1,2 @@\n one\n-two\n+2", nil, []string{"zero\nnew\none\n2"}},
		{"diff", "one\n---\n@@ -1,1 +1,1 @@\n-two\n+2", nil, []string{"does not fit", "part 1"}},
		{"rates", "100 EUR in USD", nil, []string{"**111.72 USD**", RatesDay, "European Central Bank"}},
		{"rates", "$100 to eur", nil, []string{"**89.51 EUR**"}},
		{"rates", "100 EUR in USD at 1.5", nil, []string{"**150 USD**", "your rate"}},
		{"rates", "1,000 jpy", nil, []string{"| EUR | 5.69 |", RatesDay}},
		{"rates", "12 lb", nil, []string{"| kg | 5.443108 |"}},
		{"rates", "5 km in mi", nil, []string{"**3.106856 mi**"}},
		{"rates", "5 km in kg", nil, []string{"no unit of length"}},
		{"rates", "3 EUR in XXX", nil, []string{"no rate for XXX"}},
		{"rates", "hello there", nil, []string{"Send an amount"}},
		{"planner", "deadline 2026-12-28: design 2d, build 1w\nfree 2026-12-24, 2026-12-25", nil,
			[]string{"| design | Wed 2026-12-16 | Thu 2026-12-17 | 2 days |", "| build | Fri 2026-12-18 | Mon " +
				"2026-12-28 | 5 days |"}},
		{"planner", "start 2026-11-28: a 1d, b 2d", nil, []string{"| a | Mon 2026-11-30 | Mon 2026-11-30 |",
			"| b | Tue 2026-12-01 | Wed 2026-12-02 |"}},
		{"planner", "every month from 2026-01-31, 3 times", nil, []string{"Sat 2026-01-31", "Sat 2026-02-28", "Tue " +
			"2026-03-31"}},
		{"planner", "deadline 2026-12-28: design", nil, []string{"has no length"}},
		{"planner", "every 0 days from 2026-01-31, 3 times", nil, []string{"1 to 200"}},
		{"summary", "# Ferry\nThe ferry leaves at nine. It is the only ferry of the day, see " +
			"[times](https://ferry.example/t).\n" +
			"## Tickets\nTickets for the ferry are sold at the harbour.\n- [ ] Buy tickets\n- [x] Pack\n```\nno " +
			"prose here\n```", nil,
			[]string{"- Ferry: The ferry leaves at nine.", "  - Tickets: Tickets for the ferry", "- [ ] Buy " +
				"tickets", "1 task done, 1 open",
				"times: https://ferry.example/t", "It is the only ferry of the day"}},
		{"summary", "hi", nil, []string{"Send a text"}},
		{"none", "hi", nil, []string{"no program"}},
	} {
		got := Answer(c.program, c.text, c.earlier).Text
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s of %q:\n%s\nlacks %q", c.program, c.text, got, want)
			}
		}
	}
}

// A program says by its first words that it did not do the work, so that a team asks another agent.
func TestAnswer_SaysThatItDidNotDoTheWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ program, text string }{
		{"tables", "Add 10."}, {"tables", sales + "select town"}, {"tables", `[{"a":`}, {"diff", "Add 10."},
		{"diff", "one\n---\n@@ -1,1 +1,1 @@\n-two\n+2"}, {"rates", "Add 10."}, {"rates", "5 km in kg"},
		{"rates", "3 EUR in XXX"}, {"rates", "5 apples"}, {"planner", "Add 10."}, {"planner", "deadline 2026-12-28: design"},
		{"planner", "deadline 2026-13-28: design 2d"}, {"planner", "every 0 days from 2026-01-31, 3 times"}, {"summary", "Add 10."},
	} {
		if got := Answer(c.program, c.text, nil).Text; !rules.IsRefusal(got) {
			t.Errorf("%s of %q is no refusal:\n%s", c.program, c.text, got)
		}
	}
	for program, text := range map[string]string{"rates": "100 EUR in USD", "diff": "a\n---\nb", "tables": sales} {
		if got := Answer(program, text, nil).Text; rules.IsRefusal(got) {
			t.Errorf("%s of %q is a refusal:\n%s", program, text, got)
		}
	}
}

// The rows of a query are a file if the person asks for it, or if the answer does not show all. A file is bounded.
func TestTables_ReturnFiles(t *testing.T) {
	t.Parallel()
	many := func(n, width int) string {
		return "n,text\n" + strings.Repeat("1,"+strings.Repeat("a", width)+"\n", n)
	}
	const asked = "city,amount\nRome,12\n\"Santa Fe, NM\",40\n"
	for _, c := range []struct {
		text, file, says string
		size             int // of the file, if it is not given
	}{
		{text: sales + "select city, amount where amount > 10", says: "2 rows."},
		{text: sales + "select city, amount where amount > 10 as csv", file: asked, says: "2 rows. All rows are in the file"},
		{text: "Select city, amount where amount > 10 As CSV.\n\n" + sales, file: asked, says: "table.csv"},
		{text: `[{"a":"x\ny"},{"a":"\"z\""}] as csv`, file: "a\n\"x\ny\"\n\"\"\"z\"\"\"\n", says: "2 rows."},
		{text: sales + `select city where city contains "as csv"`, says: "0 rows."},
		{text: sales + "select town as csv", says: "no column"},
		{text: "as csv", says: "Send a table"},
		{text: many(maxShown, 3) + "select *", says: "50 rows."},
		{text: many(maxShown+1, 3) + "select *", size: 7 + 6*(maxShown+1), says: "The first 50 of 51 rows. All rows are in"},
		{text: many(600, 1000) + "select *", says: "The first 50 of 600 rows. There is no file"},
	} {
		got := Answer("tables", c.text, nil)
		if c.size > 0 && len(got.File) == c.size {
			c.file = got.File
		}
		if got.File != c.file || (got.FileName == tableFile) != (c.file != "") || !strings.Contains(got.Text, c.says) {
			t.Errorf("%.60q: file %.60q named %q, text %.200q", c.text, got.File, got.FileName, got.Text)
		}
	}
}

// A patch of two texts makes the second one of the first.
func TestDiff_IsAPatch(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var lines []string
		for range 1 + r.IntN(30) {
			lines = append(lines, fmt.Sprint("line ", r.IntN(6)))
		}
		return strings.Join(lines, "\n")
	}
	for range 500 {
		a, b := text(), text()
		patch, _, _ := compareTexts(splitLines(a), splitLines(b))
		if a == b {
			continue
		}
		if got, err := applyPatch(a, patch); err != nil || got != b {
			t.Fatalf("%q to %q by\n%s\nmakes %q, %v", a, b, patch, got, err)
		}
	}
}

// No text ends a program.
func FuzzAnswer(f *testing.F) {
	for _, text := range []string{sales + "select *", `[{"a":1}] where a > 0`, "a\n---\n@@ -1 +1 @@\n-a\n+b", "€5",
		"every day from 2026-01-01, 3 times",
		"# a\n- [ ] b", "[1,2,null]", "select", "{", "|", "```\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range Names {
			if r := Answer(name, text, []string{text}); r.Text == "" || len(r.File) > maxTableFile {
				t.Errorf("%s answers %q and a file of %d bytes to %q", name, r.Text, len(r.File), text)
			}
		}
	})
}

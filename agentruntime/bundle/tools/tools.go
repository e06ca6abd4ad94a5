// Package tools has the logic of the programs that come with every portal: they read tables, compare texts, convert
// currencies, plan dates and summarise Markdown, by rules. It is compiled to WebAssembly and runs in the sandbox, so it
// imports the standard library only; the tests run it natively. It knows no portal.
package tools

import (
	"strings"
)

// Names are the names of the programs, which are those of their agents.
var Names = []string{"tables", "diff", "rates", "planner", "summary"}

// notUnderstood begins the answer to a message that a program does not understand; the forms that it reads follow. Such
// an answer, and one that begins with "I cannot", tells a team that the program did not do the work.
const notUnderstood = "I did not understand that. "

// Reply is the answer of a program: a text in Markdown and, if it has a FileName, a file.
type Reply struct {
	Text, FileName, File string
}

// Answer returns the answer of a program to a message. earlier has the earlier messages of other participants, oldest
// first.
func Answer(program, text string, earlier []string) Reply {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	if strings.HasPrefix(text, "@") { // a mention of the agent
		if _, rest, ok := strings.Cut(text, " "); ok {
			text = strings.TrimSpace(rest)
		}
	}
	switch program {
	case "tables":
		return answerTables(text, earlier)
	case "diff":
		return Reply{Text: answerDiff(text)}
	case "rates":
		return Reply{Text: answerRates(text)}
	case "planner":
		return Reply{Text: answerPlanner(text)}
	case "summary":
		return Reply{Text: answerSummary(text)}
	}
	return Reply{Text: "There is no program " + program + "."}
}

// cutBlocks returns the contents of the fenced blocks of a Markdown text, and the text around them.
func cutBlocks(text string) (blocks []string, around string) {
	var block, rest []string
	fence := ""
	for line := range strings.SplitSeq(text, "\n") {
		mark := strings.TrimSpace(line)
		switch {
		case fence == "" && (strings.HasPrefix(mark, "```") || strings.HasPrefix(mark, "~~~")):
			fence, block = mark[:3], nil
		case fence != "" && mark == fence:
			blocks, fence = append(blocks, strings.Join(block, "\n")), ""
		case fence != "":
			block = append(block, line)
		default:
			rest = append(rest, line)
		}
	}
	if fence != "" {
		blocks = append(blocks, strings.Join(block, "\n"))
	}
	return blocks, strings.TrimSpace(strings.Join(rest, "\n"))
}

// writeTable returns rows as a Markdown table.
func writeTable(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| " + strings.NewReplacer("|", `\|`, "\n", " ").Replace(c) + " ")
		}
		b.WriteString("|\n")
	}
	line(head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, r := range rows {
		line(r)
	}
	return b.String()
}

// countOf returns a number with its noun.
func countOf(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return formatNumber(float64(n)) + " " + noun + "s"
}

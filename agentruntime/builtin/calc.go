package builtin

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"agentsite/agentruntime/builtin/calc"
	"agentsite/internal/fault"
	"agentsite/internal/task"
)

// maxLookBack is how many of its own answers calc looks back for the result
// that a question refers to.
const maxLookBack = 3

// calculate answers one question. What calc does not understand is an answer
// too: it says what, and shows what works.
func calculate(call task.Call, now time.Time) string {
	question := asked(call, calcName)
	if question == "" {
		if len(call.Parts) > 0 && strings.TrimSpace(call.Parts[0].Text) == "" {
			return "I read only text. " + calcHelp()
		}
		return calcHelp()
	}
	if help[strings.Join(words(question), " ")] {
		return calcHelp()
	}
	before, known := lastResult(call.History)
	if expanded, ok := followUp(question, before); known && ok {
		answer, err := calc.Answer(expanded, now)
		if err == nil {
			return fmt.Sprintf("%s\n\nI took %s from before.", answer, quote(before, maxQuoted))
		}
		return notUnderstood(err, fmt.Sprintf("I took %s from before and read: %s\n\n", quote(before, maxQuoted), quote(expanded, maxQuoted)))
	}
	answer, err := calc.Answer(question, now)
	if err == nil {
		return answer
	}
	if expanded, ok := pronoun(question, before); known && ok {
		if answer, err := calc.Answer(expanded, now); err == nil {
			return fmt.Sprintf("%s\n\nI took %s from before.", answer, quote(before, maxQuoted))
		}
	}
	return notUnderstood(err, "")
}

var help = map[string]bool{"help": true, "hi": true, "hello": true, "hey": true, "what can you do": true, "examples": true, "?": true}

func notUnderstood(err error, prefix string) string {
	return prefix + quote(fault.As(err).Safe, 600) + "\n\n" + examplesThatWork()
}

func calcHelp() string {
	return "I calculate exactly: arithmetic, percentages, units and dates.\n\n" + examplesThatWork()
}

func examplesThatWork() string {
	var b strings.Builder
	b.WriteString("These work, for example:\n")
	all := calc.Examples()
	step := max(1, len(all)/6)
	for i := 1; i < len(all); i += step {
		fmt.Fprintf(&b, "\n- `%s`", all[i])
	}
	return b.String()
}

var (
	boldStart = regexp.MustCompile(`^\*\*([^*\n]+)\*\*`)
	exactly   = regexp.MustCompile(`(?:^|; |\n)exactly ([^;.\n]+)`)
)

// lastResult returns the result of the last own answer that had one, exact
// where the answer told the exact fraction too.
func lastResult(history []task.Turn) (string, bool) {
	seen := 0
	for i := len(history) - 1; i >= 0 && seen < maxLookBack; i-- {
		if !history[i].Mine {
			continue
		}
		seen++
		text := task.PlainText(history[i].Parts)
		m := boldStart.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		if e := exactly.FindStringSubmatch(text); e != nil {
			return strings.TrimSpace(e[1]), true
		}
		return strings.TrimSpace(strings.TrimPrefix(m[1], "≈")), true
	}
	return "", false
}

var (
	leadIn = regexp.MustCompile(`(?i)^(?:(?:and|now|then|so|ok|okay|what about|how about)[\s,]+)+`)
	// A minus sign counts only with a space behind it: "-3 + 5" stands by
	// itself.
	operatorFirst = regexp.MustCompile(`(?i)^(?:[+*/×÷^]|[-−–]\s|(?:plus|minus|times|multiplied by|divided by|over|squared|cubed|to the power of|mod)\b)`)
	// "in 3 weeks" is a question of its own, "in km" is not.
	conversion = regexp.MustCompile(`(?i)^(?:(?:in|to|into|as)\s+(?:an?\s+)?[\pL°µ%][^\d]*[²³23]?)\??$`)
	reference  = regexp.MustCompile(`(?i)\b(?:that|it|the (?:last |previous )?(?:result|answer|number|total|sum)|ans)\b`)
)

// followUp reads a question that is only the end of one, such as "plus 10%"
// or "and in km?", as going on from the result before.
func followUp(question, before string) (string, bool) {
	rest := leadIn.ReplaceAllString(strings.TrimSpace(question), "")
	if operatorFirst.MatchString(rest) || conversion.MatchString(rest) {
		return "(" + before + ") " + rest, true
	}
	return "", false
}

// pronoun puts the result before in place of "that", "it" or "the result".
func pronoun(question, before string) (string, bool) {
	rest := leadIn.ReplaceAllString(strings.TrimSpace(question), "")
	if loc := reference.FindStringIndex(rest); loc != nil {
		return rest[:loc[0]] + "(" + before + ")" + rest[loc[1]:], true
	}
	return "", false
}

package builtin

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"agentsite/agentruntime/builtin/calc"
	"agentsite/internal/fault"
	"agentsite/internal/task"
	"agentsite/internal/team/handover"
)

// maxLookBack is the number of its own answers in which calc searches for the result that a question
// refers to.
const maxLookBack = 3

// answerQuestion answers one question. For a question that calc does not understand the answer names
// the part and gives examples.
func answerQuestion(call task.Call, now time.Time) string {
	question, results := handover.Split(questionText(call, calcName))
	if results != "" {
		return answerPart(question, results, now)
	}
	if question == "" {
		if len(call.Parts) > 0 && strings.TrimSpace(call.Parts[0].Text) == "" {
			return "I read only text. " + calcHelp()
		}
		return calcHelp()
	}
	if help[strings.Join(splitWords(question), " ")] {
		return calcHelp()
	}
	before, known := lastResult(call.History)
	if expanded, ok := followUp(question, before); known && ok {
		answer, err := calc.Answer(expanded, now)
		if err == nil {
			return fmt.Sprintf("%s\n\nI took %s from before.", answer, quoteText(before, maxQuoted))
		}
		return notUnderstood(err, fmt.Sprintf("I took %s from before and read: %s\n\n", quoteText(before, maxQuoted),
			quoteText(expanded, maxQuoted)))
	}
	answer, err := calc.Answer(question, now)
	if err == nil {
		return answer
	}
	if expanded, ok := replacePronoun(question, before); known && ok {
		if answer, err := calc.Answer(expanded, now); err == nil {
			return fmt.Sprintf("%s\n\nI took %s from before.", answer, quoteText(before, maxQuoted))
		}
	}
	return notUnderstood(err, "")
}

// answerPart answers the task of a team that needs the results of earlier ones: it puts their value where the task
// refers to it, with its unit if that makes sense.
func answerPart(question, results string, now time.Time) string {
	value := handover.Value(results)
	for _, before := range []string{value, handover.Number(value)} {
		if before == "" {
			continue
		}
		for _, complete := range []func(string, string) (string, bool){followUp, replacePronoun} {
			if expanded, ok := complete(question, before); ok {
				if answer, err := calc.Answer(expanded, now); err == nil {
					return fmt.Sprintf("%s\n\nI took %s from before.", answer, quoteText(before, maxQuoted))
				}
			}
		}
	}
	answer, err := calc.Answer(question, now)
	if err != nil {
		return notUnderstood(err, "")
	}
	return answer
}

var help = map[string]bool{"help": true, "hi": true, "hello": true, "hey": true, "what can you do": true,
	"examples": true, "?": true}

func notUnderstood(err error, prefix string) string {
	why := quoteText(fault.As(err).Safe, 600)
	if !strings.HasPrefix(why, "I ") {
		why = "I could not calculate that. " + why
	}
	return prefix + why + "\n\n" + examplesThatWork()
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

// lastResult returns the result of calc's last answer that had one, as an exact fraction if the answer
// has it. It looks at maxLookBack answers at most; false means that none had a result.
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
	// A minus sign counts only with a space after it, because "-3 + 5" is a question of its own.
	operatorFirst = regexp.MustCompile(`(?i)^(?:[+*/×÷^]|[-−–]\s|(?:plus|minus|times|multiplied by|divided by|over|squared|cubed|to the power of|mod)\b)`)
	// verbFirst is a step such as "add 10". "Add 10 to 20" is a question of its own.
	verbFirst = regexp.MustCompile(`(?i)^(add|subtract|take away|multiply by|divide by)\s+` +
		`(-?\d[\d.,]*\s?[\pL°µ%$€£]*?)[\s.!?]*$`)
	operators = map[string]string{"add": "+", "subtract": "-", "take away": "-", "multiply by": "*", "divide by": "/"}
	// "in 3 weeks" is a question of its own, "in km" is not.
	conversion = regexp.MustCompile(`(?i)^(?:(?:in|to|into|as)\s+(?:an?\s+)?[\pL°µ%][^\d]*[²³23]?)\??$`)
	reference  = regexp.MustCompile(`(?i)\b(?:that|it|the (?:last |previous )?(?:result|answer|number|total|sum)|ans)\b`)
)

// followUp completes a partial question, such as "plus 10%", "add 10" or "and in km?", with the previous result;
// false if question stands on its own.
func followUp(question, before string) (string, bool) {
	rest := leadIn.ReplaceAllString(strings.TrimSpace(question), "")
	if operatorFirst.MatchString(rest) || conversion.MatchString(rest) {
		return "(" + before + ") " + rest, true
	}
	if m := verbFirst.FindStringSubmatch(rest); m != nil {
		return "(" + before + ") " + operators[strings.ToLower(m[1])] + " " + m[2], true
	}
	return "", false
}

// replacePronoun replaces "that", "it" or "the result" by the previous result; false if question
// contains none.
func replacePronoun(question, before string) (string, bool) {
	rest := leadIn.ReplaceAllString(strings.TrimSpace(question), "")
	if loc := reference.FindStringIndex(rest); loc != nil {
		return rest[:loc[0]] + "(" + before + ")" + rest[loc[1]:], true
	}
	return "", false
}

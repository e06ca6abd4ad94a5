// Package calc is the engine of the built-in agent calc: it answers questions
// about arithmetic, percentages, units and dates, without a model.
//
// It knows neither the asker nor the time: the caller passes the question
// and the moment, and gets Markdown or a fault.Invalid error. Nothing here does
// I/O or changes package state, so every function is safe for concurrent use.
//
// lexer.go makes tokens, words.go replaces English words by the symbols they
// stand for, question.go recognises whole questions, parser.go is a Pratt
// parser that computes while it reads, and value.go, units.go and dates.go hold
// the rules. Numbers are math/big rationals: a result is exact unless it is
// marked "≈".
package calc

import (
	"time"
	"unicode/utf8"

	"agentsite/internal/fault"
)

const (
	// maxQuestionBytes bounds a question; no sentence that a person types is longer.
	maxQuestionBytes = 2000
	// maxNesting bounds the recursion of the parser, because deep nesting would exhaust the stack.
	maxNesting = 64
	// maxDigits is the longest result that is still readable in a chat.
	maxDigits = 5000
	// maxBits is maxDigits in binary: counting decimal digits costs a conversion.
	maxBits = 16610
)

// Answer computes one question. "today" is the day of now in its location. The
// result is Markdown: the answer in bold, then a line of notes if there are any.
//
// Every error is a *fault.Error of kind fault.Invalid. Its message says what is
// not understood or not possible, and gives a question that works.
func Answer(question string, now time.Time) (string, error) {
	if len(question) > maxQuestionBytes {
		return "", refuse(
			exampleNumber,
			"The question has %d bytes; at most %d are read.",
			len(question),
			maxQuestionBytes,
		)
	}
	if !utf8.ValidString(question) {
		return "", refuse(exampleNumber, "The question is not valid UTF-8 text.")
	}
	tokens, err := scanTokens(question)
	if err != nil {
		return "", err
	}
	v, err := answerQuestion(replaceNumberWords(replacePhrases(tokens)), calendarDay(now))
	if err != nil {
		return "", err
	}
	return formatAnswer(v), nil
}

// refuse returns the Invalid fault for a question, with an example of a question that works.
func refuse(example, format string, args ...any) error {
	return fault.New(fault.Invalid, format+" Try: %q", append(args, example)...)
}

// The examples in errors, one for each kind of question.
const (
	exampleNumber = "15% of 80"
	exampleUnit   = "5 km in miles"
	exampleDate   = "2026-11-20 + 45 days"
)

// Examples returns questions that work, for the agent card and the help
// answer. The caller owns the slice.
func Examples() []string {
	return []string{
		"0.1 + 0.2",
		"what is 15% of 80?",
		"add 19% VAT to 250",
		"20 is what percent of 80",
		"increase from 80 to 100",
		"2/3 + 1/6",
		"sqrt(2) * 3^4",
		"average of 3, 4 and 8",
		"half of a dozen times 12",
		"5 km in miles",
		"72 f to c",
		"1.5 GiB in MB",
		"5 ft 11 in in cm",
		"3 h 25 min in minutes",
		"days between 2026-01-01 and 2026-12-25",
		"90 days from today",
		"10 working days from 2026-11-20",
		"what weekday is 2030-05-01",
		"hours between 09:30 and 17:15",
	}
}

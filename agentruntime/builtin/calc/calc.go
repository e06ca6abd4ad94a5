// Package calc is the pure engine of the built-in agent calc: it answers
// arithmetic, percentage, unit and calendar questions typed in plain words,
// with exact results and without a model.
//
// It refuses to know who asks, how the question travelled and what time it
// is: the caller passes the question and the moment, and gets Markdown or a
// fault.Invalid error. Nothing here does I/O, starts goroutines or changes
// package state, so every function is safe for concurrent use.
//
// A question passes through these steps, one file each: lexer.go makes
// tokens, words.go turns English into the symbols it stands for, sentence.go
// recognises whole-question forms, expr.go builds the expression tree,
// eval.go computes it (number.go, functions.go, units.go and dates.go hold
// the knowledge), and format.go writes the answer.
//
// Numbers are math/big rationals. A result is exact unless it is marked "≈",
// which happens only after an irrational function or constant, or where an
// exact fraction is also shown as a decimal.
package calc

import (
	"time"
	"unicode/utf8"

	"agentsite/internal/fault"
)

const (
	// maxQuestionBytes holds any sentence a person types, and keeps the cost
	// of one question small whatever it says.
	maxQuestionBytes = 2000
	// maxNesting bounds recursion, counting parentheses, signs, powers and
	// function calls alike.
	maxNesting = 64
	// maxResultDigits is what still makes sense to read as a chat message.
	maxResultDigits = 5000
	// maxResultBits is 5,000 decimal digits in binary, the unit the checks
	// use since counting decimal digits costs a conversion.
	maxResultBits = 16610
)

// Answer evaluates one question. now is the only source of "today", taken in
// its own location. The result is Markdown: the answer in bold first, then, if
// it helps, one line that shows how the question was read.
//
// Every error is a *fault.Error of kind fault.Invalid whose message says what
// was not understood, at which character, and gives a question that works.
func Answer(question string, now time.Time) (string, error) {
	if len(question) > maxQuestionBytes {
		return "", fault.New(fault.Invalid, "The question has %d bytes; at most %d are read. Ask one calculation at a time, for example: %s",
			len(question), maxQuestionBytes, exampleNumber)
	}
	if !utf8.ValidString(question) {
		return "", fault.New(fault.Invalid, "The question is not valid UTF-8 text. Type it again, for example: %s", exampleNumber)
	}
	tokens, err := lex(question)
	if err != nil {
		return "", err
	}
	tokens, howMany := stripFraming(foldNumberWords(foldPhrases(tokens)))
	today := civil(now)
	tree, err := newParser(tokens, today).question(howMany)
	if err != nil {
		return "", err
	}
	v, err := eval(tree, today)
	if err != nil {
		return "", err
	}
	return answerText(tree, v), nil
}

// The examples that errors give, one for each kind of question.
const (
	exampleNumber  = `"15% of 80"`
	exampleUnit    = `"5 km in miles"`
	exampleDate    = `"90 days from 2026-11-20"`
	exampleBetween = `"days between 2026-01-01 and 2026-12-25"`
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

package rules

import "regexp"

// refusal is the beginning of an answer that does no work: the agent did not understand, asks for something else, lists
// its tools, or names other agents.
var refusal = regexp.MustCompile(`(?i)^\W*(?:i(?:'m| am)?,? (?:did not|didn't|do not|don't|cannot|can't|could not|` +
	`couldn't|not able|unable|sorry|afraid|read only)|sorry|unfortunately|send me|please (?:send|provide|give|paste)|` +
	`as an ai|i call tools|one agent fits|[0-9]+ agents fit|i found no agent|` +
	`no agent here fits|ich (?:kann|habe) (?:das |dich )?nicht|leider|désolé|lo siento)\b`)

// IsRefusal reports whether an answer says by its first words that the work was not done. Without a model nothing else
// of an answer is judged.
func IsRefusal(answer string) bool { return refusal.MatchString(answer[:min(len(answer), 200)]) }

package prompt

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"agentsite/internal/grant"
	"agentsite/internal/openai"
	"agentsite/internal/task"
)

// MaxShown bounds, in bytes, the arguments that a person is asked about, because people do not check
// more.
const MaxShown = 8 << 10

// Answer is the answer of a person to a question about a call.
type Answer int

// Once agrees to the one call, AlwaysHere to all such calls in the conversation, Always to all. Never refuses all.
const (
	Unclear Answer = iota
	Once
	AlwaysHere
	Always
	Never
)

// askConsent asks the person about a call to target. It shows the arguments exactly as they will be sent, with
// invisible characters made visible.
func askConsent(c openai.ToolCall, t Tool, target string, args json.RawMessage, p Permission) *waiting {
	w := &waiting{ID: c.ID, Agent: target, Tool: t.Name, Keeps: p.Keeps, KeepsAll: p.KeepsAll}
	act := fmt.Sprintf("use `%s` of `%s`", cleanName(t.Name), cleanName(target))
	if t.Name == grant.Ask && t.Repeatable {
		act = fmt.Sprintf("ask `%s`", cleanName(target))
	}
	w.Short = fmt.Sprintf("May I %s? Answer yes to go on.", strings.ReplaceAll(act, "`", ""))
	var b bytes.Buffer
	if json.Indent(&b, args, "", "  ") != nil {
		b.Reset()
		b.Write(args)
	}
	shown, language := b.String(), "json"
	var asked struct{ Text string }
	if t.Name == grant.Ask && t.Repeatable && json.Unmarshal(args, &asked) == nil {
		shown, language = asked.Text, ""
	}
	if t.Name == grant.Memory && json.Unmarshal(args, &asked) == nil {
		act, shown, language = "remember this", asked.Text, ""
		w.Short = "May I remember this? Answer yes to go on."
	}
	about := fileAct(t, target)
	if about != "" {
		act, shown, language = about, "", ""
		if t.Name == grant.LibraryWrite && json.Unmarshal(args, &asked) == nil {
			shown = asked.Text
		}
		w.Short = fmt.Sprintf("May I %s? Answer yes to go on.", strings.ReplaceAll(act, "`", ""))
	}
	shown = escapeInvisible(shown)
	fence := "```"
	for strings.Contains(shown, fence) {
		fence += "`"
	}
	with := " without arguments?"
	if string(args) != "{}" {
		with = " with this?\n\n" + fence + language + "\n" + shown + "\n" + fence
	}
	if t.Name == grant.Memory {
		with = "?\n\n" + fence + "\n" + shown + "\n" + fence
		if p.Reader != "" {
			with += fmt.Sprintf("\n\nIt is kept on this portal and sent to `%s` with what you write to me later; the "+
				"operator there can read it.", cleanName(p.Reader))
		}
	}
	if about != "" && shown == "" {
		with = "?"
	}
	w.Question = "May I " + act + with + "\n\nAnswer yes to go on."
	if about != "" && strings.Contains(target, "/") {
		w.Question += " An answer for later is about " + laterAct(t, target) + "."
	}
	switch {
	case p.KeepsAll:
		w.Question += " “Always here” means in this conversation, “always” everywhere, “never” that I must not ask " +
			"again."
	case p.Keeps:
		w.Question += " “Always here” means in this conversation, “never” that I must not ask again in it. Write " +
			"“ask again” to take such an answer back."
	}
	return w
}

// fileAct returns the words for a call that uses the person's library, "" for others.
func fileAct(t Tool, target string) string {
	place := fmt.Sprintf("`%s` in your library", cleanName(target))
	if target == grant.WholeLibrary {
		place = "all files of your library"
	}
	switch {
	case t.Name == grant.LibraryWrite:
		return "write " + place
	case t.Name == grant.LibraryRead && strings.HasSuffix(target, "/"):
		return "list " + place
	case t.Name == grant.LibraryRead:
		return "read " + place
	}
	return ""
}

// laterAct returns the words for all that an answer for later is about.
func laterAct(t Tool, target string) string {
	verb, place := "reading", fmt.Sprintf("all in `%s`", cleanName(grant.FolderOf(target)))
	if t.Name == grant.LibraryWrite {
		verb = "reading and writing"
	}
	if target == grant.WholeLibrary {
		place = "all files of your library"
	}
	return verb + " " + place
}

// PermissionQuestion returns the question to the person about a call to target, and its short form.
func PermissionQuestion(t Tool, target string, args json.RawMessage, p Permission) (text, short string) {
	w := askConsent(openai.ToolCall{}, t, target, args, p)
	return w.Question, w.Short
}

// ReadAnswer returns the answer of a caller to such a question; self holds the lower-case names of the agent. declined
// is true if an Unclear answer is a plain no. An answer that the permission does not offer is Unclear.
func ReadAnswer(c task.Caller, p Permission, text string, self ...string) (a Answer, declined bool) {
	a = answerOf(text, self...)
	if !mayConsent(c) || a > Once && !p.Keeps || a == Always && !p.KeepsAll {
		a = Unclear
	}
	return a, a == Unclear && isNo(text, self...)
}

// MayConsent reports whether the caller may agree to calls: a person may, a program may not because its text may come
// from another model.
func MayConsent(c task.Caller) bool { return mayConsent(c) }

// escapeInvisible writes invisible characters as JSON escapes, which mean the same inside its strings.
func escapeInvisible(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t' || r == ' ' || unicode.IsGraphic(r) && !unicode.IsSpace(r) &&
			!unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
			b.WriteRune(r)
		case r > 0xFFFF:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// mayConsent reports whether the caller may consent: a person may, a program may not because its text
// may come from another model.
func mayConsent(c task.Caller) bool {
	return c.Kind == "person" || c.Kind == "operator" || c.Kind == "guest" || c.Kind == "portal"
}

// The words of consent. An answer is a yes if a word or phrase of yes comes first and only fillers
// follow, because a condition after a yes ("yes, but …") must not pass.
var (
	yesWords = strings.Fields(`yes y yeah yep yup yess sure ok okay k fine agreed approved confirm confirmed proceed
		ja jo jawohl jap klar gerne okey einverstanden oui ouais daccord si sí sì vale claro sim da да ага ano tak evet
		hai はい ええ 是 是的 好 好的 可以 네 예 हाँ نعم כן ναι kyllä joo igen ya 👍 ✅`)
	yesPhrases = []string{"go ahead", "go on", "do it", "please do", "of course", "mach es", "mach das", "nur zu",
		"d accord", "por favor si", "vas y"}
	fillers = strings.Fields(`please pls bitte gern thanks thank you thx danke merci gracias por favor s il te vous plaît plait go on ahead do it that this
		so mach machs das es weiter the of course faites le sure ok okay yes ja oui`)
	noWords = strings.Fields(`no n nope nah never stop cancel don t dont not nein nee nö non no нет 不 不要 いいえ nie não nei ne`)
)

// splitWords splits an answer into lower-case words at spaces and punctuation, without mentions of the
// agent itself.
func splitWords(text string, self ...string) []string {
	var out []string
	for _, w := range strings.Fields(strings.ToLower(text)) {
		if at, ok := strings.CutPrefix(strings.TrimRight(w, ",.:;!"), "@"); ok && at != "" &&
			slices.Contains(self, at) {
			continue
		}
		out = append(out, strings.FieldsFunc(w, func(r rune) bool {
			return strings.ContainsRune(".,;:!…\"'’`*_()-", r) || unicode.Is(unicode.Cf, r) || r == 0xFE0F ||
				r >= 0x1F3FB && r <= 0x1F3FF
		})...)
	}
	return out
}

// answerOf returns the answer in a text. Always and always here are alone or follow a yes, never is alone or follows a
// no, so that "no, always …" gives no permission.
func answerOf(text string, self ...string) Answer {
	w := splitWords(text, self...)
	yes, no := false, false
	if len(w) > 1 {
		if yes, no = slices.Contains(yesWords, w[0]), slices.Contains(noWords, w[0]); yes || no {
			w = w[1:]
		}
	}
	said := Unclear
	switch strings.Join(w, " ") {
	case "always", "immer", "siempre", "toujours", "sempre", "总是", "いつも":
		said = Always
	case "always here", "here always", "always in this conversation", "immer hier", "hier immer", "toujours ici",
		"siempre aquí", "总是在这里":
		said = AlwaysHere
	case "never", "nie", "niemals", "jamais", "nunca", "从不":
		said = Never
	}
	switch {
	case said == Never && !yes, (said == Always || said == AlwaysHere) && !no:
		return said
	case said == Unclear && isYes(text, self...):
		return Once
	}
	return Unclear
}

// askAgainReply is the answer of an agent to "ask again".
const askAgainReply = "I ask you again before I do something for you in this conversation. What you allowed or refused " +
	"in all conversations stays as it is."

// forgetAnswers reports whether the person wrote "ask again" and nothing else; then it takes back the answers that hold
// in this conversation. A program or another agent cannot do so, because its text may come from a model.
func (d *Driver) forgetAnswers(ctx context.Context, call task.Call, tools []string) (bool, error) {
	if d.cfg.Grants == nil || len(tools) == 0 || !mayConsent(call.Caller) || call.AskedBy().Kind == "agent" {
		return false, nil
	}
	self := []string{strings.ToLower(call.Agent.Name), strings.ToLower(call.Agent.Handle)}
	switch strings.Join(splitWords(task.PlainText(call.Parts), self...), " ") {
	case "ask again", "frag wieder", "frage wieder", "pregunta otra vez", "demande encore", "再问我":
		return true, d.cfg.Grants.Forget(ctx, call)
	}
	return false, nil
}

// isYes reports whether text is a plain yes, at most eight words long. self holds the lower-case names
// of the agent; mentions of them are ignored. In doubt it reports false, because a yes runs a tool with
// effects.
func isYes(text string, self ...string) bool {
	w := splitWords(text, self...)
	if len(w) == 0 || len(w) > 8 {
		return false
	}
	rest := w[1:]
	if !slices.Contains(yesWords, w[0]) {
		if len(w) > 1 && slices.Contains([]string{"please", "bitte"}, w[0]) && slices.Contains(yesWords, w[1]) {
			return isYes(strings.Join(w[1:], " "))
		}
		head := strings.Join(w[:min(2, len(w))], " ")
		if !slices.Contains(yesPhrases, head) {
			return false
		}
		rest = w[2:]
	}
	for _, x := range rest {
		if !slices.Contains(fillers, x) && !slices.Contains(yesWords, x) {
			return false
		}
	}
	return true
}

// isNo reports whether text is a plain no: only words of no and fillers. Any other answer goes to the
// model as text.
func isNo(text string, self ...string) bool {
	no := false
	for _, x := range splitWords(text, self...) {
		switch {
		case slices.Contains(noWords, x):
			no = true
		case slices.Contains(yesWords, x), !slices.Contains(fillers, x):
			return false
		}
	}
	return no
}

package memory

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"agentsite/internal/grant"
)

// The messages of a person about the memory of an agent, as lower-case words.
var (
	listPhrases = []string{"what do you remember of me", "what do you remember about me", "what do you remember",
		"show me what you remember", "show what you remember", "was weißt du über mich", "was weisst du über mich",
		"was hast du dir gemerkt", "was hast du dir über mich gemerkt", "qué recuerdas de mí", "que recuerdas de mi",
		"de quoi te souviens tu", "que sais tu de moi"}
	lastPhrases = []string{"forget that", "forget this", "forget it", "vergiss das", "vergiss es", "olvida eso",
		"oublie ça", "oublie ca"}
	allPhrases = []string{"forget everything", "forget all", "forget all about me", "forget everything about me",
		"forget me", "vergiss alles", "vergiss alles über mich", "olvida todo", "oublie tout"}
	aboutPhrases = []string{"forget that ", "forget about ", "vergiss dass "}
)

const (
	// maxListed is the number of memories in a reply, maxShownText the characters of each.
	maxListed, maxShownText = 50, 300
	// maxAbout is the number of words after "forget about".
	maxAbout = 12
)

// Answer answers a message about the memory of an agent. "what do you remember of me?" lists it, "forget that" erases
// the last notes of this conversation, "forget 2" the second of the list, "forget about …" the one that fits, and
// "forget everything" all. ok is false for any other message, and if the agent has no memory of this place and was not
// allowed to have one.
func (s *Service) Answer(ctx context.Context, u Use, text string, self ...string) (reply string, ok bool, err error) {
	said := phraseOf(text, self)
	number, numbered := numberOf(said)
	about := aboutOf(said)
	list := slices.Contains(listPhrases, said)
	last, all := slices.Contains(lastPhrases, said), slices.Contains(allPhrases, said)
	if !list && !last && !all && !numbered && about == "" {
		return "", false, nil
	}
	have, err := s.cfg.Store.MemoriesAt(ctx, u.Place)
	if err != nil {
		return "", false, err
	}
	d, err := s.decideFor(ctx, u, u.PersonID)
	if err != nil || len(have) == 0 && d == grant.Undecided {
		return "", false, err
	}
	// People see and erase their own memories even if the agent may not use them. Those of others in a room are shown
	// while the agent may use them.
	others := slices.DeleteFunc(slices.Clone(have), func(m Memory) bool { return m.PersonID == u.PersonID })
	if others, err = s.keepUsable(ctx, u, others); err != nil {
		return "", false, err
	}
	have = slices.DeleteFunc(have, func(m Memory) bool {
		return m.PersonID != u.PersonID && !slices.ContainsFunc(others, func(o Memory) bool { return o.ID == m.ID })
	})
	switch {
	case list:
		return listReply(have, d, u), true, nil
	case numbered:
		if number < 1 || number > len(have) {
			reply := "I remember " + countThings(len(have)) + ". Ask “what do you remember of me?” for the numbers."
			return reply, true, nil
		}
		return s.forgetOwn(ctx, u, have[number-1:number])
	case all:
		return s.forgetOwn(ctx, u, have)
	case last:
		return s.forgetLast(ctx, u, have)
	}
	return s.forgetAbout(ctx, u, have, about)
}

// forgetOwn erases those of the memories that are the person's own.
func (s *Service) forgetOwn(ctx context.Context, u Use, list []Memory) (string, bool, error) {
	own := slices.DeleteFunc(slices.Clone(list), func(m Memory) bool { return m.PersonID != u.PersonID })
	if len(own) == 0 && len(list) > 0 {
		return "Another person said this; only that person can delete it.", true, nil
	}
	n, err := s.dropMemories(ctx, u.PersonID, own)
	if err != nil {
		return "", false, err
	}
	return "Forgotten: " + countThings(n) + ". It may still stand in conversations, where you can delete it.", true, nil
}

func (s *Service) forgetLast(ctx context.Context, u Use, have []Memory) (string, bool, error) {
	var last []Memory
	for _, m := range have {
		if m.ConversationID != u.ConversationID || m.PersonID != u.PersonID {
			continue
		}
		if len(last) > 0 && last[0].Seq != m.Seq {
			if m.Seq < last[0].Seq {
				continue
			}
			last = nil
		}
		last = append(last, m)
	}
	if len(last) == 0 {
		return "I noted nothing in this conversation. Ask “what do you remember of me?”, then write “forget” and " +
			"the number.", true, nil
	}
	return s.forgetOwn(ctx, u, last)
}

func (s *Service) forgetAbout(ctx context.Context, u Use, have []Memory, about string) (string, bool, error) {
	fit, err := s.searchShelf(ctx, u.Place, u.RoomID != "", func(b *shelf) []string {
		return b.searchTexts(about, tagOf(u.Place), maxListed, noCosine)
	})
	if err != nil {
		return "", false, err
	}
	var found []Memory
	for _, m := range have {
		if slices.ContainsFunc(fit, func(f Memory) bool { return f.ID == m.ID }) {
			found = append(found, m)
		}
	}
	switch len(found) {
	case 0:
		// It may be an order for the agent's work, such as "forget the second paragraph".
		return "", false, nil
	case 1:
		return s.forgetOwn(ctx, u, found)
	}
	var b strings.Builder
	b.WriteString("Several fit. Write “forget” and the number:\n\n")
	for i, m := range have {
		if slices.ContainsFunc(found, func(f Memory) bool { return f.ID == m.ID }) {
			writeItem(&b, i+1, m, u)
		}
	}
	return b.String(), true, nil
}

// listReply is the reply to the question for all memories of a place.
func listReply(have []Memory, d grant.Decision, u Use) string {
	var b strings.Builder
	switch {
	case len(have) == 0 && d == grant.Allowed:
		return "Nothing yet. You let me remember what you say."
	case len(have) == 0:
		return "Nothing. You do not let me remember."
	case d == grant.Denied:
		b.WriteString("You do not let me remember, so I use none of this:\n\n")
	case u.RoomID != "":
		b.WriteString("In this conversation I remember:\n\n")
	default:
		b.WriteString("I remember:\n\n")
	}
	for i, m := range have[:min(len(have), maxListed)] {
		writeItem(&b, i+1, m, u)
	}
	if len(have) > maxListed {
		fmt.Fprintf(&b, "\nand %s more, see [the page of your memories](/account/memories?agent=%s).\n",
			strconv.Itoa(len(have)-maxListed), u.Agent)
	}
	b.WriteString("\nWrite “forget 1” to have the first forgotten, or “forget everything”. " +
		"[Your memories](/account/memories?agent=" + u.Agent + ") are shown and edited on a page, too.")
	return b.String()
}

// writeItem writes one memory as an item of a list. Its text is shown as it is, not as Markdown.
func writeItem(b *strings.Builder, n int, m Memory, u Use) {
	text := []rune(m.Text)
	if len(text) > maxShownText {
		text = append(text[:maxShownText], '…')
	}
	by := ""
	if m.PersonID != u.PersonID {
		by = ", by another person"
	}
	fmt.Fprintf(b, "%d. `%s` (%s%s)\n", n, strings.ReplaceAll(string(text), "`", "'"),
		m.CreatedAt.UTC().Format("2 January 2006"), by)
}

func countThings(n int) string {
	if n == 1 {
		return "1 thing"
	}
	return strconv.Itoa(n) + " things"
}

// phraseOf returns the words of a message in lower case, without mentions of the agent; self has its names.
func phraseOf(text string, self []string) string {
	var out []string
	for _, w := range strings.Fields(strings.ToLower(text)) {
		if at, ok := strings.CutPrefix(strings.TrimRight(w, ",.:;!?"), "@"); ok && slices.Contains(self, at) {
			continue
		}
		out = append(out, strings.FieldsFunc(w, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
		})...)
	}
	if len(out) > 1 && (out[0] == "please" || out[0] == "bitte") {
		out = out[1:]
	}
	if n := len(out); n > 1 && (out[n-1] == "please" || out[n-1] == "bitte") {
		out = out[:n-1]
	}
	return strings.Join(out, " ")
}

// numberOf returns the number in "forget 2".
func numberOf(said string) (int, bool) {
	for _, verb := range []string{"forget number ", "forget ", "vergiss nummer ", "vergiss ", "olvida ", "oublie "} {
		if rest, ok := strings.CutPrefix(said, verb); ok {
			if n, err := strconv.Atoi(rest); err == nil {
				return n, true
			}
		}
	}
	return 0, false
}

// aboutOf returns the subject in "forget about my dog", "" if there is none.
func aboutOf(said string) string {
	for _, verb := range aboutPhrases {
		if rest, ok := strings.CutPrefix(said, verb); ok {
			if len(strings.Fields(rest)) > maxAbout {
				return ""
			}
			return rest
		}
	}
	return ""
}

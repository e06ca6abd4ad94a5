package model

import (
	"strings"
	"unicode/utf8"

	"agentsite/internal/openai"
)

// maxThoughts bounds the thoughts of a Reply in bytes; the rest is dropped.
const maxThoughts = 32 << 10

// thoughtTags are the tags between which models write their thoughts at the beginning of a line, and the
// ends of these.
var thoughtTags = map[string]string{
	"<think>": "</think>", "<thinking>": "</thinking>", "<thought>": "</thought>", "<thoughts>": "</thoughts>",
	"<reasoning>": "</reasoning>", "[THINK]": "[/THINK]", "◁think▷": "◁/think▷",
}

// loneEnd ends thoughts that have no beginning, because the server put it into the prompt.
const loneEnd = "</think>"

// thoughtSplitter separates the thoughts in a streamed answer from the answer. The zero value is ready
// for use.
type thoughtSplitter struct {
	pending string // text that may be a part of a tag
	inside  string // the tag that ends the present thoughts; "" outside of them
	line    string // the beginning of the present line of the answer
	last    byte   // of the answer
	fenced  bool   // the line is in a block of code
	tagged  bool   // there was a tag, so a lone end is text
	begun   bool   // the answer has more than white space
	trim    bool   // white space that follows is dropped
}

// addText takes the next piece. It returns the additions to the answer and to the thoughts. all is true if
// the whole answer before was thoughts, too.
func (s *thoughtSplitter) addText(text string) (answer, thought string, all bool) {
	text, s.pending = s.pending+text, ""
	var out, hidden strings.Builder
	for text != "" {
		if s.inside != "" {
			n, whole := findTag(text, s.inside)
			hidden.WriteString(text[:n])
			if text = text[n:]; !whole {
				s.pending = text
				break
			}
			text = text[len(s.inside):]
			s.inside, s.line, s.trim = "", "", true
			continue
		}
		n := strings.IndexAny(text, "<[◁")
		if n < 0 {
			n = len(text)
		}
		out.WriteString(s.passText(text[:n]))
		if text = text[n:]; text == "" {
			break
		}
		end, wait := s.tagAt(text)
		switch {
		case wait:
			s.pending, text = text, ""
		case end == "":
			out.WriteString(s.passText(text[:1]))
			text = text[1:]
		case end == loneEnd && !s.tagged && hasFold(text, loneEnd):
			hidden.WriteString(out.String())
			out.Reset()
			text, all, s.tagged, s.begun, s.trim = text[len(loneEnd):], true, true, false, true
			s.line = ""
		default:
			n := strings.IndexAny(text, ">]▷") // the last character of the tag
			_, size := utf8.DecodeRuneInString(text[n:])
			text = text[n+size:]
			s.inside, s.tagged = end, true
		}
	}
	return out.String(), hidden.String(), all
}

// flushRest returns the text that was held back because it could have become a tag.
func (s *thoughtSplitter) flushRest() (answer, thought string) {
	text := s.pending
	s.pending = ""
	if s.inside != "" {
		return "", text
	}
	return s.passText(text), ""
}

// passText notes where in its line the answer is after text, and returns text without white space that
// follows thoughts.
func (s *thoughtSplitter) passText(text string) string {
	if s.trim {
		if text = strings.TrimLeft(text, " \t\r\n"); text == "" {
			return ""
		}
		s.trim = false
		if s.begun {
			text = "\n\n" + text
		}
	}
	if text != "" {
		s.last = text[len(text)-1]
	}
	s.begun = s.begun || strings.TrimSpace(text) != ""
	for rest := text; rest != ""; {
		part, after, ended := strings.Cut(rest, "\n")
		if len(s.line) < 8 {
			s.line += part[:min(len(part), 8)]
		}
		if mark := strings.TrimSpace(s.line); ended {
			if strings.HasPrefix(mark, "```") || strings.HasPrefix(mark, "~~~") {
				s.fenced = !s.fenced
			}
			s.line = ""
		}
		rest = after
	}
	return text
}

// tagAt returns the end of the thoughts that text begins, or loneEnd; "" for none. wait is true if more
// text is needed to know.
func (s *thoughtSplitter) tagAt(text string) (end string, wait bool) {
	if s.fenced {
		return "", false
	}
	if strings.TrimSpace(s.line) == "" {
		for begin, end := range thoughtTags {
			if hasFold(text, begin) {
				return end, false
			}
			wait = wait || hasFold(begin, text)
		}
	}
	if s.tagged || s.last == '`' || !s.begun {
		return "", wait
	}
	if hasFold(text, loneEnd) {
		return loneEnd, false
	}
	return "", wait || hasFold(loneEnd, text)
}

// hasFold reports whether s begins with prefix, in any case.
func hasFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// findTag returns the place of tag in text, or the place where a part of it may begin.
func findTag(text, tag string) (at int, whole bool) {
	for i := range text {
		if hasFold(text[i:], tag) {
			return i, true
		}
		if hasFold(tag, text[i:]) {
			return i, false
		}
	}
	return len(text), false
}

// addThoughts appends to the thoughts of a reply, within their bound.
func addThoughts(b *strings.Builder, s string) {
	b.WriteString(s[:min(len(s), maxThoughts-b.Len())])
}

// EmptyReason returns a sentence about the reason why a reply has no text.
func (r Reply) EmptyReason() string {
	switch {
	case r.Finish == openai.FinishLength && r.Thoughts != "":
		return "The model came to its length limit in its thoughts, before it said anything."
	case r.Finish == openai.FinishLength:
		return "The model came to its length limit before it said anything."
	case r.Thoughts != "":
		return "The model answered with nothing but its thoughts."
	}
	return "The model answered with nothing."
}

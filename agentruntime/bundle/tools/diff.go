package tools

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const diffHelp = notUnderstood + "Send two texts with a line of `---` between them, or each in a block of three " +
	"backticks, and get the differences. Send a text and then a patch with lines of `@@` in the same way, and get the changed text."

const (
	// maxCells bounds the table of a comparison: the product of the numbers of lines.
	maxCells = 4 << 20
	// around is the number of equal lines before and after a change.
	around = 3
)

func answerDiff(text string) string {
	before, after, ok := cutTexts(text)
	if !ok {
		return diffHelp
	}
	if isPatch(after) || isPatch(before) {
		if isPatch(before) && !isPatch(after) {
			before, after = after, before
		}
		out, err := applyPatch(before, after)
		if err != nil {
			return "I cannot apply the patch, as it does not fit: " + err.Error() + "."
		}
		return "```\n" + out + "\n```"
	}
	hunks, added, removed := compareTexts(splitLines(before), splitLines(after))
	if hunks == "" {
		return "Both texts are equal."
	}
	return countOf(added, "line") + " added, " + countOf(removed, "line") + " removed.\n\n```diff\n" + hunks + "```"
}

// cutTexts returns the two texts of a message.
func cutTexts(text string) (before, after string, ok bool) {
	if blocks, _ := cutBlocks(text); len(blocks) >= 2 {
		return blocks[0], blocks[1], true
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if l = strings.TrimSpace(l); l == "---" || l == "===" {
			return strings.Join(lines[:i], "\n"), strings.Join(lines[i+1:], "\n"), true
		}
	}
	return "", "", false
}

func splitLines(s string) []string {
	if s = strings.TrimRight(s, "\n"); s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

func isPatch(s string) bool { return strings.HasPrefix(s, "@@ ") || strings.Contains(s, "\n@@ ") }

// edit is a line of a comparison: ' ' for a common one, '-' for a removed one, '+' for an added one.
type edit struct {
	mark byte
	text string
}

// compareLines returns the lines of both texts by their longest common subsequence.
func compareLines(a, b []string) []edit {
	var head, tail []edit
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		head, a, b = append(head, edit{' ', a[0]}), a[1:], b[1:]
	}
	end := 0
	for end < min(len(a), len(b)) && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	for _, l := range a[len(a)-end:] {
		tail = append(tail, edit{' ', l})
	}
	a, b = a[:len(a)-end], b[:len(b)-end]
	i, j, width := 0, 0, len(b)+1
	if (len(a)+1)*width <= maxCells {
		common := make([]int32, (len(a)+1)*width)
		for i := len(a) - 1; i >= 0; i-- {
			for j := len(b) - 1; j >= 0; j-- {
				at := i*width + j
				if common[at] = max(common[at+width], common[at+1]); a[i] == b[j] {
					common[at] = common[at+width+1] + 1
				}
			}
		}
		for i < len(a) && j < len(b) {
			switch at := i*width + j; {
			case a[i] == b[j]:
				head, i, j = append(head, edit{' ', a[i]}), i+1, j+1
			case common[at+width] >= common[at+1]:
				head, i = append(head, edit{'-', a[i]}), i+1
			default:
				head, j = append(head, edit{'+', b[j]}), j+1
			}
		}
	}
	for _, l := range a[i:] {
		head = append(head, edit{'-', l})
	}
	for _, l := range b[j:] {
		head = append(head, edit{'+', l})
	}
	return append(head, tail...)
}

// compareTexts returns the differences in the unified form, "" for none.
func compareTexts(a, b []string) (text string, added, removed int) {
	list := compareLines(a, b)
	var out strings.Builder
	line, other := 1, 1 // of the next line in both texts
	for i := 0; i < len(list); {
		if list[i].mark == ' ' {
			i, line, other = i+1, line+1, other+1
			continue
		}
		from := max(0, i-around)
		to, equal := i, 0
		for to < len(list) && equal <= 2*around {
			if equal++; list[to].mark != ' ' {
				equal = 0
			}
			to++
		}
		to = min(len(list), to-max(0, equal-around))
		line, other = line-(i-from), other-(i-from)
		var body strings.Builder
		old, now := 0, 0
		for _, e := range list[from:to] {
			body.WriteString(string(e.mark) + e.text + "\n")
			if e.mark != '+' {
				old++
			}
			if e.mark != '-' {
				now++
			}
			switch e.mark {
			case '+':
				added++
			case '-':
				removed++
			}
		}
		fmt.Fprintf(&out, "@@ -%s +%s @@\n%s", spanOf(line, old), spanOf(other, now), body.String())
		line, other, i = line+old, other+now, to
	}
	return out.String(), added, removed
}

// spanOf writes the first line and the number of lines of a hunk. An empty one names the line before it.
func spanOf(first, count int) string {
	if count == 0 {
		first--
	}
	return strconv.Itoa(first) + "," + strconv.Itoa(count)
}

// hunk is a part of a patch: the lines that it replaces, and the new ones.
type hunk struct {
	first    int // the number of the first line, from 1
	old, now []string
}

// readPatch reads the unified form.
func readPatch(text string) ([]hunk, error) {
	var list []hunk
	for l := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		if strings.HasPrefix(l, "@@ ") {
			field := strings.Fields(l)
			if len(field) < 3 || !strings.HasPrefix(field[1], "-") {
				return nil, fmt.Errorf("%q is no start of a part", l)
			}
			number, count, _ := strings.Cut(field[1][1:], ",")
			n, err := strconv.Atoi(number)
			if err != nil {
				return nil, fmt.Errorf("%q is no start of a part", l)
			}
			if count == "0" {
				n++ // the part goes after that line
			}
			list = append(list, hunk{first: max(n, 1)})
			continue
		}
		if len(list) == 0 {
			continue // names of files
		}
		h := &list[len(list)-1]
		mark, rest := byte(' '), l
		if l != "" {
			mark, rest = l[0], l[1:]
		}
		switch mark {
		case ' ':
			h.old, h.now = append(h.old, rest), append(h.now, rest)
		case '-':
			h.old = append(h.old, rest)
		case '+':
			h.now = append(h.now, rest)
		case '\\': // a note about the end of the file
		default:
			return nil, fmt.Errorf("the line %q begins with no space, + or -", l)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("it has no part")
	}
	return list, nil
}

// applyPatch returns a text with the changes of a patch. A part that moved is found at the nearest place that has its
// lines.
func applyPatch(text, patch string) (string, error) {
	list, err := readPatch(patch)
	if err != nil {
		return "", err
	}
	lines, done, moved := splitLines(text), 0, 0
	var out []string
	for n, h := range list {
		at := findLines(lines, h.old, h.first-1+moved, done)
		if at < 0 {
			return "", fmt.Errorf("part %d, at line %d, has other lines than the text", n+1, h.first)
		}
		moved = at - (h.first - 1)
		out = append(out, lines[done:at]...)
		out = append(out, h.now...)
		done = at + len(h.old)
	}
	return strings.Join(append(out, lines[done:]...), "\n"), nil
}

// findLines returns the place of want in lines that is nearest to at and not before from, -1 if there is none.
func findLines(lines, want []string, at, from int) int {
	fits := func(at int) bool {
		if at < from || at+len(want) > len(lines) {
			return false
		}
		for i, w := range want {
			if lines[at+i] != w {
				return false
			}
		}
		return true
	}
	for d := range len(lines) + 1 {
		if fits(at - d) {
			return at - d
		}
		if fits(at + d) {
			return at + d
		}
	}
	return -1
}

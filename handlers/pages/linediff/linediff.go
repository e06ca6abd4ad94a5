// Package linediff compares two texts line by line, for pages that show what a change did.
package linediff

import (
	"fmt"

	"agentsite/templates"
)

const (
	// maxCells bounds the table of a comparison by lines: the product of the line numbers. A larger pair
	// of texts is shown as removed and added entirely.
	maxCells = 1 << 20
	// around is the number of unchanged lines that are shown before and after a change.
	around = 2
)

// Compare returns the lines of both texts in order, marked as removed, added or common, by the longest
// commonLines subsequence.
func Compare(before, after []string) []templates.DiffLine {
	var out []templates.DiffLine
	add := func(mark string, list ...string) {
		for _, l := range list {
			out = append(out, templates.DiffLine{Mark: mark, Text: l})
		}
	}
	head := 0
	for head < min(len(before), len(after)) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < min(len(before), len(after))-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	add(templates.Same, before[:head]...)
	b, a := before[head:len(before)-tail], after[head:len(after)-tail]
	if (len(b)+1)*(len(a)+1) > maxCells {
		add(templates.Removed, b...)
		add(templates.Added, a...)
	} else {
		for _, l := range commonLines(b, a) {
			add(l.Mark, l.Text)
		}
	}
	add(templates.Same, before[len(before)-tail:]...)
	return out
}

// commonLines computes Compare with a table of the lengths of the longest common subsequences of all
// remainders. The caller limits the sizes by maxCells.
func commonLines(b, a []string) []templates.DiffLine {
	wide := len(a) + 1
	// uint16 suffices, because maxCells keeps the shorter text below 1024 lines
	rest := make([]uint16, (len(b)+1)*wide)
	for i := len(b) - 1; i >= 0; i-- {
		for j := len(a) - 1; j >= 0; j-- {
			if b[i] == a[j] {
				rest[i*wide+j] = rest[(i+1)*wide+j+1] + 1
			} else {
				rest[i*wide+j] = max(rest[(i+1)*wide+j], rest[i*wide+j+1])
			}
		}
	}
	var out []templates.DiffLine
	i, j := 0, 0
	for i < len(b) || j < len(a) {
		switch {
		case i < len(b) && j < len(a) && b[i] == a[j]:
			out = append(out, templates.DiffLine{Mark: templates.Same, Text: b[i]})
			i, j = i+1, j+1
		case j == len(a) || i < len(b) && rest[(i+1)*wide+j] >= rest[i*wide+j+1]:
			out = append(out, templates.DiffLine{Mark: templates.Removed, Text: b[i]})
			i++
		default:
			out = append(out, templates.DiffLine{Mark: templates.Added, Text: a[j]})
			j++
		}
	}
	return out
}

// Fold replaces unchanged lines that are further than around from any change by their number.
func Fold(list []templates.DiffLine) []templates.DiffLine {
	near := make([]bool, len(list))
	for i, l := range list {
		if l.Mark != templates.Same {
			for k := max(0, i-around); k <= min(len(list)-1, i+around); k++ {
				near[k] = true
			}
		}
	}
	var out []templates.DiffLine
	for i := 0; i < len(list); i++ {
		if near[i] {
			out = append(out, list[i])
			continue
		}
		n := i
		for n < len(list) && !near[n] {
			n++
		}
		if n == i+1 { // a single line is kept, because the note about it would take as much space
			out = append(out, list[i])
			continue
		}
		out = append(out, templates.DiffLine{Mark: templates.Left,
			Text: fmt.Sprintf("%d lines as before", n-i)})
		i = n - 1
	}
	return out
}

package qr

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestSVG_IsReadAgain(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"x", "http://127.0.0.1:8080/agents/calc", "https://agents.example.org/agents/an-agent-with-the-longest-name-allowed-4",
		"https://agents.example.org/chat/new?agent=calc&text=" + strings.Repeat("How%20much%20is%202%2B2%3F", 4), "https://agents.example.org/" + strings.Repeat("~aB3", 45)} {
		svg, err := SVG(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, svg); got != text {
			t.Errorf("%q is read as %q", text, got)
		}
	}
}

func TestSVG_IsDarkOnLightWithRoomAround(t *testing.T) {
	t.Parallel()
	svg, err := SVG("https://agents.example.org/agents/calc")
	if err != nil {
		t.Fatal(err)
	}
	side, dark := squares(t, svg)
	if !bytes.Contains(svg, []byte(`<path fill="#fff" d="M0 0h`+strconv.Itoa(side)+"v"+strconv.Itoa(side)+`H0z"/>`)) {
		t.Error("nothing light below it")
	}
	for at := range dark {
		if min(at[0], at[1]) < 4 || max(at[0], at[1]) >= side-4 {
			t.Fatalf("a dark square at %v of %d", at, side)
		}
	}
}

func TestSVG_RefusesWhatIsTooLong(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", strings.Repeat("a", MaxText+1)} {
		if _, err := SVG(text); err == nil {
			t.Errorf("%d bytes are drawn", len(text))
		}
	}
	if _, err := SVG(strings.Repeat("ä", MaxText/2)); err != nil {
		t.Errorf("as much as is allowed: %v", err)
	}
}

// squares are the dark squares of a picture and the length of its side.
func squares(t *testing.T, svg []byte) (side int, dark map[[2]int]bool) {
	t.Helper()
	view := regexp.MustCompile(`viewBox="0 0 (\d+) (\d+)"`).FindSubmatch(svg)
	if view == nil || string(view[1]) != string(view[2]) {
		t.Fatalf("no square: %.200s", svg)
	}
	side, _ = strconv.Atoi(string(view[1]))
	dark = make(map[[2]int]bool)
	for _, m := range regexp.MustCompile(`M(\d+) (\d+)h(\d+)v1h-(\d+)z`).FindAllSubmatch(svg, -1) {
		x, _ := strconv.Atoi(string(m[1]))
		y, _ := strconv.Atoi(string(m[2]))
		n, _ := strconv.Atoi(string(m[3]))
		for i := range n {
			dark[[2]int{x + i, y}] = true
		}
	}
	return side, dark
}

// shape is how the words of a version are cut into blocks at level M: blocks of
// short data words, blocks of one word more, and words of correction in each.
type shape struct{ blocks, short, longer, correction int }

var shapes = []shape{1: {1, 16, 0, 10}, {1, 28, 0, 16}, {1, 44, 0, 26}, {2, 32, 0, 18}, {2, 43, 0, 24}, {4, 27, 0, 16}, {4, 31, 0, 18}, {2, 38, 2, 22}, {3, 36, 2, 22}, {4, 43, 1, 26}}

// aligned are the middles of the small marks of a version.
var aligned = [][]int{1: nil, {6, 18}, {6, 22}, {6, 26}, {6, 30}, {6, 34}, {6, 22, 38}, {6, 24, 42}, {6, 26, 46}, {6, 28, 50}}

// read decodes a code of level M and version 1 to 10, by ISO/IEC 18004 alone.
func read(t *testing.T, svg []byte) string {
	t.Helper()
	side, dark := squares(t, svg)
	n := side - 8
	bit := func(x, y int) int {
		if dark[[2]int{x + 4, y + 4}] {
			return 1
		}
		return 0
	}
	version := (n - 17) / 4
	if n != 17+4*version || version < 1 || version >= len(shapes) {
		t.Fatalf("a code of %d squares", n)
	}
	format := 0
	for i := range 15 {
		x, y := 8, i
		switch {
		case i > 8:
			x, y = 14-i, 8
		case i == 8:
			x, y = 7, 8
		case i > 5:
			y = i + 1
		}
		format |= bit(x, y) << i
	}
	format ^= 0x5412
	rest := format >> 10 << 10
	for i := 14; i >= 10; i-- {
		if rest>>i&1 == 1 {
			rest ^= 0x537 << (i - 10)
		}
	}
	if rest != format&0x3ff || format>>13 != 0 {
		t.Fatalf("its format is %015b", format)
	}
	flips := []func(x, y int) bool{
		func(x, y int) bool { return (x+y)%2 == 0 }, func(x, y int) bool { return y%2 == 0 }, func(x, y int) bool { return x%3 == 0 }, func(x, y int) bool { return (x+y)%3 == 0 },
		func(x, y int) bool { return (y/2+x/3)%2 == 0 }, func(x, y int) bool { return x*y%2+x*y%3 == 0 }, func(x, y int) bool { return (x*y%2+x*y%3)%2 == 0 }, func(x, y int) bool { return ((x+y)%2+x*y%3)%2 == 0 },
	}
	flip := flips[format>>10&7]
	fixed := func(x, y int) bool {
		if x == 6 || y == 6 || x < 9 && y < 9 || x < 9 && y >= n-8 || x >= n-8 && y < 9 {
			return true
		}
		if version >= 7 && (x >= n-11 && y < 6 || y >= n-11 && x < 6) {
			return true
		}
		last := n - 7
		for _, cx := range aligned[version] {
			for _, cy := range aligned[version] {
				corner := cx == 6 && (cy == 6 || cy == last) || cx == last && cy == 6
				if !corner && max(cx-x, x-cx, cy-y, y-cy) <= 2 {
					return true
				}
			}
		}
		return false
	}
	var bits []int
	up := true
	for right := n - 1; right > 0; right -= 2 {
		if right == 6 {
			right--
		}
		for i := range n {
			y := i
			if up {
				y = n - 1 - i
			}
			for _, x := range []int{right, right - 1} {
				if !fixed(x, y) {
					b := bit(x, y)
					if flip(x, y) {
						b ^= 1
					}
					bits = append(bits, b)
				}
			}
		}
		up = !up
	}
	s := shapes[version]
	count := s.blocks + s.longer
	blocks := make([][]byte, count)
	next := func() byte {
		w := 0
		for _, b := range bits[:8] {
			w = w<<1 | b
		}
		bits = bits[8:]
		return byte(w)
	}
	for i := range s.short + 1 {
		for b := range count {
			if i < s.short || b >= s.blocks {
				blocks[b] = append(blocks[b], next())
			}
		}
	}
	for range s.correction {
		for b := range count {
			blocks[b] = append(blocks[b], next())
		}
	}
	var data []byte
	for i, b := range blocks {
		root := byte(1)
		for range s.correction {
			sum := byte(0)
			for _, w := range b {
				sum = times(sum, root) ^ w
			}
			if sum != 0 {
				t.Fatalf("block %d does not correct itself", i)
			}
			root = times(root, 2)
		}
		data = append(data, b[:len(b)-s.correction]...)
	}
	at := 0
	take := func(n int) (v int) {
		for range n {
			v = v<<1 | int(data[at/8]>>(7-at%8)&1)
			at++
		}
		return v
	}
	if mode := take(4); mode != 4 {
		t.Fatalf("not bytes but mode %d", mode)
	}
	width := 8
	if version > 9 {
		width = 16
	}
	out := make([]byte, take(width))
	for i := range out {
		out[i] = byte(take(8))
	}
	return string(out)
}

// times multiplies in the field that the correction works in.
func times(a, b byte) (p byte) {
	for ; b > 0; b >>= 1 {
		if b&1 == 1 {
			p ^= a
		}
		high := a & 0x80
		a <<= 1
		if high != 0 {
			a ^= 0x1d
		}
	}
	return p
}

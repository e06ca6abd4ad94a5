package templates

import (
	"hash/fnv"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An avatar without a picture is a mosaic of nine tiles, mirrored left to right, in one of
// avatarHues colours. It depends only on the name, so it looks the same everywhere and needs no
// request. Colours are CSS classes, because the pages allow no inline style.

const avatarHues = 12

// The tiles are SVG paths in a square of 8 × 8 units. Side tiles are also drawn mirrored, so they
// need not be symmetric; middle tiles must be.
var (
	sideTiles = [...]string{
		"",
		"M0 0h8v8h-8z",
		"M0 0h8a8 8 0 0 1-8 8z",
		"M8 0v8h-8a8 8 0 0 1 8-8z",
		"M0 8v-8a8 8 0 0 1 8 8z",
		"M8 8h-8a8 8 0 0 1 8-8z",
		"M0 0l8 8h-8z",
	}
	middleTiles = [...]string{
		"",
		"M0 0h8v8h-8z",
		"M4 .5a3.500 3.500 0 1 1 0 7a3.500 3.500 0 1 1 0-7z",
		"M4 0l4 4-4 4-4-4z",
		"M0 8a4 4 0 0 1 8 0z",
	}
)

// iconHref returns the address of an agent's picture. The hash makes it unique to the content, so
// browsers may cache it for ever.
func iconHref(ref, hash string) string { return agentHref(ref) + "/icon?v=" + hash }

type tile struct {
	path      string
	transform string
	class     string
}

func avatarBits(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(strings.ToLower(name)))
	x := h.Sum64() // Names that differ little have similar high bits in FNV, so mix them as splitmix64 does.
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

func avatarClass(name string) string {
	return "hue-" + strconv.FormatUint(avatarBits(name)%avatarHues, 10)
}

func avatarTiles(name string) []tile {
	bits := avatarBits(name) / avatarHues
	next := func(n int) int {
		i := bits % uint64(n)
		bits /= uint64(n)
		return int(i)
	}
	var tiles []tile
	add := func(path string, column, row int, mirrored bool) {
		if path == "" {
			return
		}
		x, y := strconv.Itoa(4+8*column), strconv.Itoa(4+8*row)
		transform := "translate(" + x + " " + y + ")"
		if mirrored {
			transform = "translate(" + strconv.Itoa(12+8*column) + " " + y + ") scale(-1 1)"
		}
		class := "avatar-tile"
		if column == 1 {
			class = "avatar-middle"
		}
		tiles = append(tiles, tile{path, transform, class})
	}
	for row := range 3 {
		side, middle := sideTiles[next(len(sideTiles))], middleTiles[next(len(middleTiles))]
		if row == 1 && side == "" && middle == "" {
			middle = middleTiles[2]
		}
		add(side, 0, row, false)
		add(middle, 1, row, false)
		add(side, 2, row, true)
	}
	return tiles
}

// initialOf returns the letter on a person's avatar, "?" for a name without a printable one.
func initialOf(name string) string {
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(name, "@ "))
	if r == utf8.RuneError || !unicode.IsPrint(r) {
		return "?"
	}
	return string(unicode.ToUpper(r))
}

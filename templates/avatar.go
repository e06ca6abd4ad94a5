package templates

import (
	"hash/fnv"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An agent without a picture has a face: a head, ears, eyes and a mouth in one of avatarHues colours. It depends only
// on the name, so that it looks the same everywhere and needs no request. Its eyes are open while the agent is alive
// and closed while it does not answer, and a ring around it says the same. Colours are CSS classes, because the pages
// allow no inline style.

const avatarHues = 12

// The parts of a face are SVG paths in a square of 32 × 32 units.
var (
	faceHeads = [...]string{
		"M11 8h10a6 6 0 0 1 6 6v7a6 6 0 0 1-6 6h-10a6 6 0 0 1-6-6v-7a6 6 0 0 1 6-6z",
		"M16 7a10.500 10.500 0 1 1 0 21a10.500 10.500 0 1 1 0-21z",
		"M5.500 27.500v-10a10.500 10.500 0 0 1 21 0v10z",
		"M11 7.500h10l6 6v8l-6 6h-10l-6-6v-8z",
		"M12 10h8a8.500 8.500 0 0 1 0 17h-8a8.500 8.500 0 0 1 0-17z",
		"M16 7a10.500 10.500 0 0 1 10.500 10.500v10h-10.500a10.250 10.250 0 0 1 0-20.500z",
		"M6 12a4 4 0 0 1 4-4h12a4 4 0 0 1 4 4l-2 12a4 4 0 0 1-4 3.500h-8a4 4 0 0 1-4-3.500z",
	}
	faceEars = [...]string{
		"",
		"M15 4h2v5h-2zM16 1.500a2 2 0 1 1 0 4a2 2 0 1 1 0-4z",
		"M9 3.500h2v6h-2zM21 3.500h2v6h-2z",
		"M1.500 15h5v6h-5zM25.500 15h5v6h-5z",
		"M5 4l7 5h-7zM27 4l-7 5h7z",
		"M10 9.500a6 6 0 0 1 12 0z",
		"M6 5a3 3 0 1 1 0 6a3 3 0 1 1 0-6zM26 5a3 3 0 1 1 0 6a3 3 0 1 1 0-6z",
	}
	faceEyes = [...]string{
		"M11.500 14a2 2 0 1 1 0 4a2 2 0 1 1 0-4zM20.500 14a2 2 0 1 1 0 4a2 2 0 1 1 0-4z",
		"M11 13.500h1a1 1 0 0 1 1 1v3a1 1 0 0 1-1 1h-1a1 1 0 0 1-1-1v-3a1 1 0 0 1 1-1z" +
			"M20 13.500h1a1 1 0 0 1 1 1v3a1 1 0 0 1-1 1h-1a1 1 0 0 1-1-1v-3a1 1 0 0 1 1-1z",
		"M11.500 13a3 3 0 1 1 0 6a3 3 0 1 1 0-6zM20.500 13a3 3 0 1 1 0 6a3 3 0 1 1 0-6z",
		"M10 14h3.500v3.500h-3.500zM18.500 14h3.500v3.500h-3.500z",
		"M16 12.500a3.500 3.500 0 1 1 0 7a3.500 3.500 0 1 1 0-7z",
		"M10 14h12a2 2 0 0 1 0 4h-12a2 2 0 0 1 0-4z",
	}
	faceMouths = [...]string{
		"M12 22a4 3 0 0 0 8 0z",
		"M12.500 22h7v1.500h-7z",
		"M16 21.250a1.750 1.750 0 1 1 0 3.500a1.750 1.750 0 1 1 0-3.500z",
		"M12 22h1.500v2h-1.500zM15.250 22h1.500v2h-1.500zM18.500 22h1.500v2h-1.500z",
		"M13.500 21.500h5v3h-5z",
	}
)

// closedEyes are the eyes of an agent that does not answer.
const closedEyes = "M9.500 16h4.500v1.250h-4.500zM18 16h4.500v1.250h-4.500z"

// iconHref returns the address of an agent's picture. The hash makes it unique to the content, so
// browsers may cache it for ever.
func iconHref(ref, hash string) string { return agentHref(ref) + "/icon?v=" + hash }

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

// face holds the paths of an agent's face.
type face struct{ head, ears, eyes, mouth string }

// faceOf returns the face of the agent with a name in a state of liveness, "" for an unknown one.
func faceOf(name, live string) face {
	bits := avatarBits(name) / avatarHues
	choose := func(parts []string) string {
		i := bits % uint64(len(parts))
		bits /= uint64(len(parts))
		return parts[i]
	}
	f := face{head: choose(faceHeads[:]), ears: choose(faceEars[:]), eyes: choose(faceEyes[:]), mouth: choose(faceMouths[:])}
	if asleep(live) {
		f.eyes = closedEyes
	}
	return f
}

// asleep reports whether an agent in a state of liveness does not answer.
func asleep(live string) bool { return live == "unreachable" || live == "wrong_protocol" }

// ringClass returns the class of the ring around a face; "" for none.
func ringClass(live string) string {
	switch {
	case live == "alive":
		return "face-alive"
	case live == "needs_auth":
		return "face-wants"
	case asleep(live):
		return "face-asleep"
	}
	return ""
}

// initialOf returns the letter on a person's avatar, "?" for a name without a printable one.
func initialOf(name string) string {
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(name, "@ "))
	if r == utf8.RuneError || !unicode.IsPrint(r) {
		return "?"
	}
	return string(unicode.ToUpper(r))
}

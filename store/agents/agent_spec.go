package agents

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentsite/internal/hub"
)

// specReader reads the JSON of specs as specOf writes it, four times as fast
// as encoding/json: strings without escapes stay where they are, and nothing
// is looked up by reflection. It gives up on whatever looks otherwise, and the
// caller asks encoding/json, so that no text is read in two ways. It leaves
// out Config. One serves one goroutine at a time.
type specReader struct {
	text string
	at   int
	bad  bool

	skills  []hub.Skill
	strings []string
}

// readSpec reports whether it read the text.
func (r *specReader) readSpec(text string, s *AgentSpec) bool {
	r.text, r.at, r.bad = text, 0, !utf8.ValidString(text)
	seen := 0
	r.object(func(key string) {
		field := slices.Index(specKeys, key)
		if field < 0 || seen&(1<<field) != 0 {
			r.bad = true
			return
		}
		seen |= 1 << field
		switch key {
		case "description":
			s.Description = r.string()
		case "endpoint":
			s.Endpoint = r.string()
		case "skills":
			s.Skills = r.skillList()
		case "config":
			r.bad = !json.Valid([]byte(r.raw())) || r.bad
		case "input_modes":
			s.InputModes = r.list()
		case "output_modes":
			s.OutputModes = r.list()
		case "languages":
			s.Languages = r.list()
		case "icon":
			s.Icon = r.string()
		case "publisher":
			s.Publisher = r.string()
		case "limits":
			r.bad = json.Unmarshal([]byte(r.raw()), &s.Limits) != nil || r.bad
		case "embed_origins":
			s.EmbedOrigins = r.list()
		}
	})
	return !r.bad && r.at == len(text)
}

var specKeys = []string{"description", "endpoint", "skills", "config", "input_modes", "output_modes", "languages",
	"icon", "publisher", "limits", "embed_origins"}

// is reads the byte if it comes next.
func (r *specReader) is(c byte) bool {
	if r.at < len(r.text) && r.text[r.at] == c {
		r.at++
		return true
	}
	return false
}

func (r *specReader) must(c byte) {
	if !r.is(c) {
		r.bad = true
	}
}

// null reads a null if it comes next.
func (r *specReader) null() bool {
	if strings.HasPrefix(r.text[r.at:], "null") {
		r.at += len("null")
		return true
	}
	return false
}

// object calls value where the value of each key starts.
func (r *specReader) object(value func(key string)) {
	r.must('{')
	if r.bad || r.is('}') {
		return
	}
	for !r.bad {
		key := r.string()
		if r.must(':'); r.bad {
			return
		}
		if value(key); r.is('}') {
			return
		}
		r.must(',')
	}
}

// array calls value where each one starts.
func (r *specReader) array(value func()) {
	r.must('[')
	if r.bad || r.is(']') {
		return
	}
	for !r.bad {
		if value(); r.is(']') {
			return
		}
		r.must(',')
	}
}

func (r *specReader) list() []string {
	if r.null() {
		return nil
	}
	list := r.strings[:0]
	r.array(func() { list = append(list, r.string()) })
	r.strings = list
	return append(make([]string, 0, len(list)), list...)
}

func (r *specReader) skillList() []hub.Skill {
	if r.null() {
		return nil
	}
	list := r.skills[:0]
	r.array(func() { list = append(list, r.skill()) })
	r.skills = list
	return append(make([]hub.Skill, 0, len(list)), list...)
}

func (r *specReader) skill() (s hub.Skill) {
	seen := 0
	once := func(bit int) {
		r.bad = r.bad || seen&bit != 0
		seen |= bit
	}
	r.object(func(key string) {
		switch key {
		case "id":
			once(1)
			s.ID = r.string()
		case "name":
			once(2)
			s.Name = r.string()
		case "description":
			once(4)
			s.Description = r.string()
		case "tags":
			once(8)
			s.Tags = r.list()
		case "examples":
			once(16)
			s.Examples = r.list()
		default:
			r.bad = true
		}
	})
	return s
}

// special marks the bytes at which a string ends or is not as it is written.
var special = func() (t [256]bool) {
	for c := range 0x20 {
		t[c] = true
	}
	t['"'], t['\\'] = true, true
	return t
}()

func (r *specReader) string() string {
	if r.must('"'); r.bad {
		return ""
	}
	from := r.at
	for i := from; i < len(r.text); i++ {
		if !special[r.text[i]] {
			continue
		}
		switch r.text[i] {
		case '"':
			r.at = i + 1
			return r.text[from:i]
		case '\\':
			return r.escaped(from, i)
		}
		break
	}
	r.bad = true
	return ""
}

// escaped is string from the first escape on.
func (r *specReader) escaped(from, i int) string {
	b := append(make([]byte, 0, len(r.text[from:i])+64), r.text[from:i]...)
	for i < len(r.text) {
		c := r.text[i]
		switch {
		case c == '"':
			r.at = i + 1
			return string(b)
		case c < 0x20, c == '\\' && i+1 == len(r.text):
			r.bad = true
			return ""
		case c != '\\':
			b = append(b, c)
			i++
			continue
		}
		i += 2
		switch c = r.text[i-1]; c {
		case '"', '\\', '/':
			b = append(b, c)
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case 'u':
			if i+4 > len(r.text) {
				r.bad = true
				return ""
			}
			n, err := strconv.ParseUint(r.text[i:i+4], 16, 16)
			if err != nil || n >= 0xD800 && n < 0xE000 { // half of a rune
				r.bad = true
				return ""
			}
			b = utf8.AppendRune(b, rune(n))
			i += 4
		default:
			r.bad = true
			return ""
		}
	}
	r.bad = true
	return ""
}

// raw returns the text of a value, not checked beyond its brackets.
func (r *specReader) raw() string {
	from, depth := r.at, 0
	for r.at < len(r.text) {
		switch c := r.text[r.at]; c {
		case '"':
			r.string()
			if r.bad {
				return ""
			}
		case '{', '[':
			depth++
			r.at++
		case '}', ']', ',':
			if depth == 0 {
				return r.text[from:r.at]
			}
			if c != ',' {
				depth--
			}
			r.at++
		default:
			r.at++
		}
	}
	r.bad = true
	return ""
}

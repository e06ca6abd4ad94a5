package agents

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentsite/internal/hub"
)

// specReader decodes the JSON of specs as specOf writes it, four times as fast as encoding/json: strings
// without escapes share memory with the text, and no field is found by reflection. It gives up on any
// other form, and the caller uses encoding/json instead, so that both read the same. It leaves out
// Config. It is not safe for concurrent use.
type specReader struct {
	text string
	at   int
	bad  bool

	skills  []hub.Skill
	strings []string
}

// readSpec decodes text into s. It returns false if the text has another form; s is undefined then.
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

// is consumes the next byte if it is c, and reports whether it was.
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

// null consumes a null, and reports whether it was next.
func (r *specReader) null() bool {
	if strings.HasPrefix(r.text[r.at:], "null") {
		r.at += len("null")
		return true
	}
	return false
}

// object calls value for each key, at the beginning of its value.
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

// array calls value at the beginning of each element.
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

// special marks the bytes at which a string ends, or which do not stand for themselves.
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

// escaped reads a string that begins at from and has its first escape at i.
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
			if err != nil || n >= 0xD800 && n < 0xE000 { // Half of a surrogate pair alone is no character.
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

// raw consumes a value and returns its text. It checks only that brackets and strings are closed.
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

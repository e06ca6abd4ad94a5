package api

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"unicode/utf8"

	"agentsite/handlers/respond"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// Search results are the longest and most frequent answer. They are written field by field in a third of
// the time that encoding/json takes; the bytes are the same.

// writeSearch writes a page of search results as JSON, in the form that openapi.yaml describes.
func (d *agentAPI) writeSearch(w http.ResponseWriter, page *hub.Page) error {
	buf := respond.NewBuffer()
	defer respond.FreeBuffer(buf)
	b, err := d.appendPage(buf.AvailableBuffer(), page)
	if err != nil {
		return err
	}
	buf.Write(b)
	respond.SendJSON(w, http.StatusOK, buf)
	return nil
}

func (d *agentAPI) appendPage(b []byte, page *hub.Page) ([]byte, error) {
	b = append(b, `{"facets":{`...)
	for i, name := range slices.Sorted(maps.Keys(page.Facets)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, name), ':')
		b = appendList(b, page.Facets[name], appendCount)
	}
	b = appendField(b, `},"next_cursor":`, page.NextCursor)
	b = appendCoverage(append(b, `,"portals":`...), &page.Coverage)
	b = append(b, `,"results":[`...)
	for i := range page.Results {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = d.appendResult(b, &page.Results[i]); err != nil {
			return nil, err
		}
	}
	b = appendTexts(append(b, `],"suggestions":`...), orEmpty(page.Suggestions))
	b = appendNumber(b, `,"total":`, int64(page.Total))
	return append(b, "}\n"...), nil
}

// appendResult appends one result as a guest sees the agent. The "why" list gives each query word that
// matched, and how: exactly, as another form, as a prefix or corrected.
func (d *agentAPI) appendResult(b []byte, r *hub.Result) ([]byte, error) {
	a := d.agentJSON(ident.Actor{}, r.Agent)
	b, err := a.append(append(b, `{"agent":`...))
	if err != nil {
		return nil, err
	}
	b = appendFloat(append(b, `,"score":`...), r.Score)
	b = appendTexts(append(b, `,"matched":`...), orEmpty(r.Matched))
	b = append(b, `,"why":[`...)
	for i := range r.Why {
		if i > 0 {
			b = append(b, ',')
		}
		m := &r.Why[i]
		b = appendField(b, `{"word":`, m.Word)
		b = appendField(b, `,"found":`, m.Found)
		b = appendField(b, `,"how":`, m.How)
		b = appendField(b, `,"field":`, m.Field)
		b = append(b, '}')
	}
	b = a.Liveness.append(append(b, `],"liveness":`...))
	b = appendFlag(b, `,"verified":`, a.Verified)
	source := d.source(&r.Agent)
	b = source.append(append(b, `,"source":`...))
	return append(b, '}'), nil
}

func (a *agentJSON) append(b []byte) ([]byte, error) {
	b = appendField(b, `{"handle":`, a.Handle)
	b = appendField(b, `,"name":`, a.Name)
	b = appendField(b, `,"portal":`, a.Portal)
	b = appendField(b, `,"title":`, a.Title)
	b = appendField(b, `,"description":`, a.Description)
	b = appendField(b, `,"kind":`, string(a.Kind))
	b = appendList(append(b, `,"skills":`...), a.Skills, appendSkill)
	b = appendField(b, `,"visibility":`, string(a.Visibility))
	b = appendField(b, `,"owner":`, a.Owner)
	b = appendNumber(b, `,"version":`, int64(a.Version))
	b = appendField(b, `,"status":{"state":`, a.Status.State)
	b = appendField(b, `,"message":`, a.Status.Message)
	if a.Status.Held {
		b = append(b, `,"held":true`...)
	}
	b = append(b, `},"liveness":`...)
	b = a.Liveness.append(b)
	b = appendFlag(b, `,"verified":`, a.Verified)
	b = appendField(b, `,"proof":{"state":`, a.Proof.State)
	b = appendSome(b, `,"method":`, a.Proof.Method)
	b = appendSome(b, `,"origin":`, a.Proof.Origin)
	b = appendSome(b, `,"at":`, a.Proof.At)
	b = append(b, '}')
	b = appendSome(b, `,"publisher":`, a.Publisher)
	b = appendTexts(append(b, `,"languages":`...), a.Languages)
	b = appendTexts(append(b, `,"input_modes":`...), a.InputModes)
	b = appendTexts(append(b, `,"output_modes":`...), a.OutputModes)
	b = appendSome(b, `,"icon":`, a.Icon)
	b = append(b, `,"limits":`...)
	b = appendLimits(b, &a.Limits)
	b = appendSome(b, `,"note":`, a.Note)
	b = appendSome(b, `,"endpoint":`, a.Endpoint)
	if len(a.Config) > 0 {
		var text bytes.Buffer
		if err := json.Compact(&text, a.Config); err != nil {
			return nil, err
		}
		b = append(append(b, `,"config":`...), text.Bytes()...)
	}
	if a.HasSecret {
		b = append(b, `,"has_secret":true`...)
	}
	if len(a.EmbedOrigins) > 0 {
		b = appendTexts(append(b, `,"embed_origins":`...), a.EmbedOrigins)
	}
	if a.Network != nil {
		b = a.Network.append(append(b, `,"network":`...))
	}
	b = appendField(b, `,"created_at":`, a.CreatedAt)
	b = appendField(b, `,"updated_at":`, a.UpdatedAt)
	if a.Source != nil {
		b = a.Source.append(append(b, `,"source":`...))
	}
	return append(b, '}'), nil
}

func (l *livenessJSON) append(b []byte) []byte {
	b = appendField(b, `{"state":`, string(l.State))
	b = appendSome(b, `,"checked_at":`, l.CheckedAt)
	b = appendNumber(b, `,"latency_ms":`, l.LatencyMS)
	b = appendField(b, `,"reason":`, l.Reason)
	if len(l.Voices) > 0 {
		b = appendList(append(b, `,"voices":`...), l.Voices, appendVoice)
	}
	return append(b, '}')
}

func appendVoice(b []byte, v *voiceJSON) []byte {
	b = appendField(b, `{"portal":`, v.Portal)
	b = appendField(b, `,"state":`, string(v.State))
	b = appendField(b, `,"at":`, v.At)
	b = appendField(b, `,"by":`, v.By)
	b = appendField(b, `,"whose":`, v.Whose)
	return append(b, '}')
}

func (p *publicationJSON) append(b []byte) []byte {
	b = appendFlag(b, `{"published":`, p.Published)
	b = appendSome(b, `,"reason":`, p.Reason)
	b = appendSome(b, `,"hash":`, p.Hash)
	if p.Epoch != 0 {
		b = appendNumber(b, `,"epoch":`, p.Epoch)
	}
	if p.Seq != 0 {
		b = appendNumber(b, `,"seq":`, p.Seq)
	}
	b = appendSome(b, `,"at":`, p.At)
	if p.Listed {
		b = append(b, `,"listed":true`...)
	}
	if len(p.Cut) > 0 {
		b = appendTexts(append(b, `,"cut":`...), p.Cut)
	}
	return append(b, '}')
}

func appendLimits(b []byte, l *hub.Limits) []byte {
	from := len(b)
	b = appendSome(b, `,"callers":`, l.Callers)
	if len(l.Listed) > 0 {
		b = appendTexts(append(b, `,"listed":`...), l.Listed)
	}
	for _, n := range []struct {
		name string
		n    int
	}{{`,"per_minute":`, l.PerMinute}, {`,"per_day":`, l.PerDay}, {`,"max_bytes":`, l.MaxBytes}} {
		if n.n != 0 {
			b = appendNumber(b, n.name, int64(n.n))
		}
	}
	if len(b) == from {
		return append(b, "{}"...)
	}
	b[from] = '{' // replaces the comma of the first field
	return append(b, '}')
}

func appendSkill(b []byte, s *hub.Skill) []byte {
	b = appendField(b, `{"id":`, s.ID)
	b = appendField(b, `,"name":`, s.Name)
	b = appendField(b, `,"description":`, s.Description)
	b = appendTexts(append(b, `,"tags":`...), s.Tags)
	if len(s.Examples) > 0 {
		b = appendTexts(append(b, `,"examples":`...), s.Examples)
	}
	return append(b, '}')
}

func appendCount(b []byte, c *hub.FacetCount) []byte {
	b = appendField(b, `{"value":`, c.Value)
	b = appendNumber(b, `,"count":`, int64(c.Count))
	return append(b, '}')
}

// appendField appends name, which includes separators, and text as a JSON string. appendSome appends
// nothing if the text is empty.
func appendField(b []byte, name, text string) []byte { return appendText(append(b, name...), text) }

func appendSome(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	return appendField(b, name, text)
}

func appendNumber(b []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(b, name...), n, 10)
}

func appendFlag(b []byte, name string, set bool) []byte {
	return strconv.AppendBool(append(b, name...), set)
}

// appendFloat appends a finite number in the form that encoding/json gives it.
func appendFloat(b []byte, f float64) []byte {
	form := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		form = 'e'
	}
	b = strconv.AppendFloat(b, f, form, -1, 64)
	if n := len(b); form == 'e' && n >= 4 && b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' {
		b[n-2] = b[n-1] // encoding/json writes e-9 instead of e-09
		b = b[:n-1]
	}
	return b
}

func appendList[E any](b []byte, list []E, one func(b []byte, e *E) []byte) []byte {
	if list == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, &list[i])
	}
	return append(b, ']')
}

func appendTexts(b []byte, list []string) []byte {
	return appendList(b, list, func(b []byte, s *string) []byte { return appendText(b, *s) })
}

// appendText appends s as a JSON string with the escapes of encoding/json.
func appendText(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	from, i := 0, plain8(s, 0)
	// most texts need no escape at all, so the last 8 bytes are checked to skip the loop
	if k := len(s) - 8; k > 0 && i > k && plain8(s, k) == len(s) {
		i = len(s)
	}
	for ; i < len(s); i = plain8(s, i) {
		c := s[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			b = append(b, s[from:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\b':
				b = append(b, `\b`...)
			case '\f':
				b = append(b, `\f`...)
			case '\n':
				b = append(b, `\n`...)
			case '\r':
				b = append(b, `\r`...)
			case '\t':
				b = append(b, `\t`...)
			default:
				b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			i++
			from = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b = append(append(b, s[from:i]...), `\ufffd`...)
			from = i + n
		// valid in JSON, but line ends in JavaScript, so encoding/json escapes them
		case r == '\u2028', r == '\u2029':
			b = append(append(b, s[from:i]...), `\u202`...)
			b = append(b, hex[r&15])
			from = i + n
		}
		i += n
	}
	return append(append(b, s[from:]...), '"')
}

// plain8 returns the index after the longest run from i on, in steps of 8 bytes, that needs no escape.
func plain8(s string, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(s); i += 8 {
		t := s[i : i+8]
		w := uint64(t[0]) | uint64(t[1])<<8 | uint64(t[2])<<16 | uint64(t[3])<<24 |
			uint64(t[4])<<32 | uint64(t[5])<<40 | uint64(t[6])<<48 | uint64(t[7])<<56
		quote, slash := w^'"'*ones, w^'\\'*ones
		// Subtracting n from a byte less than n borrows and sets its highest bit, so one test covers all
		// 8 bytes.
		if (w|(w-' '*ones)|(quote-ones)&^quote|(slash-ones)&^slash)&highs != 0 {
			break
		}
	}
	return i
}

// apiSearchEach answers a search as a stream: a page of local results, then results of other portals as
// they arrive, and last the number of portals that answered.
func (d *agentAPI) apiSearchEach(w http.ResponseWriter, r *http.Request, actor ident.Actor, q hub.Query) error {
	var e *respond.Events
	name := "page"
	err := d.searches.SearchEach(r.Context(), actor, q, func(page hub.Page) (err error) {
		if e == nil {
			if e, err = respond.OpenEvents(w); err != nil {
				return err
			}
		}
		if name == "late" && len(page.Results) == 0 {
			name = "end"
		}
		b, err := d.appendPage([]byte("event: "+name+"\ndata: "), &page)
		if err != nil {
			return err
		}
		name = "late"
		return e.Write(append(b, '\n'))
	})
	return respond.IgnoreGone(e, err)
}

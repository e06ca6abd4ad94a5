package record

import (
	"bytes"
	"slices"
	"strconv"
)

// readAgent reads the payload of an agent, which is canonical, as
// encoding/json does, at a fifth of the work: almost everything that arrives
// is agents. It reports false when something is not as expected; then
// encoding/json has to say what, and a may be half read.
func readAgent(a *Agent, payload []byte) bool {
	d := agentReader{scanner{b: payload}, string(payload)}
	ok := d.members(func(name []byte) bool {
		switch string(name) {
		case "portal":
			return d.text((*string)(&a.Portal))
		case "epoch":
			return d.int(&a.Epoch)
		case "seq":
			return d.int(&a.Seq)
		case "iss":
			return d.int(&a.Issued)
		case "exp":
			return d.int(&a.Expires)
		case "id":
			return d.text(&a.ID)
		case "deleted":
			return d.flag(&a.Deleted)
		case "name":
			return d.text(&a.Name)
		case "kind":
			return d.text(&a.Kind)
		case "title":
			return d.text(&a.Title)
		case "description":
			return d.text(&a.Description)
		case "caps":
			return d.texts(&a.Caps)
		case "skills":
			return list(&d, &a.Skills, d.skill)
		case "languages":
			return d.texts(&a.Languages)
		case "endpoints":
			return list(&d, &a.Endpoints, d.endpoint)
		case "inputs":
			return d.texts(&a.Inputs)
		case "outputs":
			return d.texts(&a.Outputs)
		case "created":
			return d.int(&a.Created)
		case "updated":
			return d.int(&a.Updated)
		case "status":
			return d.text(&a.Status)
		case "status_note":
			return d.text(&a.StatusNote)
		case "owner":
			return d.text(&a.Owner)
		case "publisher":
			return d.text(&a.Publisher)
		case "proof":
			a.Proof = new(AgentProof)
			return d.proof(a.Proof)
		case "card_url":
			return d.text(&a.CardURL)
		case "card_sha256":
			return d.binary(a.CardSHA256[:])
		case "pricing":
			return d.text(&a.Pricing)
		case "terms":
			return d.text(&a.Terms)
		case "agent_pub":
			return d.binary(a.AgentPub[:])
		case "agent_sig":
			return d.binary(a.AgentSig[:])
		}
		return d.value(1) == nil // it is for those who know it
	})
	return ok && d.i == len(d.b)
}

// agentReader reads a payload that is canonical. Its methods stop behind what
// they read and report whether that was of the kind they are for.
type agentReader struct {
	scanner
	all string // the payload: texts are parts of it
}

func (d *agentReader) skill(s *Skill) bool {
	return d.members(func(name []byte) bool {
		switch string(name) {
		case "id":
			return d.text(&s.ID)
		case "name":
			return d.text(&s.Name)
		case "description":
			return d.text(&s.Description)
		case "tags":
			return d.texts(&s.Tags)
		case "examples":
			return d.texts(&s.Examples)
		}
		return d.value(1) == nil
	})
}

func (d *agentReader) endpoint(e *Endpoint) bool {
	return d.members(func(name []byte) bool {
		switch string(name) {
		case "url":
			return d.text(&e.URL)
		case "protocol":
			return d.text(&e.Protocol)
		}
		return d.value(1) == nil
	})
}

func (d *agentReader) proof(p *AgentProof) bool {
	return d.members(func(name []byte) bool {
		switch string(name) {
		case "way":
			return d.text(&p.Way)
		case "origin":
			return d.text(&p.Origin)
		case "at":
			return d.int(&p.At)
		}
		return d.value(1) == nil
	})
}

// members reads an object; read is called at each value.
func (d *agentReader) members(read func(name []byte) bool) bool {
	if !d.take('{') {
		return false
	}
	if d.take('}') {
		return true
	}
	for {
		name, err := d.name()
		if err != nil || !d.take(':') || !read(name) {
			return false
		}
		if d.take('}') {
			return true
		}
		if !d.take(',') {
			return false
		}
	}
}

// list reads an array; read is called at each element.
func list[T any](d *agentReader, to *[]T, read func(*T) bool) bool {
	if !d.take('[') {
		return false
	}
	var room [4]T // most are this short
	list := room[:0]
	for !d.take(']') {
		if len(list) > 0 && !d.take(',') {
			return false
		}
		var v T
		if !read(&v) {
			return false
		}
		list = append(list, v)
	}
	*to = append(make([]T, 0, len(list)), list...) // not nil when empty
	return true
}

func (d *agentReader) texts(to *[]string) bool { return list(d, to, d.text) }

func (d *agentReader) take(c byte) bool {
	if d.at() != c {
		return false
	}
	d.i++
	return true
}

func (d *agentReader) flag(to *bool) bool {
	c := d.at()
	*to = c == 't'
	return (c == 't' || c == 'f') && d.value(1) == nil
}

func (d *agentReader) int(to *int64) bool {
	start := d.i
	if c := d.at(); c != '-' && (c < '0' || c > '9') || d.number() != nil {
		return false
	}
	n, err := strconv.ParseInt(d.all[start:d.i], 10, 64)
	*to = n
	return err == nil
}

func (d *agentReader) text(to *string) bool {
	from, end, ok := d.quoted()
	if !ok {
		return false
	}
	if bytes.IndexByte(d.b[from:end], '\\') < 0 {
		*to = d.all[from:end]
		return true
	}
	*to, ok = unescape(d.b[from:end])
	return ok
}

// quoted moves behind a text and says where it is between its quotes.
func (d *agentReader) quoted() (from, end int, ok bool) {
	if !d.take('"') {
		return 0, 0, false
	}
	for from, end = d.i, d.i; ; end++ {
		n := bytes.IndexByte(d.b[end:], '"')
		if n < 0 {
			return 0, 0, false
		}
		end += n
		escapes := 0
		for end-escapes > from && d.b[end-escapes-1] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			d.i = end + 1
			return from, end, true
		}
	}
}

// unescape is the text that is written as b; of the escapes by number only
// those of control characters are canonical.
func unescape(b []byte) (string, bool) {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			out = append(out, b[i])
			continue
		}
		if i++; i == len(b) {
			return "", false
		}
		switch c := b[i]; c {
		case '"', '\\':
			out = append(out, c)
		case 'u':
			if i+4 >= len(b) {
				return "", false
			}
			n, err := strconv.ParseUint(string(b[i+1:i+5]), 16, 7)
			if err != nil {
				return "", false
			}
			out = append(out, byte(n))
			i += 4
		default:
			n := bytes.IndexByte([]byte(short), c)
			if n < 0 {
				return "", false
			}
			out = append(out, "\b\f\n\r\t"[n])
		}
	}
	return string(out), true
}

// binary reads a text of what fills to.
func (d *agentReader) binary(to []byte) bool {
	from, end, ok := d.quoted()
	return ok && !slices.Contains(d.b[from:end], '\\') && fill(to, d.b[from:end]) == nil
}

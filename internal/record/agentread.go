package record

import (
	"bytes"
	"slices"
	"strconv"
)

// readAgent decodes the payload of an agent, which is canonical, with the same result as
// encoding/json at a fifth of the cost: almost all records that arrive are agents. It returns false
// on any surprise; then a may be filled in part, and encoding/json has to name the error.
func readAgent(a *Agent, payload []byte) bool {
	d := agentReader{scanner{b: payload}, string(payload)}
	ok := d.readMembers(func(name []byte) bool {
		switch string(name) {
		case "portal":
			return d.readText((*string)(&a.Portal))
		case "epoch":
			return d.readInt(&a.Epoch)
		case "seq":
			return d.readInt(&a.Seq)
		case "iss":
			return d.readInt(&a.Issued)
		case "exp":
			return d.readInt(&a.Expires)
		case "id":
			return d.readText(&a.ID)
		case "deleted":
			return d.readFlag(&a.Deleted)
		case "name":
			return d.readText(&a.Name)
		case "kind":
			return d.readText(&a.Kind)
		case "title":
			return d.readText(&a.Title)
		case "description":
			return d.readText(&a.Description)
		case "caps":
			return d.readTexts(&a.Caps)
		case "skills":
			return readList(&d, &a.Skills, d.readSkill)
		case "languages":
			return d.readTexts(&a.Languages)
		case "endpoints":
			return readList(&d, &a.Endpoints, d.readEndpoint)
		case "inputs":
			return d.readTexts(&a.Inputs)
		case "outputs":
			return d.readTexts(&a.Outputs)
		case "created":
			return d.readInt(&a.Created)
		case "updated":
			return d.readInt(&a.Updated)
		case "status":
			return d.readText(&a.Status)
		case "status_note":
			return d.readText(&a.StatusNote)
		case "owner":
			return d.readText(&a.Owner)
		case "publisher":
			return d.readText(&a.Publisher)
		case "proof":
			a.Proof = new(AgentProof)
			return d.readProof(a.Proof)
		case "card_url":
			return d.readText(&a.CardURL)
		case "card_sha256":
			return d.readBinary(a.CardSHA256[:])
		case "pricing":
			return d.readText(&a.Pricing)
		case "terms":
			return d.readText(&a.Terms)
		case "agent_pub":
			return d.readBinary(a.AgentPub[:])
		case "agent_sig":
			return d.readBinary(a.AgentSig[:])
		}
		return d.scanValue(1) == nil // unknown members are for newer readers
	})
	return ok && d.i == len(d.b)
}

// agentReader decodes a canonical payload. Each method stops after the value that it reads, and
// reports whether the value had the expected kind.
type agentReader struct {
	scanner
	all string // the payload as a string: decoded texts share its memory
}

func (d *agentReader) readSkill(s *Skill) bool {
	return d.readMembers(func(name []byte) bool {
		switch string(name) {
		case "id":
			return d.readText(&s.ID)
		case "name":
			return d.readText(&s.Name)
		case "description":
			return d.readText(&s.Description)
		case "tags":
			return d.readTexts(&s.Tags)
		case "examples":
			return d.readTexts(&s.Examples)
		}
		return d.scanValue(1) == nil
	})
}

func (d *agentReader) readEndpoint(e *Endpoint) bool {
	return d.readMembers(func(name []byte) bool {
		switch string(name) {
		case "url":
			return d.readText(&e.URL)
		case "protocol":
			return d.readText(&e.Protocol)
		}
		return d.scanValue(1) == nil
	})
}

func (d *agentReader) readProof(p *AgentProof) bool {
	return d.readMembers(func(name []byte) bool {
		switch string(name) {
		case "way":
			return d.readText(&p.Way)
		case "origin":
			return d.readText(&p.Origin)
		case "at":
			return d.readInt(&p.At)
		}
		return d.scanValue(1) == nil
	})
}

// readMembers reads an object; read is called at each value.
func (d *agentReader) readMembers(read func(name []byte) bool) bool {
	if !d.takeByte('{') {
		return false
	}
	if d.takeByte('}') {
		return true
	}
	for {
		name, err := d.scanName()
		if err != nil || !d.takeByte(':') || !read(name) {
			return false
		}
		if d.takeByte('}') {
			return true
		}
		if !d.takeByte(',') {
			return false
		}
	}
}

// readList reads an array; read is called at each element.
func readList[T any](d *agentReader, to *[]T, read func(*T) bool) bool {
	if !d.takeByte('[') {
		return false
	}
	var room [4]T // most lists are this short
	list := room[:0]
	for !d.takeByte(']') {
		if len(list) > 0 && !d.takeByte(',') {
			return false
		}
		var v T
		if !read(&v) {
			return false
		}
		list = append(list, v)
	}
	*to = append(make([]T, 0, len(list)), list...) // an empty list is not nil
	return true
}

func (d *agentReader) readTexts(to *[]string) bool { return readList(d, to, d.readText) }

func (d *agentReader) takeByte(c byte) bool {
	if d.byteAt() != c {
		return false
	}
	d.i++
	return true
}

func (d *agentReader) readFlag(to *bool) bool {
	c := d.byteAt()
	*to = c == 't'
	return (c == 't' || c == 'f') && d.scanValue(1) == nil
}

func (d *agentReader) readInt(to *int64) bool {
	start := d.i
	if c := d.byteAt(); c != '-' && (c < '0' || c > '9') || d.scanNumber() != nil {
		return false
	}
	n, err := strconv.ParseInt(d.all[start:d.i], 10, 64)
	*to = n
	return err == nil
}

func (d *agentReader) readText(to *string) bool {
	from, end, ok := d.readQuoted()
	if !ok {
		return false
	}
	if bytes.IndexByte(d.b[from:end], '\\') < 0 {
		*to = d.all[from:end]
		return true
	}
	*to, ok = unescapeText(d.b[from:end])
	return ok
}

// readQuoted moves after a text and returns its place between the quotes.
func (d *agentReader) readQuoted() (from, end int, ok bool) {
	if !d.takeByte('"') {
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

// unescapeText returns the text encoded as b. Of the numeric escapes only those of control
// characters are canonical.
func unescapeText(b []byte) (string, bool) {
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

// readBinary reads a text that decodes to exactly len(to) bytes.
func (d *agentReader) readBinary(to []byte) bool {
	from, end, ok := d.readQuoted()
	return ok && !slices.Contains(d.b[from:end], '\\') && decodeExact(to, d.b[from:end]) == nil
}

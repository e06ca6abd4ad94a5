package record

import "bytes"

// Proofs of answers come by the hundred. These write and read the canonical form
// at once; what is not of the usual form is read the long way, with the same
// result.

const (
	hashText = 43 // bytes of a Hash as text
	stepText = hashText + 1
)

// append appends the proof in canonical form.
func (p *Proof) append(b []byte) []byte {
	b = append(b, '{')
	side := func(name string, x *Branch) {
		if x != nil {
			b = append(b, name...)
			b = x.append(b)
			b = append(b, ',')
		}
	}
	side(`"after":`, p.After)
	side(`"before":`, p.Before)
	b = append(b, `"key":"`...)
	b = encoding.AppendEncode(b, p.Key[:])
	b = append(b, `",`...)
	side(`"leaf":`, p.Leaf)
	b[len(b)-1] = '}'
	return b
}

func (x *Branch) append(b []byte) []byte {
	b = append(b, `{"hash":"`...)
	b = encoding.AppendEncode(b, x.Hash[:])
	b = append(b, `","key":"`...)
	b = encoding.AppendEncode(b, x.Key[:])
	b = append(b, '"')
	for i, s := range x.Path {
		if i == 0 {
			b = append(b, `,"path":[`...)
		} else {
			b = append(b, ',')
		}
		b = append(b, '"', 'r')
		if s.Left {
			b[len(b)-1] = 'l'
		}
		b = encoding.AppendEncode(b, s.Hash[:])
		b = append(b, '"')
	}
	if len(x.Path) > 0 {
		b = append(b, ']')
	}
	return append(b, '}')
}

// readInclusion reads a proof that a leaf is there, in canonical form; false for
// anything else.
func readInclusion(b []byte) (*Proof, bool) {
	p := &Proof{Leaf: new(Branch)}
	ok := eat(&b, `{"key":"`) && eatHash(&b, &p.Key) && eat(&b, `","leaf":{"hash":"`) && eatHash(&b, &p.Leaf.Hash) &&
		eat(&b, `","key":"`) && eatHash(&b, &p.Leaf.Key) && eat(&b, `"`)
	if !ok {
		return nil, false
	}
	if eat(&b, `,"path":["`) {
		for {
			if len(b) < stepText || b[0] != 'l' && b[0] != 'r' || len(p.Leaf.Path) == maxPath {
				return nil, false
			}
			s := Step{Left: b[0] == 'l'}
			b = b[1:]
			if !eatHash(&b, &s.Hash) {
				return nil, false
			}
			p.Leaf.Path = append(p.Leaf.Path, s)
			if !eat(&b, `","`) {
				break
			}
		}
		if !eat(&b, `"]`) {
			return nil, false
		}
	}
	return p, eat(&b, `}}`) && len(b) == 0
}

func eat(b *[]byte, what string) bool {
	rest, ok := bytes.CutPrefix(*b, []byte(what))
	*b = rest
	return ok
}

func eatHash(b *[]byte, h *Hash) bool {
	if len(*b) < hashText || fill(h[:], (*b)[:hashText]) != nil {
		return false
	}
	*b = (*b)[hashText:]
	return true
}

package record

import "bytes"

// Search results contain hundreds of proofs, so these functions encode and decode the canonical form
// directly. Other forms take the general decoder, with the same result.

const (
	hashText = 43 // length of a Hash in base64url
	stepText = hashText + 1
)

// appendProof appends the proof in canonical form.
func (p *Proof) appendProof(b []byte) []byte {
	b = append(b, '{')
	side := func(name string, x *Branch) {
		if x != nil {
			b = append(b, name...)
			b = x.appendBranch(b)
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

func (x *Branch) appendBranch(b []byte) []byte {
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

// readInclusion decodes an inclusion proof in canonical form; false for any other form.
func readInclusion(b []byte) (*Proof, bool) {
	p := &Proof{Leaf: new(Branch)}
	ok := eatText(&b, `{"key":"`) && eatHash(&b, &p.Key) && eatText(&b, `","leaf":{"hash":"`) &&
		eatHash(&b, &p.Leaf.Hash) &&
		eatText(&b, `","key":"`) && eatHash(&b, &p.Leaf.Key) && eatText(&b, `"`)
	if !ok {
		return nil, false
	}
	if eatText(&b, `,"path":["`) {
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
			if !eatText(&b, `","`) {
				break
			}
		}
		if !eatText(&b, `"]`) {
			return nil, false
		}
	}
	return p, eatText(&b, `}}`) && len(b) == 0
}

func eatText(b *[]byte, want string) bool {
	rest, ok := bytes.CutPrefix(*b, []byte(want))
	*b = rest
	return ok
}

func eatHash(b *[]byte, h *Hash) bool {
	if len(*b) < hashText || decodeExact(h[:], (*b)[:hashText]) != nil {
		return false
	}
	*b = (*b)[hashText:]
	return true
}

package corpus

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"agentsite/internal/hub"
)

// Commonest is a word that nearly every agent has.
func Commonest() string { return words[0] }

// Hard is the i-th of a mix of searches that is not easy: one to four words as
// texts have them, so that the frequent ones come often and together.
func Hard(i int) string {
	r := rand.New(rand.NewPCG(uint64(i), 10))
	s := word(r)
	for range []int{0, 1, 1, 1, 2, 3}[r.IntN(6)] {
		s += " " + word(r)
	}
	return s
}

// Rough is the i-th search by somebody who types as people do: half a word, a
// misspelt one, a phrase, an exclusion; every other with a filter, as the
// parameters of an address.
func Rough(i int) (text, kind string) {
	r := rand.New(rand.NewPCG(uint64(i), 11))
	w, more := word(r), word(r)
	switch i % 4 {
	case 0:
		text = more + " " + w[:len(w)-len(w)/3]
	case 1:
		k := 1 + r.IntN(len(w)-2)
		text = w[:k] + w[k+1:k+2] + w[k:k+1] + w[k+min(2, len(w)-k):] // two letters in the wrong order
	case 2:
		text = `"` + w + " " + more + `"`
	case 3:
		text = w + " -" + more
	}
	if i%2 == 0 {
		kind = string(hub.A2A)
	}
	return text, kind
}

// draft is the body of a registration.
type draft struct {
	Name        string      `json:"name"`
	Title       string      `json:"title"`
	Description string      `json:"description"`
	Kind        hub.Kind    `json:"kind"`
	Skills      []hub.Skill `json:"skills"`
}

// Draft is the i-th agent as somebody registers it under a name, as JSON. Its
// kind is one that dials in: no portal asks at an address for it.
func Draft(name string, i int) []byte {
	a := Agent(i)
	for k := range a.Skills { // an id may come once
		a.Skills[k].ID += fmt.Sprintf("-%d", k)
	}
	return (draft{name, a.Title, a.Description, hub.Link, a.Skills}).json()
}

// Strange is such an agent without a word that Hard, Rough or Query ask for.
func Strange(name string, i int) []byte {
	r := rand.New(rand.NewPCG(uint64(i), 12))
	word := func() string { return fmt.Sprintf("xq%05d", r.IntN(50_000)) }
	text := func(n int) string {
		s := word()
		for range n - 1 {
			s += " " + word()
		}
		return s
	}
	d := draft{Name: name, Title: text(3), Description: text(18) + ".", Kind: hub.Link}
	for k := range 2 {
		d.Skills = append(d.Skills, hub.Skill{ID: fmt.Sprintf("%s-%d", word(), k), Name: text(2), Description: text(6), Tags: []string{word(), word()}, Examples: []string{text(6) + "?"}})
	}
	return d.json()
}

func (d draft) json() []byte {
	b, err := json.Marshal(d)
	if err != nil {
		panic(err) // texts and lists of them
	}
	return b
}

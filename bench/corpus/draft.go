package corpus

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"agentsite/internal/hub"
)

// Commonest returns the most frequent word of the vocabulary, which nearly every agent has.
func Commonest() string { return words[0] }

// Hard returns the i-th expensive search: one to four words with the frequencies that texts have, so
// that frequent words occur often and together.
func Hard(i int) string {
	r := rand.New(rand.NewPCG(uint64(i), 10))
	s := word(r)
	for range []int{0, 1, 1, 1, 2, 3}[r.IntN(6)] {
		s += " " + word(r)
	}
	return s
}

// Rough returns the i-th search as people type it: with half a word, a misspelt word, a phrase or an
// excluded word. Every second search also has a kind to filter by; kind is "" for the others.
func Rough(i int) (text, kind string) {
	r := rand.New(rand.NewPCG(uint64(i), 11))
	w, more := word(r), word(r)
	switch i % 4 {
	case 0:
		text = more + " " + w[:len(w)-len(w)/3]
	case 1:
		k := 1 + r.IntN(len(w)-2)
		// The misspelt word has two letters in the wrong order.
		text = w[:k] + w[k+1:k+2] + w[k:k+1] + w[k+min(2, len(w)-k):]
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

// draft is the JSON body of a request that registers an agent.
type draft struct {
	Name        string      `json:"name"`
	Title       string      `json:"title"`
	Description string      `json:"description"`
	Kind        hub.Kind    `json:"kind"`
	Skills      []hub.Skill `json:"skills"`
}

// Draft returns the i-th agent as the JSON body of its registration under a name. Its kind is link,
// whose agents connect to the portal themselves, so that the portal makes no requests to an address.
func Draft(name string, i int) []byte {
	a := Agent(i)
	for k := range a.Skills { // The portal refuses two skills with the same id.
		a.Skills[k].ID += fmt.Sprintf("-%d", k)
	}
	return (draft{name, a.Title, a.Description, hub.Link, a.Skills}).json()
}

// Strange returns a registration like Draft, but with none of the words that Hard, Rough and Query
// search for.
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
		panic(err) // cannot happen: a draft has only texts and lists of texts
	}
	return b
}

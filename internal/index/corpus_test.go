package index

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"agentsite/internal/hub"
)

// corpus makes agents as a large network might have them: a vocabulary in
// which few words are very common, names of their own, skills and tags from
// shared lists. The same number gives the same agent.
type corpus struct {
	words, tags, skills []string
}

func newCorpus() *corpus {
	r := rand.New(rand.NewPCG(11, 12))
	c := &corpus{}
	onsets := strings.Fields("b br c ch cl d dr f fl g gr h j k l m n p pl pr qu r s sh sl st t th tr v w z")
	nuclei := strings.Fields("a e i o u ai ea ou")
	codas := strings.Fields("_ n r s t l m nd rt ck st sh ng")
	seen := map[string]bool{}
	for len(c.words) < 30000 {
		var b strings.Builder
		for range 2 + r.IntN(3) {
			b.WriteString(onsets[r.IntN(len(onsets))] + nuclei[r.IntN(len(nuclei))])
			if coda := codas[r.IntN(len(codas))]; coda != "_" {
				b.WriteString(coda)
			}
		}
		if w := b.String(); !seen[w] {
			seen[w] = true
			c.words = append(c.words, w)
		}
	}
	for range 2000 {
		c.tags = append(c.tags, c.words[r.IntN(len(c.words))])
	}
	for range 5000 {
		c.skills = append(c.skills, c.words[r.IntN(2000)]+" "+c.words[r.IntN(len(c.words))])
	}
	return c
}

// zipf picks one of n, the first ones most often.
func zipf(r *rand.Rand, n int) int {
	u := r.Float64()
	return int(u * u * u * u * float64(n))
}

func (c *corpus) sentence(r *rand.Rand, n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = c.words[zipf(r, len(c.words))]
	}
	return strings.Join(words, " ") + "."
}

func (c *corpus) agent(i int) hub.Agent {
	r := rand.New(rand.NewPCG(uint64(i), 99))
	a := hub.Agent{
		ID:          fmt.Sprintf("01J%023d", i),
		Name:        fmt.Sprintf("%s-%s-%s", c.words[zipf(r, len(c.words))], c.words[zipf(r, len(c.words))], c.words[i%len(c.words)]),
		Title:       c.sentence(r, 3),
		Description: c.sentence(r, 15+r.IntN(20)),
		Kind:        []hub.Kind{hub.A2A, hub.A2A, hub.OpenAI, hub.Builtin}[r.IntN(4)],
		Visibility:  hub.Public,
		Status:      hub.Status{State: hub.Active},
		Liveness:    hub.Liveness{State: []hub.Live{hub.Alive, hub.Alive, hub.Unreachable, hub.Unknown, hub.NeedsAuth}[r.IntN(5)]},
	}
	if r.IntN(3) > 0 {
		a.Portal = fmt.Sprintf("portal%d.example", zipf(r, 100))
	}
	for range 1 + r.IntN(3) {
		s := hub.Skill{Name: c.skills[zipf(r, len(c.skills))], Description: c.sentence(r, 6), Examples: []string{c.sentence(r, 5)}}
		for range 1 + r.IntN(3) {
			s.Tags = append(s.Tags, c.tags[zipf(r, len(c.tags))])
		}
		a.Skills = append(a.Skills, s)
	}
	return a
}

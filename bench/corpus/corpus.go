// Package corpus generates the agents, texts and searches with which benchmarks fill a portal and the
// floor that it is compared with. The same number always gives the same agent, so that both hold the
// same words. The package measures nothing itself.
package corpus

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"agentsite/internal/hub"
)

// words is the vocabulary, sorted by frequency: the first words occur in nearly every agent, most words
// in few.
var words = vocabulary(strings.Fields(`answers text data agent questions code search plans reports images calendar language maps prices
music weather news recipes travel invoices contracts tests logs tickets mail summaries tables charts forms notes
drafts reviews translations measurements units dates sums percentages tariffs timetables routes hotels flights trains
museums gardens plants birds rivers mountains harbours bridges tunnels roads bicycles engines pumps valves batteries
panels turbines transformers cables sensors cameras microphones telescopes lenses crystals alloys polymers enzymes
proteins cells tissues bones muscles nerves vaccines doses symptoms therapies clinics nurses patients insurers claims
premiums loans bonds shares funds audits ledgers budgets taxes customs parcels warehouses pallets containers cranes
ships ports tides currents storms clouds glaciers deserts forests meadows orchards vineyards dairies bakeries kitchens
ovens spices grains pulses salads soups sauces desserts teas coffees juices wines cheeses breads cakes sweets`), 20_000)

// vocabulary appends generated words to list until it has n.
func vocabulary(list []string, n int) []string {
	syllables := strings.Fields("ba ce di fo gu la me ni po ru sa te vi zo bra cle dri flo gru pla sme tri")
	for i := len(list); i < n; i++ {
		w := ""
		for k := i; k > 0 || w == ""; k /= len(syllables) {
			w += syllables[k%len(syllables)]
		}
		list = append(list, w)
	}
	return list
}

// word picks a word at random. The power of four makes the first words of the vocabulary the most
// frequent.
func word(r *rand.Rand) string {
	u := r.Float64()
	return words[int(u*u*u*u*float64(len(words)))]
}

func sentence(r *rand.Rand, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = word(r)
	}
	s := strings.Join(list, " ")
	return strings.ToUpper(s[:1]) + s[1:]
}

// Query returns the i-th search: two words. The same i always gives the same words.
func Query(i int) string {
	r := rand.New(rand.NewPCG(uint64(i), 7))
	return word(r) + " " + word(r)
}

// Text returns the i-th message text, about size bytes long. The same i always gives the same text.
func Text(i, size int) string {
	r := rand.New(rand.NewPCG(uint64(i), 8))
	var b strings.Builder
	fmt.Fprintf(&b, "%d:", i)
	for b.Len() < size {
		b.WriteByte(' ')
		b.WriteString(word(r))
	}
	return b.String()
}

// Agent returns the i-th agent, public and alive. Its liveness was checked in the year 2100, so that no
// portal probes it and a benchmark makes no outgoing requests. The same i always gives the same agent.
func Agent(i int) hub.Agent {
	r := rand.New(rand.NewPCG(uint64(i), 9))
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	a := hub.Agent{
		ID: fmt.Sprintf("01J%023d", i), Name: fmt.Sprintf("%s-%s-%d", word(r), word(r), i), Title: sentence(r, 3), Description: sentence(r, 15+r.IntN(10)) + ".",
		Kind: hub.A2A, Visibility: hub.Public, Version: 1, Status: hub.Status{State: hub.Active},
		Liveness:  hub.Liveness{State: hub.Alive, CheckedAt: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), Latency: 20 * time.Millisecond},
		CreatedAt: at, UpdatedAt: at,
	}
	a.Endpoint = "https://agent.example/" + a.Name
	if i%3 == 0 {
		a.Kind = hub.OpenAI
	}
	for range 1 + r.IntN(3) {
		s := hub.Skill{ID: word(r), Name: sentence(r, 2), Description: sentence(r, 6), Examples: []string{sentence(r, 6) + "?"}}
		for range 1 + r.IntN(3) {
			s.Tags = append(s.Tags, word(r))
		}
		a.Skills = append(a.Skills, s)
	}
	return a
}

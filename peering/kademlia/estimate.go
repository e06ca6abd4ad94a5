package kademlia

import (
	"slices"
	"time"
)

// estimate guesses how many nodes there are by how near the nearest ones to a
// random place are: of n nodes with even ids the i-th is expected at a distance
// of i/(n+1) of the space. Each finished lookup of nodes gives one guess, by
// least squares over its k; the median of the last ones bears some that
// somebody ground ids for.
type estimate struct {
	last []guessed
	at   int
}

type guessed struct {
	nodes float64
	when  int64 // Unix ms
}

const (
	guesses = 15
	// guessLife is for how long a guess counts while there are younger ones.
	guessLife = time.Hour
)

// guess returns n by the nearest nodes to a target, nearest first.
func guess(target ID, nearest []*Contact) float64 {
	var squares, sum float64
	for i, c := range nearest {
		rank := float64(i + 1)
		squares += rank * rank
		sum += rank * apart(target, c.ID)
	}
	if sum == 0 {
		return float64(len(nearest))
	}
	return squares/sum - 1
}

func (e *estimate) add(n float64, now time.Time) {
	g := guessed{n, now.UnixMilli()}
	if len(e.last) < guesses {
		e.last = append(e.last, g)
		return
	}
	e.last[e.at] = g
	e.at = (e.at + 1) % guesses
}

// nodes returns the median guess, ok false before the first.
func (e *estimate) nodes() (n float64, ok bool) {
	if len(e.last) == 0 {
		return 0, false
	}
	var latest int64
	for _, g := range e.last {
		latest = max(latest, g.when)
	}
	var all [guesses]float64
	s := all[:0]
	for _, g := range e.last {
		if latest-g.when < guessLife.Milliseconds() {
			s = append(s, g.nodes)
		}
	}
	slices.Sort(s)
	return s[len(s)/2], true
}

// times remembers how long the last requests took.
type times struct {
	last [64]uint16 // in ms
	n    int        // ever
	p95  uint16
}

func (t *times) add(took time.Duration) {
	t.last[t.n%len(t.last)] = uint16(min(max(took.Milliseconds(), 0), 1<<16-1))
	t.n++
	if t.n%8 == 0 || t.n < 8 {
		var sorted [len(t.last)]int
		s := sorted[:min(t.n, len(t.last))]
		for i := range s {
			s[i] = int(t.last[i])
		}
		slices.Sort(s)
		t.p95 = uint16(s[(len(s)*95)/100])
	}
}

// soft is how long to wait for an answer before somebody else is asked too.
func (t *times) soft(cfg *Config) time.Duration {
	if t.n == 0 {
		return cfg.SoftMax
	}
	return min(max(5*time.Duration(t.p95)*time.Millisecond/4, cfg.SoftMin), cfg.SoftMax)
}

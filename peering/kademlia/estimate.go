package kademlia

import (
	"slices"
	"time"
)

// estimate estimates the number of nodes from the distances of the nodes nearest to random targets: with n
// evenly spread nodes the i-th nearest is expected at a distance of i/(n+1) of the id space. Each finished
// lookup of nodes gives one estimate, by least squares over its k nodes. The median of the last ones
// tolerates a few targets around which an attacker has placed nodes by generating many ids.
type estimate struct {
	last []guessed
	at   int
}

type guessed struct {
	nodes float64
	when  int64 // time of the estimate, in Unix ms
}

const (
	guesses = 15
	// guessLife is the age up to which an estimate is used, measured from the newest one.
	guessLife = time.Hour
)

// guessSize estimates the number of nodes from those nearest to a target, which must be sorted nearest
// first.
func guessSize(target ID, nearest []*Contact) float64 {
	var squares, sum float64
	for i, c := range nearest {
		rank := float64(i + 1)
		squares += rank * rank
		sum += rank * distanceShare(target, c.ID)
	}
	if sum == 0 {
		return float64(len(nearest))
	}
	return squares/sum - 1
}

func (e *estimate) addGuess(n float64, now time.Time) {
	g := guessed{n, now.UnixMilli()}
	if len(e.last) < guesses {
		e.last = append(e.last, g)
		return
	}
	e.last[e.at] = g
	e.at = (e.at + 1) % guesses
}

// medianGuess returns the median of the recent estimates. ok is false if there is none.
func (e *estimate) medianGuess() (n float64, ok bool) {
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

// times holds the durations of the last 64 requests.
type times struct {
	last [64]uint16 // ring buffer of durations in ms
	n    int        // number of requests so far; gives the place in last
	p95  uint16
}

func (t *times) addDuration(took time.Duration) {
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

// softLimit returns how long to wait for an answer before another node is asked in parallel, see
// Config.SoftMin.
func (t *times) softLimit(cfg *Config) time.Duration {
	if t.n == 0 {
		return cfg.SoftMax
	}
	return min(max(5*time.Duration(t.p95)*time.Millisecond/4, cfg.SoftMin), cfg.SoftMax)
}

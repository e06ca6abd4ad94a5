package builtin

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// Bounds of one search for agents, because each query costs time of the directory.
const (
	maxOffers      = 5
	maxReasons     = 3
	maxSearches    = 8
	maxCandidates  = 80
	perSearch      = 20
	maxNeedWords   = 8   // words of the need that are searched for; further ones describe rather than name the work
	maxQueryBytes  = 480 // bytes of one query; the directory refuses more than 500
	maxPiecesAgent = 200
	// keepShare is the minimum score of an offer, as a share of the best score.
	keepShare = 0.35
)

// pieceWeights is the weight of a word for the ranking, by the part of the agent that contains it: a
// name says more than a description.
var pieceWeights = [...]float64{name: 3, title: 3, skillName: 3, tag: 2.5, example: 1.5, skillText: 1.5,
	description: 1.5}

// pieceTrust is the share by which a word counts for the decision whether an agent fits, by the part of
// the agent that contains it. It is lower for long texts, which contain many words by chance.
var pieceTrust = [...]float64{name: 1, title: 1, skillName: 1, tag: 1, example: 0.8, skillText: 0.85, description: 0.7}

// The weight of a match: of the word itself, of a related word (see thesaurus), or of a word of similar
// spelling.
const (
	worthExact   = 1.0
	worthRelated = 0.55
	worthNear    = 0.5
)

type pieceKind int

const (
	name pieceKind = iota
	title
	skillName
	tag
	example
	skillText
	description
)

// piece is one text of a candidate. agent is the index of the candidate; skill is the name of the skill
// that the text belongs to, "" for none.
type piece struct {
	agent int
	kind  pieceKind
	text  string
	skill string
}

// found is one word of the need and its best place in a candidate. A worth of 0 means that the candidate
// does not contain it.
type found struct {
	word  string // the word of the question
	as    string // the matched word: the same, a related one or one of similar spelling
	worth float64
	piece int
	near  bool // the match is only similar in spelling
}

// search is one search for agents, with all that its answer needs.
type search struct {
	asked       string   // the user's message, which links to agents carry along
	words       []string // words that describe the work, without words of grammar
	offers      []offer
	pieces      []piece
	suggestions []string // similar words that agents here use, as the directory suggests
	others      int      // number of other portals that this portal knows
	// alike are the results that are similar in meaning, by handle.
	alike map[string]hub.Result
}

// bestScores returns the greatest coverage and trust among the offers; 0 without offers.
func (s *search) bestScores() (coverage, trust float64) {
	for _, o := range s.offers {
		coverage, trust = max(coverage, o.coverage), max(trust, o.trust)
	}
	return coverage, trust
}

// findAgents collects candidates from the directory with wider and wider queries, and ranks them by the
// words of the need that they contain. The agents in without (by handle) and guide itself are left out.
//
// The agents that the directory finds by the meaning of the whole message are offered as well.
func (g *guide) findAgents(ctx context.Context, message string, need []string, without map[string]bool) (*search, error) {
	s := &search{words: need[:min(len(need), maxNeedWords)], alike: make(map[string]hub.Result)}
	if len(s.words) == 0 {
		return s, nil
	}
	related := make(map[string][]string, len(s.words))
	var wide []string
	for _, w := range s.words {
		related[w] = g.work.relatedWords(w)
		wide = append(append(wide, w), related[w]...)
	}
	queries := []string{strings.Join(s.words, " ")}
	if len(wide) > len(s.words) {
		// A query is bounded in words, so related ones are split over several queries.
		for part := range slices.Chunk(wide, 14) {
			queries = append(queries, strings.Join(part, " "))
		}
	}
	if len(s.words) > 1 {
		queries = append(queries, s.words...)
	}
	var candidates []hub.Agent
	seen := make(map[string]bool)
	queries = append([]string{message}, queries...)
	for i, q := range queries[:min(len(queries), maxSearches)] {
		mode := hub.ModeWords
		if i == 0 {
			mode = hub.ModeAuto
		}
		page, err := g.cfg.Search.Search(ctx, hub.Query{Text: cutBytes(q, maxQueryBytes), Mode: mode, Limit: perSearch})
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("search agents: %w", err)
		}
		s.others = max(s.others, page.Coverage.Known-1)
		if i == 1 {
			s.suggestions = page.Suggestions
		}
		for _, r := range page.Results {
			if i == 0 && r.Meaning > 0 {
				s.alike[r.Agent.Handle()] = r
			}
			if !seen[r.Agent.ID+r.Agent.Handle()] && len(candidates) < maxCandidates && !isGuide(r.Agent) &&
				!without[r.Agent.Handle()] {
				seen[r.Agent.ID+r.Agent.Handle()] = true
				candidates = append(candidates, r.Agent)
			}
		}
	}
	s.rankCandidates(candidates, related)
	return s, ctx.Err()
}

func isGuide(a hub.Agent) bool { return a.Portal == "" && a.Name == guideName }

// rankCandidates scores the candidates and keeps those worth offering.
func (s *search) rankCandidates(candidates []hub.Agent, related map[string][]string) {
	x := bm25.New(bm25.Field{Name: "text", Weight: 1, Length: 10})
	for i, a := range candidates {
		for _, p := range piecesOf(i, a) {
			x.Put(len(s.pieces), "", x.Analyze([]string{plainWords(p.text) + " " + p.text}))
			s.pieces = append(s.pieces, p)
		}
	}
	offers := make([]offer, len(candidates))
	for i, a := range candidates {
		offers[i].agent = a
	}
	total := 0.0
	for _, w := range s.words {
		weight := 1.0
		if plainWork[w] {
			weight = 0.4
		}
		total += weight
		hits := s.findWord(x, w, related[w], len(candidates))
		df := 0
		for _, h := range hits {
			if h.worth > 0 {
				df++
			}
		}
		rare := math.Log1p(float64(max(len(candidates), perSearch)) / float64(max(df, 1)))
		for i, h := range hits {
			if h.worth > 0 {
				o := &offers[i]
				o.score += weight * rare * h.worth
				o.coverage += weight
				o.trust += weight * pieceTrust[s.pieces[h.piece].kind]
				o.found = append(o.found, h)
			}
		}
	}
	for i := range offers {
		offers[i].coverage /= max(total, 1e-9)
		offers[i].trust /= max(total, 1e-9)
		offers[i].score *= 0.4 + 0.6*offers[i].coverage
	}
	s.addAlike(offers)
	offers = slices.DeleteFunc(offers, func(o offer) bool { return o.score == 0 || s.isChance(o) })
	slices.SortStableFunc(offers, func(a, b offer) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.agent.Handle(), b.agent.Handle()))
	})
	for i, o := range offers {
		if i == maxOffers || o.score < offers[0].score*keepShare {
			offers = offers[:i]
			break
		}
	}
	// Agents that are not alive come last, as in every list of agents.
	slices.SortStableFunc(offers, func(a, b offer) int { return notAlive(a.agent) - notAlive(b.agent) })
	s.offers = offers
}

// isChance reports whether an offer has nothing of the need but words in its long texts that are similar in spelling or
// related to those asked for. Long texts have such words by chance.
func (s *search) isChance(o offer) bool {
	return o.like.How == "" && !slices.ContainsFunc(o.found, func(f found) bool {
		long := s.pieces[f.piece].kind == description || s.pieces[f.piece].kind == skillText
		return !long || !f.near && f.as == f.word
	})
}

// An agent that is similar in meaning is worth as much as one with alikeShare of the words of the need, and as a word
// that few candidates have.
const (
	alikeShare = 0.7
	alikeWorth = 2.5
)

// addAlike adds to the offers the worth of their similarity in meaning.
func (s *search) addAlike(offers []offer) {
	best := 0.0
	for _, r := range s.alike {
		best = max(best, r.Meaning)
	}
	for i := range offers {
		o := &offers[i]
		r, ok := s.alike[o.agent.Handle()]
		if !ok {
			continue
		}
		near := r.Meaning / best
		o.score += alikeWorth * near * near
		o.coverage, o.trust = max(o.coverage, alikeShare*near), max(o.trust, alikeShare*near)
		for _, m := range r.Why {
			if m.How == hub.ByMeaning {
				o.like = m
			}
		}
	}
}

// missingWords returns the words of the need that no offered agent has, quoted for an answer. Words of
// plainWork are left out.
func (s *search) missingWords() []string {
	var out []string
	for _, w := range s.words {
		if !plainWork[w] && !slices.ContainsFunc(s.offers, func(o offer) bool {
			return slices.ContainsFunc(o.found, func(f found) bool { return f.word == w })
		}) {
			out = append(out, "“"+quoteText(w, 40)+"”")
		}
	}
	return out
}

func notAlive(a hub.Agent) int {
	if a.Liveness.State == hub.Alive {
		return 0
	}
	return 1
}

// plainWork are words that many agents contain and that therefore say little about which agent fits.
var plainWork = wordSet(`write read make create do get give take text document file files data question questions answer answers something idea ideas
	new old short long quick quickly fast simple easy daily every day today tomorrow week weekend keep turn put change check work online free automatically
	plan information explain describe understand two three big small before after next last between home people kind nice proper properly`)

// findWord returns, by candidate, the best place of a word; worth 0 means none.
func (s *search) findWord(x *bm25.Index, w string, related []string, candidates int) []found {
	hits := make([]found, candidates)
	sums := make([]float64, candidates)
	look := func(query, as string, worth float64, near bool) bool {
		m := x.Match(query)
		defer m.Close()
		if m.Any {
			return false
		}
		clear(sums)
		place := make(map[int]int)
		m.Bits.Each(func(id int) bool {
			p := s.pieces[id]
			sums[p.agent] += pieceWeights[p.kind]
			if best, ok := place[p.agent]; !ok || pieceWeights[p.kind] > pieceWeights[s.pieces[best].kind] {
				place[p.agent] = id
			}
			return true
		})
		for a, id := range place {
			v := worth * sums[a] / (sums[a] + 3)
			if v > hits[a].worth {
				hits[a] = found{word: w, as: as, worth: v, piece: id, near: near}
			}
		}
		return len(place) > 0
	}
	known := look(exactQuery(w), w, worthExact, false)
	for _, r := range related {
		known = look(exactQuery(r), r, worthRelated, false) || known
	}
	if !known {
		look(w+" "+noWord, w, worthNear, true)
	}
	return hits
}

func piecesOf(i int, a hub.Agent) []piece {
	list := []piece{{i, name, strings.ReplaceAll(a.Name, "-", " "), ""}, {i, title, a.Title, ""},
		{i, description, cutBytes(a.Description, 4000), ""}}
	for _, k := range a.Skills {
		label := cmp.Or(k.Name, k.ID)
		list = append(list, piece{i, skillName, label, label})
		if k.Description != "" {
			list = append(list, piece{i, skillText, k.Description, label})
		}
		for _, t := range k.Tags {
			list = append(list, piece{i, tag, t, label})
		}
		for _, e := range k.Examples {
			list = append(list, piece{i, example, e, label})
		}
	}
	return list[:min(len(list), maxPiecesAgent)]
}

// talkAnchor is the anchor of the message form on an agent's page. The page's template must have the
// same id.
const talkAnchor = "#talk-title"

// maxLinkText bounds the text that a link carries to an agent's page. A longer text is left out,
// because half a message misleads.
const maxLinkText = 1000

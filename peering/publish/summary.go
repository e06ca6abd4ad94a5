package publish

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"agentsite/internal/index"
	"agentsite/internal/record"
	"agentsite/peering/translate"
)

const (
	summaryLife = 48 * time.Hour
	// summaryEvery is the minimum time between two summaries because of changes.
	summaryEvery = time.Hour
	// Limits of the parts of a summary in bytes. The Bloom filter of words gets the space that the header,
	// capabilities and languages leave.
	maxSummaryBytes = 32 << 10
	headerBytes     = 300
	capBytes        = 8 << 10
	languageBytes   = 2 << 10
	bitsPerTerm     = 10 // false positive rate of about 1 %
)

// summaryOf holds the properties of the newest summary. The zero value means that there is none.
type summaryOf struct {
	hash            record.Hash
	seq             int64
	issued, expires int64
	key             record.KeyID
}

func (p *Publisher) loadSummary(ctx context.Context, epoch int64) (s summaryOf, err error) {
	wire, err := p.cfg.Replica.Held(ctx, record.Slot{Type: record.TypeSummary, Portal: p.cfg.Signer.ID()})
	if err != nil || wire == nil {
		return s, err
	}
	r, err := record.Open(p.cfg.Signer.Network(), wire)
	if err != nil || r.Epoch != epoch {
		return s, err
	}
	return summaryOf{r.Hash, r.Seq, r.Issued, r.Expires, r.Key}, nil
}

// signSummary signs and stores a new summary if the agents changed and the last one is older than
// summaryEvery, or if half its life is over.
func (p *Publisher) signSummary(ctx context.Context, w pen, changed bool) error {
	age, good := w.now-p.summary.issued, p.summary.seq != 0 && p.ring.Has(p.summary.key)
	if good && age >= 0 && (age < summaryEvery.Milliseconds() || !changed) &&
		w.now < p.summary.issued+(p.summary.expires-p.summary.issued)/2 {
		return nil
	}
	s, err := p.countTerms(ctx)
	if err != nil {
		return fmt.Errorf("sum up the agents: %w", err)
	}
	s.Header = p.nextHeader(w, w.now+summaryLife.Milliseconds())
	r, err := record.Sign(p.cfg.Signer.Network(), s, w.key)
	if err != nil {
		return fmt.Errorf("sign a summary: %w", err)
	}
	if err := p.admitRecord(ctx, r); err != nil {
		return fmt.Errorf("store a summary: %w", err)
	}
	p.summary = summaryOf{r.Hash, r.Seq, r.Issued, r.Expires, r.Key}
	return nil
}

// countTerms builds a summary from the published records, with the words that other portals would index for
// them.
func (p *Publisher) countTerms(ctx context.Context) (*record.Summary, error) {
	card, err := record.Open(p.cfg.Signer.Network(), p.card)
	if err != nil {
		return nil, err
	}
	caps, languages, terms := make(map[string]int64), make(map[string]int64), make(map[string]bool)
	err = p.cfg.Replica.Agents(ctx, p.cfg.Signer.ID(), func(wire []byte) bool {
		body, err := record.DecodeAdmitted(wire)
		a, ok := body.(*record.Agent)
		if err != nil || !ok || a.Epoch != p.epoch {
			return ctx.Err() == nil
		}
		for _, c := range a.Caps {
			caps[c]++
		}
		for _, l := range a.Languages {
			languages[l]++
		}
		if shown, err := translate.Agent(card.Body.(*record.Card), a); err == nil {
			index.Terms(shown, func(term string) { terms[term] = true })
		}
		return ctx.Err() == nil
	})
	if err != nil {
		return nil, err
	}
	s := new(record.Summary)
	left := maxSummaryBytes - headerBytes
	for _, c := range frequent(caps, capBytes, len(`{"cap":"","count":10000000},`)) {
		s.Caps = append(s.Caps, record.CapCount{Cap: c, Count: caps[c]})
		left -= len(c) + len(`{"cap":"","count":10000000},`)
	}
	s.Languages = frequent(languages, languageBytes, len(`"",`))
	for _, l := range s.Languages {
		left -= len(l) + len(`"",`)
	}
	s.Terms = make(record.Bloom, min(len(terms)*bitsPerTerm/8+1, left*3/4, record.MaxBloom))
	for t := range terms {
		s.Terms.Add(t)
	}
	return s, nil
}

// frequent returns the most frequent names, sorted by name: at most 1,000, and as many as fit into size
// bytes when each needs over bytes in addition.
func frequent(counts map[string]int64, size, over int) []string {
	list := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	list = list[:min(len(list), 1000)]
	for i, name := range list {
		if size -= len(name) + over; size < 0 {
			list = list[:i]
			break
		}
	}
	slices.Sort(list)
	return list
}

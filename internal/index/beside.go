package index

import "agentsite/internal/hub"

// Beside implements hub.Index: it searches only the agents in few, which need not be in the index, with
// word weights as if they were, so that their scores can be merged with those of Search. It costs as
// much as one Put for each of them.
func (x *Index) Beside(few []hub.Agent, q hub.Query) (hub.Page, error) {
	return x.BesideBy(few, q, Sought{}, nil)
}

// BesideBy is Beside by the vectors of a model outside, if by has one: those of the texts of each agent, as TextsOf
// lists them.
func (x *Index) BesideBy(few []hub.Agent, q hub.Query, by Sought, vectors [][][]float32) (hub.Page, error) {
	aside := x.blank()
	x.mu.RLock()
	defer x.mu.RUnlock()
	for i, a := range few {
		aside.Put(a)
		if doc, known := aside.byID.Find(a.ID); known && aside.outer != nil && i < len(vectors) {
			aside.outer.put(doc, rowsOf(vectors[i]), 0)
		}
	}
	aside.words.Like(x.words)
	return aside.SearchBy(q, by)
}

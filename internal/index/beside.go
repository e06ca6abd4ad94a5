package index

import "agentsite/internal/hub"

// Beside implements hub.Index: it searches only the agents in few, which need not be in the index, with
// word weights as if they were, so that their scores can be merged with those of Search. It costs as
// much as one Put for each of them.
func (x *Index) Beside(few []hub.Agent, q hub.Query) (hub.Page, error) {
	aside := x.blank()
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, a := range few {
		aside.Put(a)
	}
	aside.words.Like(x.words)
	return aside.Search(q)
}

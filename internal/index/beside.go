package index

import "agentsite/internal/hub"

// Beside implements hub.Index. It takes about as long as putting the few does.
func (x *Index) Beside(few []hub.Agent, q hub.Query) (hub.Page, error) {
	aside := New()
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, a := range few {
		aside.Put(a)
	}
	aside.words.Like(x.words)
	return aside.Search(q)
}

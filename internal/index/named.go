package index

import (
	"strings"

	"agentsite/internal/hub"
)

// Get implements hub.Index. The lists in the result are shared with the index and must not be changed.
func (x *Index) Get(id string) (hub.Agent, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	doc, ok := x.byID.Find(id)
	if !ok {
		return hub.Agent{}, false
	}
	return x.agentOf(doc), true
}

// Named implements hub.Index. It walks the keys in order, where all agents of one name and portal are
// adjacent.
func (x *Index) Named(name, portal string) []hub.Agent {
	prefix := name + "\x00" + portal + "\x00"
	x.mu.RLock()
	defer x.mu.RUnlock()
	var list []hub.Agent
	x.words.Ascend(prefix, func(doc int) bool {
		if !strings.HasPrefix(x.words.Key(doc), prefix) {
			return false
		}
		list = append(list, x.agentOf(uint32(doc)))
		return len(list) < hub.MaxNamed
	})
	return list
}

// Of implements hub.Index. The portal "" is this one.
func (x *Index) Of(portal string) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	docs := x.docsOf(portal)
	if docs == nil {
		return nil
	}
	ids := make([]string, 0, docs.len())
	for doc := range docs.eachDoc {
		ids = append(ids, idOf(x.words.Key(int(doc))))
	}
	return ids
}

// Count implements hub.Index: the number of ids that Of returns.
func (x *Index) Count(portal string) int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	docs := x.docsOf(portal)
	if docs == nil {
		return 0
	}
	return docs.len()
}

// docsOf returns the documents listed by a portal, nil if there are none; the caller must hold mu.
func (x *Index) docsOf(portal string) *docSet {
	return x.facets[portalFacet].findValue(normalizeValue(portalFacet, portal))
}

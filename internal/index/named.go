package index

import (
	"strings"

	"agentsite/internal/hub"
)

// Get implements hub.Index.
func (x *Index) Get(id string) (hub.Agent, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	doc, ok := x.byID.Find(id)
	if !ok {
		return hub.Agent{}, false
	}
	return x.agentOf(doc), true
}

// Named implements hub.Index: the agents of a handle stand beside each other
// in the order of keys.
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

// Of implements hub.Index.
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

// Count implements hub.Index.
func (x *Index) Count(portal string) int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	docs := x.docsOf(portal)
	if docs == nil {
		return 0
	}
	return docs.len()
}

// docsOf returns the documents that a portal lists, nil if there are none; the
// caller must hold mu.
func (x *Index) docsOf(portal string) *docSet {
	return x.facets[portalFacet].findValue(normalizeValue(portalFacet, portal))
}

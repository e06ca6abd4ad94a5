package index

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// Numbers of the facets. Cursors contain them (queryHash), so they must not change.
const (
	tagFacet = iota
	skillFacet
	publisherFacet
	kindFacet
	portalFacet
	liveFacet
	languageFacet
	modalityFacet
	signedFacet
	proofFacet
	facetCount
)

// facetNames are the keys of hub.Page.Facets.
var facetNames = [facetCount]string{
	tagFacet: "tag", skillFacet: "skill", publisherFacet: "publisher", kindFacet: "kind", portalFacet: "portal",
	liveFacet: "live", languageFacet: "language", modalityFacet: "modality", signedFacet: "signed", proofFacet: "proof",
}

// facetLimits is the maximum number of values that a page lists for each facet, 0 for all. Facets with
// free text values, or with many values in a network, have a limit.
var facetLimits = [facetCount]int{
	tagFacet: hub.MaxFacetValues, skillFacet: hub.MaxFacetValues, publisherFacet: hub.MaxFacetValues,
	portalFacet: hub.MaxFacetValues,
}

// localPortal is the value of the portal facet for agents of this portal.
const localPortal = "local"

// maxFacetValues limits the values of one agent in one facet. The service
// allows fewer, but an agent of another portal may claim more.
const maxFacetValues = 256

// facetValue is one value of an agent in the facet with that number, in the form of normalizeValue.
type facetValue struct {
	facet int
	text  string
}

// facetValues appends the values of an agent to list without duplicates, ordered by facet. Each facet
// gets at most maxFacetValues.
func facetValues(list []facetValue, a *hub.Agent) []facetValue {
	facet, from := -1, 0
	eachFacetValue(a, func(f int, text string) {
		if f != facet {
			facet, from = f, len(list)
		}
		v := facetValue{f, normalizeValue(f, text)}
		if v.text != "" && len(list)-from < maxFacetValues && !slices.Contains(list[from:], v) {
			list = append(list, v)
		}
	})
	return list
}

// eachFacetValue calls yield with the values of an agent as the agent states them, ordered by facet.
// Values may repeat.
func eachFacetValue(a *hub.Agent, yield func(facet int, text string)) {
	for i := range a.Skills {
		for _, tag := range a.Skills[i].Tags {
			yield(tagFacet, tag)
		}
	}
	for i := range a.Skills {
		yield(skillFacet, cmp.Or(a.Skills[i].Name, a.Skills[i].ID))
	}
	yield(publisherFacet, a.Publisher) // the hub keeps only a publisher with a proved domain
	yield(kindFacet, string(a.Kind))
	yield(portalFacet, a.Portal)
	for _, host := range a.Also {
		yield(portalFacet, host)
	}
	yield(liveFacet, string(a.Liveness.State))
	for _, language := range a.Languages {
		yield(languageFacet, language)
		// "de-CH" also counts as "de", so that a filter by language finds regional variants.
		for i := strings.LastIndexByte(language, '-'); i > 0; i = strings.LastIndexByte(language, '-') {
			language = language[:i]
			yield(languageFacet, language)
		}
	}
	for _, modality := range a.Modalities() {
		yield(modalityFacet, modality)
	}
	yield(signedFacet, strconv.FormatBool(a.Signed()))
	yield(proofFacet, a.Proof.State)
}

// normalizeValue returns the form in which a value is counted and filtered: free text is lower-cased,
// and an empty state gets a name.
func normalizeValue(facet int, text string) string {
	switch facet {
	case tagFacet, skillFacet, languageFacet, publisherFacet:
		return strings.ToLower(strings.TrimSpace(text))
	case portalFacet:
		return cmp.Or(text, localPortal)
	case liveFacet:
		return cmp.Or(text, string(hub.Unknown))
	case proofFacet:
		return cmp.Or(text, hub.Unproven)
	}
	return text
}

// filtersOf returns the values that a query filters by, for each facet; an empty list is no filter.
func filtersOf(q *hub.Query) [facetCount][]string {
	return [facetCount][]string{
		kindFacet: q.Kinds, tagFacet: q.Tags, skillFacet: q.Skills, portalFacet: q.Portals, liveFacet: q.Live,
		languageFacet: q.Languages, modalityFacet: q.Modalities, signedFacet: q.Signed, proofFacet: q.Proofs,
		publisherFacet: q.Publishers,
	}
}

// valueID identifies a facet value: the number of the facet in the upper 4 bits, the number of the value
// within the facet below.
type valueID uint32

const numberBits = 28

func newValueID(facet int, number uint32) valueID {
	return valueID(facet)<<numberBits | valueID(number)
}

func (v valueID) facet() int     { return int(v >> numberBits) }
func (v valueID) number() uint32 { return uint32(v) & (1<<numberBits - 1) }

// facet indexes the values of one facet: it finds values by text, and the documents of each value.
type facet struct {
	byText bm25.Table // finds the number of a value by its text
	values []value    // indexed by number
	leads  []uint64   // first 8 bytes of each text (leadOf), indexed by number; comparing them rarely needs the text
	free   []uint32   // numbers that can be reused
	// order lists the value numbers by descending number of documents, and above[n] is the number of
	// values with more than n documents. Both let addDoc and removeDoc keep the order with one swap, and
	// countByValue read the most frequent values only.
	order, above []uint32
}

type value struct {
	text string
	docs docSet
	pos  uint32 // position in facet.order
}

func newFacet() *facet {
	f := &facet{above: make([]uint32, 1)}
	f.byText.Texts = f
	return f
}

// Text implements bm25.Texts for byText.
func (f *facet) Text(number uint32) string { return f.values[number].text }

// findValue returns the documents with a value, or nil if no document has it.
func (f *facet) findValue(text string) *docSet {
	if number, ok := f.byText.Find(text); ok {
		return &f.values[number].docs
	}
	return nil
}

// internValue returns the number of a value and adds the value if it is new. The caller must then call
// addDoc, because a value without documents must not remain.
func (f *facet) internValue(text string) uint32 {
	hash := bm25.HashOf(text)
	number, ok := f.byText.FindHash(text, hash)
	if ok {
		return number
	}
	if n := len(f.free); n > 0 {
		number, f.free = f.free[n-1], f.free[:n-1]
	} else {
		number = uint32(len(f.values))
		f.values, f.leads = append(f.values, value{}), append(f.leads, 0)
	}
	f.leads[number] = leadOf(text)
	f.values[number] = value{text: strings.Clone(text), pos: uint32(len(f.order))}
	f.order = append(f.order, number) // the last position is right: the value has no documents yet
	f.byText.InsertHash(number, hash)
	return number
}

// leadOf returns the first 8 bytes of a text as a big-endian number. If two leads differ, their texts
// are in the same order; if they are equal, the texts must be compared.
func leadOf(text string) uint64 {
	var b [8]byte
	copy(b[:], text)
	return binary.BigEndian.Uint64(b[:])
}

// compareValues compares the texts of two values, given by number, as strings.Compare does.
func (f *facet) compareValues(a, b uint32) int {
	if c := cmp.Compare(f.leads[a], f.leads[b]); c != 0 {
		return c
	}
	return strings.Compare(f.values[a].text, f.values[b].text)
}

// addDoc records that doc has a value that it did not have before. docs is the number of documents in
// the index.
func (f *facet) addDoc(number, doc uint32, docs int) {
	v := &f.values[number]
	n := v.docs.len()
	v.docs.add(doc, docs)
	// v now has n+1 documents: swapping v with the first value that has n documents keeps order sorted.
	f.swapValues(v.pos, f.above[n])
	f.above[n]++
	if n+1 == len(f.above) {
		f.above = append(f.above, 0)
	}
}

// removeDoc records that doc no longer has a value. The value is deleted with its last document. docs is
// the number of documents in the index.
func (f *facet) removeDoc(number, doc uint32, docs int) {
	v := &f.values[number]
	n := v.docs.len()
	v.docs.remove(doc, docs)
	// v now has n-1 documents: swapping v with the last value that has n documents keeps order sorted.
	f.above[n-1]--
	f.swapValues(v.pos, f.above[n-1])
	if n == 1 {
		f.swapValues(v.pos, uint32(len(f.order)-1))
		f.order = f.order[:len(f.order)-1]
		f.byText.Delete(number)
		*v = value{}
		f.free = append(f.free, number)
	}
}

func (f *facet) swapValues(i, j uint32) {
	a, b := f.order[i], f.order[j]
	f.order[i], f.order[j] = b, a
	f.values[a].pos, f.values[b].pos = j, i
}

// setValues replaces the facet values of a document by list; the caller must hold mu.
func (x *Index) setValues(doc uint32, list []facetValue) {
	old := x.values[doc]
	ids := make([]valueID, len(list))
	for i, v := range list {
		f := x.facets[v.facet]
		ids[i] = newValueID(v.facet, f.internValue(v.text))
		if !slices.Contains(old, ids[i]) {
			f.addDoc(ids[i].number(), doc, len(x.docs))
		}
	}
	for _, id := range old {
		if !slices.Contains(ids, id) {
			x.facets[id.facet()].removeDoc(id.number(), doc, len(x.docs))
		}
	}
	x.values[doc] = ids
}

// fitFacets copies the lists of all documents, and of all values, into one array each, in the order in
// which searches read them. That takes less memory, and counting has fewer cache misses. Load calls it
// after a large fill. The caller must hold mu.
func (x *Index) fitFacets() {
	size := 0
	for _, ids := range x.values {
		size += len(ids)
	}
	all := make([]valueID, 0, size)
	for doc := range x.values {
		all, x.values[doc] = appendFitted(all, x.values[doc])
	}
	for _, f := range x.facets {
		size := 0
		for i := range f.values {
			size += len(f.values[i].docs.list)
		}
		all := make([]uint32, 0, size)
		for _, number := range f.order {
			docs := &f.values[number].docs
			all, docs.list = appendFitted(all, docs.list)
		}
	}
}

// appendFitted appends list to all, which must have the capacity, and returns the appended part as a
// slice without spare capacity.
func appendFitted[T any](all, list []T) (_, fitted []T) {
	from := len(all)
	all = append(all, list...)
	return all, all[from:len(all):len(all)]
}

// valueOf returns the value with an id. The pointer is valid until a value is added; the caller must
// hold mu.
func (x *Index) valueOf(id valueID) *value { return &x.facets[id.facet()].values[id.number()] }

// unionDocs adds to bits the documents that have at least one of the values in texts. facet is the
// number of f.
func (f *facet) unionDocs(facet int, texts []string, bits *bm25.Bits) {
	for _, text := range texts {
		if docs := f.findValue(normalizeValue(facet, text)); docs != nil {
			docs.addTo(bits)
		}
	}
}

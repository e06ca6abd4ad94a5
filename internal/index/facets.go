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

// The facets. Cursors depend on their numbers.
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

// facetNames are the names in hub.Page.Facets.
var facetNames = [facetCount]string{
	tagFacet: "tag", skillFacet: "skill", publisherFacet: "publisher", kindFacet: "kind", portalFacet: "portal",
	liveFacet: "live", languageFacet: "language", modalityFacet: "modality", signedFacet: "signed", proofFacet: "proof",
}

// facetLimits are the numbers of values that a page shows, 0 for all. Facets with free values, or with
// many in a network, are limited.
var facetLimits = [facetCount]int{
	tagFacet: hub.MaxFacetValues, skillFacet: hub.MaxFacetValues, publisherFacet: hub.MaxFacetValues,
	portalFacet: hub.MaxFacetValues,
}

// localPortal stands for this portal as a value of the portal facet.
const localPortal = "local"

// maxFacetValues limits the values of one agent in one facet. The service
// allows fewer, but an agent of another portal may claim more.
const maxFacetValues = 256

// facetValue is a value of a facet.
type facetValue struct {
	facet int
	text  string
}

// facetValues appends the distinct values of an agent to list, facet by facet.
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

// eachFacetValue calls yield with the values of an agent as they are written,
// in the order of facets, some more than once.
func eachFacetValue(a *hub.Agent, yield func(facet int, text string)) {
	for i := range a.Skills {
		for _, tag := range a.Skills[i].Tags {
			yield(tagFacet, tag)
		}
	}
	for i := range a.Skills {
		yield(skillFacet, cmp.Or(a.Skills[i].Name, a.Skills[i].ID))
	}
	yield(publisherFacet, a.Publisher) // the hub keeps only one that is proved
	yield(kindFacet, string(a.Kind))
	yield(portalFacet, a.Portal)
	for _, host := range a.Also {
		yield(portalFacet, host)
	}
	yield(liveFacet, string(a.Liveness.State))
	for _, language := range a.Languages {
		yield(languageFacet, language)
		// An agent that speaks the German of Switzerland speaks German.
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

// normalizeValue returns the form in which a value is counted and filtered by: case does not matter in
// typed values, and an empty state has a name.
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

// filtersOf returns the values that a query asks for, by facet.
func filtersOf(q *hub.Query) [facetCount][]string {
	return [facetCount][]string{
		kindFacet: q.Kinds, tagFacet: q.Tags, skillFacet: q.Skills, portalFacet: q.Portals, liveFacet: q.Live,
		languageFacet: q.Languages, modalityFacet: q.Modalities, signedFacet: q.Signed, proofFacet: q.Proofs,
		publisherFacet: q.Publishers,
	}
}

// valueID is a facet in the upper 4 bits and the number of a value of it.
type valueID uint32

const numberBits = 28

func newValueID(facet int, number uint32) valueID {
	return valueID(facet)<<numberBits | valueID(number)
}

func (v valueID) facet() int     { return int(v >> numberBits) }
func (v valueID) number() uint32 { return uint32(v) & (1<<numberBits - 1) }

// facet holds the values of one facet and the documents of each value.
type facet struct {
	byText bm25.Table // numbers of values
	values []value    // by number
	leads  []uint64   // likewise, the beginnings of the texts: comparing them reads less memory
	free   []uint32   // numbers
	// order holds the values by descending number of documents, and above[n] is
	// how many have more than n. So every change is one swap, and the most
	// frequent values are found without a look at the others.
	order, above []uint32
}

type value struct {
	text string
	docs docSet
	pos  uint32 // in order
}

func newFacet() *facet {
	f := &facet{above: make([]uint32, 1)}
	f.byText.Texts = f
	return f
}

// Text implements bm25.Texts.
func (f *facet) Text(number uint32) string { return f.values[number].text }

// findValue returns the documents of a value, nil if there are none.
func (f *facet) findValue(text string) *docSet {
	if number, ok := f.byText.Find(text); ok {
		return &f.values[number].docs
	}
	return nil
}

// internValue returns the number of a value and makes it known. The caller must add
// a document to it.
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
	f.order = append(f.order, number) // without documents it is the last one
	f.byText.InsertHash(number, hash)
	return number
}

// leadOf returns the first 8 bytes of a text as a number. Leads are in the order
// of their texts, or equal.
func leadOf(text string) uint64 {
	var b [8]byte
	copy(b[:], text)
	return binary.BigEndian.Uint64(b[:])
}

// compareValues orders two values by text.
func (f *facet) compareValues(a, b uint32) int {
	if c := cmp.Compare(f.leads[a], f.leads[b]); c != 0 {
		return c
	}
	return strings.Compare(f.values[a].text, f.values[b].text)
}

// addDoc notes that a document has a value, which it did not have. The index has
// docs documents.
func (f *facet) addDoc(number, doc uint32, docs int) {
	v := &f.values[number]
	n := v.docs.len()
	v.docs.add(doc, docs)
	// The first value with n documents changes places with v, which has one more now.
	f.swapValues(v.pos, f.above[n])
	f.above[n]++
	if n+1 == len(f.above) {
		f.above = append(f.above, 0)
	}
}

// removeDoc notes that a document no longer has a value. A value without documents
// is forgotten.
func (f *facet) removeDoc(number, doc uint32, docs int) {
	v := &f.values[number]
	n := v.docs.len()
	v.docs.remove(doc, docs)
	// The last value with n documents changes places with v, which has one less now.
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

// setValues replaces the values of a document; the caller must hold mu.
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

// fitFacets puts the lists of all documents and of all values one behind the other, in the order in
// which searches read them: that takes less memory, and counting waits less for it. The caller must
// hold mu.
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

// appendFitted appends a list to all, which has the room, and returns the list as a part of it.
func appendFitted[T any](all, list []T) (_, fitted []T) {
	from := len(all)
	all = append(all, list...)
	return all, all[from:len(all):len(all)]
}

// valueOf returns the value with an id; the caller must hold mu.
func (x *Index) valueOf(id valueID) *value { return &x.facets[id.facet()].values[id.number()] }

// unionDocs adds the documents that have one of some values to bits.
func (f *facet) unionDocs(facet int, texts []string, bits *bm25.Bits) {
	for _, text := range texts {
		if docs := f.findValue(normalizeValue(facet, text)); docs != nil {
			docs.addTo(bits)
		}
	}
}

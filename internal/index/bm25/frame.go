package bm25

import "strings"

// frame holds words with which people phrase a request, such as "help", "me", "please". Beside other words they find
// nothing, even if they are rare in the documents: "help me with my taxes, please" is about taxes.
var frame = func() map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(`a an the and or but of to in on at by for from with as into about than then so if is are be was were am been
		being i me my mine we us our you your he him his she her it its they them their this that these those there here who whom whose which
		what when where why how can could will would shall should may might must do does did have has had having not no just very too also
		some any somebody someone anybody anyone something anything please thanks need needs want wants like looking im ive id dont doesnt
		cant s t hello hi`) {
		set[w] = true
	}
	return set
}()

// dropFramed removes the alternatives of frame words, so that they find nothing. It changes nothing if the query
// has only frame words, and never a word in a quoted phrase.
func dropFramed(words []wanted) {
	is := make([]bool, len(words))
	rest := 0
	for i, w := range words {
		is[i] = !w.phrase && (frame[w.text] || w.text == "help" && i+1 < len(words) && (words[i+1].text == "me" || words[i+1].text == "us"))
		if !is[i] {
			rest++
		}
	}
	for i := range words {
		if is[i] && rest > 0 {
			words[i].alts, words[i].idf = nil, 0
		}
	}
}

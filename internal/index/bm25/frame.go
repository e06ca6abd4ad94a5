package bm25

import "strings"

// frame holds words with which people phrase a request, such as "help", "me", "please". Their weight is reduced
// beside other words, even if they are rare in the documents: "help me with my taxes, please" is about taxes.
var frame = func() map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(`a an the and or of to in on at by for from with as into about is are be was were am been being i me my we us our
		you your he she it its they them their this that these those there here who whom whose which what when where why how can could will would
		shall should may might must do does did have has had not no some any somebody someone anybody anyone something anything please thanks
		need want wants like looking im id hello hi`) {
		set[w] = true
	}
	return set
}()

const weightFrame = 0.1

// markFramed reduces the weight of frame words in a query. It changes nothing if the query has only
// frame words, and never a word in a quoted phrase.
func markFramed(words []wanted) {
	is := make([]bool, len(words))
	rest := 0
	for i, w := range words {
		is[i] = !w.phrase && (frame[w.text] || w.text == "help" && i+1 < len(words) && (words[i+1].text == "me" || words[i+1].text == "us"))
		if !is[i] {
			rest++
		}
	}
	if rest == 0 {
		return
	}
	for i := range words {
		if is[i] {
			words[i].idf *= weightFrame
			for j := range words[i].alts {
				words[i].alts[j].worth *= weightFrame
			}
		}
	}
}

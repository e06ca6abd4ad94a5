// Package bm25 is a small updatable full-text index: documents with numbered
// ids and weighted fields go in, ranked ids with the fields that matched come
// out. It knows words and no kinds of documents; agents and sections of the
// manual are searched by the same code.
//
// Ranking is BM25F: the occurrences of a word in all fields are added with
// the weight of each field and saturated once, so a word in the name beats
// the same word in a description but repeating it does not win. The lengths
// fields are measured against are constants of the index, not averages of
// its content: a posting carries its finished impact in ten bits.
//
// An Index does not lock. Any number of goroutines may read it while none
// writes; a writer excludes all others:
//
//	x := bm25.New(bm25.Field{Name: "title", Weight: 4, Length: 5}, bm25.Field{Name: "body", Weight: 1, Length: 200})
//	x.Put(0, "install", x.Analyze([]string{"Install"}, []string{"One file, no services."}))
//	hits := x.Query("instal", 10)
//
// A query is words, all of them optional; "phrases", which must occur;
// -words and -"phrases", which must not. The last word matches by prefix and
// unknown words by near spellings, both for less.
package bm25

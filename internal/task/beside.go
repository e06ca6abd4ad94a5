package task

import (
	"bytes"
	"slices"
)

// WithoutAnswer returns the artifacts without the parts that the answer already holds, so that a client
// does not get them twice. Artifacts without remaining parts are left out. The given slice stays
// unchanged.
func WithoutAnswer(list []Artifact, answer []Part) []Artifact {
	var out []Artifact
	for _, a := range list {
		a.Parts = slices.DeleteFunc(slices.Clone(a.Parts), func(p Part) bool {
			return slices.ContainsFunc(answer, func(said Part) bool { return equalParts(said, p) })
		})
		if len(a.Parts) > 0 {
			out = append(out, a)
		}
	}
	return out
}

// equalParts reports whether two parts have the same text, file or data. Parts with inline bytes
// never count as equal.
func equalParts(a, b Part) bool {
	return a.Text == b.Text && a.URL == b.URL && a.Filename == b.Filename && len(a.Raw)+len(b.Raw) == 0 && bytes.Equal(a.Data, b.Data)
}

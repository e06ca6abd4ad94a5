package task

import (
	"bytes"
	"slices"
)

// Beside are artifacts without what an answer holds already, which is told
// where the answer is. Those of which nothing is left, or was kept, are left out;
// the given ones stay as they are.
func Beside(list []Artifact, answer []Part) []Artifact {
	var out []Artifact
	for _, a := range list {
		a.Parts = slices.DeleteFunc(slices.Clone(a.Parts), func(p Part) bool {
			return slices.ContainsFunc(answer, func(said Part) bool { return same(said, p) })
		})
		if len(a.Parts) > 0 {
			out = append(out, a)
		}
	}
	return out
}

// same reports whether two parts are one text, one file or one piece of data.
func same(a, b Part) bool {
	return a.Text == b.Text && a.URL == b.URL && a.Filename == b.Filename && len(a.Raw)+len(b.Raw) == 0 &&
		bytes.Equal(a.Data, b.Data)
}

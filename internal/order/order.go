// Package order sorts without costing the binary an instance of the standard
// library's sort for each type: those of slices.SortFunc take 9 to 13 kB each,
// and there would be dozens. It is for lists that are not long; what is sorted
// often, or by the thousand, has an instance of its own. It knows nothing else.
package order

import "sort"

// By sorts a slice as slices.SortStableFunc does.
func By[T any](s []T, compare func(a, b T) int) {
	sort.SliceStable(s, func(i, j int) bool { return compare(s[i], s[j]) < 0 })
}

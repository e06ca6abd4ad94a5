package engine

import "context"

// Sized is a row that knows about how many bytes of memory it takes.
type Sized interface{ Size() int }

// ListUpTo reads rows one by one and ends after the row with which they exceed the given bytes. cut
// reports whether a further row exists. The first row is always read, so that a caller who continues
// after the last row reads all of them.
func ListUpTo[T Sized](ctx context.Context, f DB, bytes int, query string, args ...any) (list []T, cut bool, err error) {
	size := 0
	err = Each(ctx, f, func(r T) bool {
		if cut = size > bytes; cut {
			return false
		}
		list, size = append(list, r), size+r.Size()
		return true
	}, query, args...)
	return list, cut, err
}

// Each calls visit with each row until it returns false. Only one row is in memory at a time.
func Each[T any](ctx context.Context, f DB, visit func(T) bool, query string, args ...any) error {
	rows, err := f.Rows(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var r T
		if err := rows.StructScan(&r); err != nil {
			return f.Classify(err)
		}
		if !visit(r) {
			return nil
		}
	}
	return f.Classify(rows.Err())
}

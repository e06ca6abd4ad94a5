package sqlite

import "context"

// Sized is a row that knows about how many bytes of memory it takes.
type Sized interface{ Size() int }

// ListUpTo reads rows one by one and ends after the row with which they exceed the given bytes. cut
// reports whether a further row exists. The first row is always read, so that a caller who continues
// after the last row reads all of them.
func ListUpTo[T Sized](ctx context.Context, f *DB, bytes int, query string, args ...any) (list []T, cut bool, err error) {
	s, err := f.Statement(ctx, query)
	if err != nil {
		return nil, false, err
	}
	rows, err := s.QueryxContext(ctx, args...)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	for size := 0; rows.Next(); {
		if size > bytes {
			return list, true, nil
		}
		var r T
		if err := rows.StructScan(&r); err != nil {
			return nil, false, err
		}
		list, size = append(list, r), size+r.Size()
	}
	return list, false, rows.Err()
}

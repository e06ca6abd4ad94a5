package settings

import "errors"

// MemoryLimits bound the memory that readers of answers hold.
type MemoryLimits struct {
	// Reading bounds the bytes of all readers, ReadingPerReader those of one account or guest address,
	// and ReadingReserve is the part of Reading that only operators get.
	Reading, ReadingPerReader, ReadingReserve int64
	// Downloads bounds the exports and files that one account or guest address receives at the same time.
	Downloads int64
	// ReadStall is the time in which a reader must receive the next part of an answer, in milliseconds.
	ReadStall int64
}

func defaultMemoryLimits() MemoryLimits {
	return MemoryLimits{Reading: 64 << 20, ReadingPerReader: 8 << 20, ReadingReserve: 8 << 20, Downloads: 4,
		ReadStall: 60_000}
}

func (m *MemoryLimits) list() []Limit {
	return []Limit{
		{"reading", UnitBytes, 16 << 20, 1 << 40, &m.Reading},
		{"reading-per-reader", UnitBytes, 1 << 20, 1 << 40, &m.ReadingPerReader},
		{"reading-reserve", UnitBytes, 1 << 20, 1 << 40, &m.ReadingReserve},
		{"downloads", UnitCount, 1, 10_000, &m.Downloads},
		{"read-stall", UnitDuration, 5_000, 3_600_000, &m.ReadStall},
	}
}

func (m MemoryLimits) check() error {
	if m.ReadingReserve > m.Reading/2 || m.ReadingPerReader > m.Reading-m.ReadingReserve {
		return errors.New("--limits: reading-reserve is at most half of reading, and reading-per-reader at most the rest")
	}
	return nil
}

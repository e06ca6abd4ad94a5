package proc

import (
	"slices"
	"testing"
	"time"
)

// clockOf counts a second of one processor at each call; in the rounds named,
// other programs use half of it.
func clockOf(loud ...int) func() (busy, own, all time.Duration) {
	calls := 0
	var busy, all time.Duration
	return func() (time.Duration, time.Duration, time.Duration) {
		if calls%2 == 1 && slices.Contains(loud, calls/2) {
			busy += time.Second / 2
		}
		calls++
		all += time.Second
		return busy, 0, all
	}
}

func TestMeasure_RepeatsDisturbedRounds(t *testing.T) {
	t.Parallel()
	i := -1
	r, err := measure(3, clockOf(1, 2), func() (int, error) { i++; return i, nil })
	if err != nil || !slices.Equal(r.List, []int{0, 3, 4}) || r.Doubt != "" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestMeasure_GivesUpOnABusyMachine(t *testing.T) {
	t.Parallel()
	i := -1
	r, err := measure(3, clockOf(0, 2, 3, 4, 5, 6), func() (int, error) { i++; return i, nil })
	if err != nil || len(r.List) != 5 || r.Doubt == "" || r.Others != 0.5 {
		t.Errorf("%+v, %v", r, err)
	}
}

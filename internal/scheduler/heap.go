package scheduler

// element is a member of a heap. slot holds its index plus one, 0 outside of any heap.
type element[T any] interface {
	before(other T) bool
	slot() *int
}

// pushHeap adds e to a heap, whose least element is its first one.
func pushHeap[T element[T]](h []T, e T) []T {
	h = append(h, e)
	*e.slot() = len(h)
	siftUp(h, len(h)-1)
	return h
}

// removeHeap removes e, which must be in h.
func removeHeap[T element[T]](h []T, e T) []T {
	at, last := *e.slot()-1, len(h)-1
	*e.slot() = 0
	moved := h[last]
	var none T
	h[last] = none
	h = h[:last]
	if at < last {
		h[at] = moved
		*moved.slot() = at + 1
		fixHeap(h, moved)
	}
	return h
}

// fixHeap restores the order after the key of e changed.
func fixHeap[T element[T]](h []T, e T) {
	if at := siftUp(h, *e.slot()-1); at == *e.slot()-1 {
		siftDown(h, at)
	}
}

func siftUp[T element[T]](h []T, i int) int {
	for i > 0 {
		up := (i - 1) / 2
		if !h[i].before(h[up]) {
			break
		}
		swapElements(h, i, up)
		i = up
	}
	return i
}

func siftDown[T element[T]](h []T, i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].before(h[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		swapElements(h, i, least)
		i = least
	}
}

func swapElements[T element[T]](h []T, i, j int) {
	h[i], h[j] = h[j], h[i]
	*h[i].slot(), *h[j].slot() = i+1, j+1
}

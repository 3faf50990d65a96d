package actor

// ring is a first-in first-out queue that grows by doubling. It has no limit and
// no lock of its own.
type ring[T any] struct {
	buf  []T // its length is a power of two, or 0
	head int
	n    int
}

const ringMin = 8

func (q *ring[T]) push(v T) {
	if q.n == len(q.buf) {
		q.grow()
	}
	q.buf[(q.head+q.n)&(len(q.buf)-1)] = v
	q.n++
}

// pop takes the oldest value out. The ring must not be empty.
func (q *ring[T]) pop() T {
	var zero T
	v := q.buf[q.head]
	q.buf[q.head] = zero
	q.head = (q.head + 1) & (len(q.buf) - 1)
	q.n--
	return v
}

func (q *ring[T]) grow() {
	buf := make([]T, max(ringMin, 2*len(q.buf)))
	n := copy(buf, q.buf[q.head:])
	copy(buf[n:], q.buf[:q.head])
	q.buf, q.head = buf, 0
}

// trim gives the memory of an empty ring back when it has more than keep slots.
func (q *ring[T]) trim(keep int) {
	if q.n == 0 && len(q.buf) > keep {
		q.buf, q.head = nil, 0
	}
}

package cache

// node is an entry. It stands in one of the two queues.
type node[K comparable, V any] struct {
	key   K
	value V
	newer *node[K, V]
	older *node[K, V]
	size  int64
	born  uint64 // S3FIFO.puts when it came
	hits  uint8
	main  bool // in the main queue
}

// queue is a list of entries in the order in which they came into it.
type queue[K comparable, V any] struct {
	newest *node[K, V]
	oldest *node[K, V]
	bytes  int64
}

func (q *queue[K, V]) push(n *node[K, V]) {
	n.newer, n.older = nil, q.newest
	if q.newest != nil {
		q.newest.newer = n
	} else {
		q.oldest = n
	}
	q.newest = n
	q.bytes += n.size
}

func (q *queue[K, V]) remove(n *node[K, V]) {
	if n.newer != nil {
		n.newer.older = n.older
	} else {
		q.newest = n.older
	}
	if n.older != nil {
		n.older.newer = n.newer
	} else {
		q.oldest = n.newer
	}
	q.bytes -= n.size
}

package eventloop

// The sizes in which a loop keeps buffers. The smallest holds what waits of most messages,
// the largest a whole reading and what was left of the one before.
var bufferSizes = [...]int{4 << 10, 32 << 10, 128 << 10}

// buffersKept of each size, when nobody uses them: 64 of the largest are 8 MiB.
const buffersKept = 64

// bufferPool keeps the buffers that no connection needs. It belongs to one loop.
type bufferPool struct {
	free [len(bufferSizes)][][]byte
}

// take gives an empty buffer for at least n bytes.
func (p *bufferPool) take(n int) []byte {
	for class, size := range bufferSizes {
		if n > size {
			continue
		}
		if last := len(p.free[class]) - 1; last >= 0 {
			b := p.free[class][last]
			p.free[class] = p.free[class][:last]
			return b
		}
		return make([]byte, 0, size)
	}
	return make([]byte, 0, n)
}

// give takes a buffer back. One of no known size is left to the garbage collector.
func (p *bufferPool) give(b []byte) {
	for class, size := range bufferSizes {
		if cap(b) == size && len(p.free[class]) < buffersKept {
			p.free[class] = append(p.free[class], b[:0])
			return
		}
	}
}

// add appends to b, in a larger buffer when it does not fit. b may be nil.
func (p *bufferPool) add(b, data []byte) []byte {
	return append(p.room(b, len(data)), data...)
}

// room gives b with room for n more bytes.
func (p *bufferPool) room(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	need := len(b) + n
	if need > bufferSizes[len(bufferSizes)-1] {
		need += need / 2
	}
	larger := append(p.take(need), b...)
	if b != nil {
		p.give(b)
	}
	return larger
}

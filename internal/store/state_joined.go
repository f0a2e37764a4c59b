package store

// putJoined brings in what is kept of hosts beside the service's own. Where things are
// placed, and what is told of what is there, depends on the first and the last.
func (s *state) putJoined(p keyParts, e Entry) (touch, error) {
	switch p.kind {
	case KindJoinedHost:
		return touch{all: true}, keep(s.joined, p.host, e)
	case KindPresence:
		return touch{all: true}, keep(s.presence, p.host, e)
	}
	return touch{}, keep(s.tokens, p.name, e)
}

// keep decodes a record and puts it where its like are.
func keep[K comparable, V any](records map[K]Record[V], key K, e Entry) error {
	v, err := decode[V](e)
	if err == nil {
		records[key] = Record[V]{v, e.ModRevision}
	}
	return err
}

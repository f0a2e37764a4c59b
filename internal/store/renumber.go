package store

import "kurabe"

// Renumber makes a record of a backup fit to be restored: by is added to the numbers that
// agents obey the highest of, since they have seen later ones than the backup has. It says
// false of what is not restored: who was elected, and who was heard.
func Renumber(e Entry, by int64) (value []byte, keep bool, err error) {
	switch p := parseKey(e.Key); p.kind {
	case KindElection, KindPresence, KindJoinToken:
		return nil, false, nil
	case KindAssignment:
		return renumbered(e, func(a *kurabe.Assignment) {
			a.Generation += kurabe.Generation(by)
			if a.Role != nil {
				a.Role.Epoch += kurabe.Epoch(by)
				if a.Role.Source != nil && a.Role.Source.Epoch != 0 {
					a.Role.Source.Epoch += kurabe.Epoch(by)
				}
			}
		})
	case KindSnapshotAssignment:
		return renumbered(e, func(a *kurabe.SnapshotAssignment) { a.Generation += kurabe.Generation(by) })
	case KindGroup:
		return renumbered(e, func(g *kurabe.Group) { g.Epoch += kurabe.Epoch(by) })
	}
	return e.Value, true, nil
}

func renumbered[T any](e Entry, change func(*T)) ([]byte, bool, error) {
	v, err := decode[T](e)
	if err != nil {
		return nil, false, err
	}
	change(&v)
	value, err := encode(e.Key, v)
	return value, err == nil, err
}

// GroupOf says which instance a key of a group speaks of.
func GroupOf(key string) (kurabe.InstanceID, bool) {
	p := parseKey(key)
	return p.instance, p.kind == KindGroup
}

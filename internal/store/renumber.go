package store

import (
	"time"

	"kurabe"
)

// Renumber makes a record of a backup fit to be restored at a moment: to the numbers that
// agents obey the highest of, that is added, since they have seen later ones than the backup
// has. An order takes longer than a millisecond, and a change of who writes longer than a
// second, so that they rise from one restore to the next too. It says false of what is not
// restored: who was elected, and who was heard.
func Renumber(e Entry, at time.Time) (value []byte, keep bool, err error) {
	orders, epochs := kurabe.Generation(at.UnixMilli()), kurabe.Epoch(at.Unix())
	switch p := parseKey(e.Key); p.kind {
	case KindElection, KindPresence, KindJoinToken, KindDeliveryCursor, KindEventCursor:
		// A cursor names a revision, and the restored records have others: what was
		// delivered is sent again.
		return nil, false, nil
	case KindEventSubscription:
		return renumbered(e, func(s *kurabe.EventSubscription) { s.Since = kurabe.EventPlace{} })
	case KindAssignment:
		return renumbered(e, func(a *kurabe.Assignment) {
			a.Generation += orders
			if a.Role != nil {
				a.Role.Epoch += epochs
				if a.Role.Source != nil && a.Role.Source.Epoch != 0 {
					a.Role.Source.Epoch += epochs
				}
			}
		})
	case KindSnapshotAssignment:
		return renumbered(e, func(a *kurabe.SnapshotAssignment) { a.Generation += orders })
	case KindProxyAssignment:
		return renumbered(e, func(a *kurabe.ProxyAssignment) { a.Generation += orders })
	case KindTask:
		return renumbered(e, func(d *kurabe.Task) { d.Generation += orders })
	case KindGroup:
		return renumbered(e, func(g *kurabe.Group) { g.Epoch += epochs })
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

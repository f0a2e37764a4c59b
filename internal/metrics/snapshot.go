package metrics

import (
	"time"

	"kurabe"
)

// ofSnapshot names a snapshot.
func ofSnapshot(k kurabe.SnapshotKnown) labels {
	return append(ofSource(k), "snapshot", k.Name, "kind", string(k.Kind))
}

// ofSource names what a snapshot is of, as it was called then.
func ofSource(k kurabe.SnapshotKnown) labels {
	return of(kurabe.Following{Name: k.Instance, Cluster: k.Cluster})
}

func occupied(p Page, _ time.Time) (list []sample) {
	for _, k := range p.Snapshots {
		if k.Taken {
			list = append(list, sample{ofSnapshot(k), float64(k.OccupiedBytes)})
		}
	}
	return list
}

func damaged(p Page, _ time.Time) (list []sample) {
	for _, k := range p.Snapshots {
		switch {
		case !k.DamagedAt.IsZero():
			list = append(list, sample{ofSnapshot(k), 1})
		case !k.VerifiedAt.IsZero():
			list = append(list, sample{ofSnapshot(k), 0})
		}
	}
	return list
}

func verified(p Page, _ time.Time) (list []sample) {
	at := map[string]int{} // by what they are of: its place in list
	for _, k := range p.Snapshots {
		if k.VerifiedAt.IsZero() {
			continue
		}
		one := sample{ofSource(k), float64(k.VerifiedAt.Unix())}
		key := one.labels.String()
		n, known := at[key]
		switch {
		case !known:
			at[key] = len(list)
			list = append(list, one)
		case list[n].value < one.value:
			list[n] = one
		}
	}
	return list
}

package reconcile

import (
	"kurabe"
	"kurabe/internal/store"
)

// Following is how what follows each instance and DB cluster stands by the records. Of
// an instance with one server that is no read replica there is nothing to tell. How far each
// follower is behind only its host knows, so that is left open.
func Following(view *store.View) []kurabe.Following {
	list := []kurabe.Following{}
	for _, i := range view.Instances() {
		if i.Spec == nil || i.Status == nil || i.Spec.Deleting != nil {
			continue
		}
		if f := following(view, i); f.Standbys || len(f.Followers) > 0 {
			list = append(list, f)
		}
	}
	return list
}

func following(view *store.View, i *store.Instance) kurabe.Following {
	f := kurabe.Following{
		Name: i.Spec.Name, Cluster: i.Spec.Cluster, Standbys: i.Spec.Cluster || i.Status.Applied.MultiAZ,
		Failovers: i.Status.Failovers, Followers: []kurabe.Follower{},
	}
	if f.Standbys && !i.Status.Waits.Uncounted {
		n := i.Status.Waits.WaitCount
		f.Waits = &n
	}
	if source := kurabe.Followed(*i.Spec, i.Status); source != "" {
		if s, ok := view.Instance(source); ok && s.Spec != nil {
			f.Source = s.Spec.Name
		}
		f.Followers = append(f.Followers, kurabe.Follower{Server: i.ID, Host: i.Status.Host, Kind: kurabe.FollowerReplica, Instance: f.Name})
		return f
	}
	g := i.Group
	if g == nil {
		return f
	}
	f.Synced, f.UnprotectedSince = len(g.SyncSet) > 0, g.UnprotectedSince
	for _, m := range g.Members {
		if m.ID == g.Primary || m.Leaving {
			continue
		}
		one := kurabe.Follower{Server: m.ID, Host: m.Host, Kind: kurabe.FollowerStandby, Instance: f.Name}
		if f.Cluster {
			one.Kind, one.Instance = kurabe.FollowerReader, kurabe.ServerName(f.Name, m.ID)
		}
		f.Followers = append(f.Followers, one)
	}
	return f
}

package explain

import (
	"context"
	"fmt"
	"strings"
	"time"

	"kurabe"
	"kurabe/cmd/kurabe/client"
	ownapi "kurabe/internal/api/kurabe"
)

// Following asks how what follows stands, by kurabe.NameKey; empty where the service has no
// such answer, as an older one.
func Following(ctx context.Context, c *client.Client) map[string]kurabe.Following {
	byName := map[string]kurabe.Following{}
	out, err := client.Ask[ownapi.DescribeReplicationOutput](ctx, c, "DescribeReplication", nil)
	if err != nil {
		return byName
	}
	for _, f := range out.Replication {
		byName[kurabe.NameKey(f.Name, f.Cluster)] = f
		for _, one := range f.Followers {
			if one.Kind == kurabe.FollowerReader { // an instance to users
				byName[one.Instance] = kurabe.Following{Name: one.Instance, Followers: []kurabe.Follower{one}}
			}
		}
	}
	return byName
}

// behindWords says how far a follower is behind.
func behindWords(f kurabe.Follower) string {
	switch {
	case f.Lag == nil && f.Unknown == "":
		return "lag not known"
	case f.Lag == nil:
		return "lag not known: " + f.Unknown
	case f.Lag.Seconds == kurabe.ReplicaLagNone:
		return "does not follow: " + f.Lag.Reason
	}
	return lagWords(f.Lag.Seconds) + " behind"
}

// lagWords has a tenth of a second, no more: what is told is of a moment ago.
func lagWords(seconds float64) string { return fmt.Sprintf("%.1f s", seconds) }

// shortLag is behindWords for a table.
func shortLag(f kurabe.Follower) string {
	switch {
	case f.Lag == nil:
		return "?"
	case f.Lag.Seconds == kurabe.ReplicaLagNone:
		return "not following"
	}
	return lagWords(f.Lag.Seconds)
}

// aloneWords says since when a loss of the writer would lose commits, "" when it would not.
func aloneWords(f kurabe.Following, now time.Time) string {
	alone, known := f.Unprotected(now)
	switch {
	case !f.Standbys || f.Synced:
		return ""
	case !known:
		return "no standby"
	}
	return "no standby for " + alone.Round(time.Second).String()
}

// ReplicationColumn is what a table of instances says of one: whether it could lose commits, and
// how far what follows is behind; "-" of one that nobody follows and that follows nobody.
func ReplicationColumn(f kurabe.Following, now time.Time) string {
	var parts []string
	if text := aloneWords(f, now); text != "" {
		parts = append(parts, text)
	}
	for _, one := range f.Followers {
		who := "standby"
		switch {
		case one.Kind == kurabe.FollowerReplica:
			who = "of " + f.Source
		case one.Kind == kurabe.FollowerReader && f.Cluster:
			who = one.Instance
		case one.Kind == kurabe.FollowerReader:
			who = "reader"
		}
		parts = append(parts, who+": "+shortLag(one))
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

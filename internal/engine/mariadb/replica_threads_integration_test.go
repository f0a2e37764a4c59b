//go:build integration

package mariadb

import (
	"errors"
	"testing"

	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/replica"
)

// What the service asks of a server beside other things makes no files of temporary tables:
// two at a time would end the server (threads).
func TestGroupMakesNoFiles(t *testing.T) {
	enginetest.OnceIsEnough(t)
	p := newPair(t)
	p.waitForFollower(t)
	made := func() string { return inside(t, p.writer, "SHOW GLOBAL STATUS LIKE 'Created_tmp_disk_tables'")[0][1] }
	before := made()
	p.awaitFollowing(t)
	i, r := p.writer.Instance(), replicator(p.writer)
	if err := errors.Join(r.Followers(t.Context(), i), r.Waits(t.Context(), i), r.(*Driver).RefuseClients(t.Context(), i)); err != nil {
		t.Fatal(err)
	}
	err := guard.With(t.Context(), i, func(a *guard.Session) error {
		return errors.Join(guard.Upkeep(t.Context(), a), replica.Unstalled(t.Context(), a))
	})
	if err != nil {
		t.Fatal(err)
	}
	if now := made(); now != before {
		t.Errorf("%s tables were on the disk, now %s", before, now)
	}
}

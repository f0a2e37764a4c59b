//go:build fault

package fault

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// loggedSQL lists the rows with their times in the engine's log, in microseconds. A
// statement of MariaDB that commits by itself has one time for NOW() and for its log.
var loggedSQL = map[string]string{
	"postgres": "SELECT n || ' ' || (extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000000)::bigint FROM moments",
	"mariadb":  "SELECT concat(n, ' ', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', at)) FROM moments",
}

// keepsTimes is a parameter group with which the server can say when a row was
// committed; MariaDB's rows say so themselves.
func keepsTimes(t *testing.T, s *harness.Service, engine string) *string {
	t.Helper()
	if engine != "postgres" {
		return nil
	}
	versions, err := s.DescribeDBEngineVersions(t.Context(), &rds.DescribeDBEngineVersionsInput{Engine: aws.String(engine), DefaultOnly: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	name := aws.String("keeps-times")
	if _, err := s.CreateDBParameterGroup(t.Context(), &rds.CreateDBParameterGroupInput{
		DBParameterGroupName: name, DBParameterGroupFamily: versions.DBEngineVersions[0].DBParameterGroupFamily, Description: aws.String("for a test"),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ModifyDBParameterGroup(t.Context(), &rds.ModifyDBParameterGroupInput{DBParameterGroupName: name, Parameters: []types.Parameter{{
		ParameterName: aws.String("track_commit_timestamp"), ParameterValue: aws.String("1"), ApplyMethod: types.ApplyMethodPendingReboot,
	}}}); err != nil {
		t.Fatal(err)
	}
	return name
}

// learn asks the source for all its rows and their times in its log. The client must
// have ended. Every row that was acknowledged is among them.
func (b *momentBed) learn(t *testing.T) {
	t.Helper()
	session := b.i.Open(t)
	defer session.Close()
	lines, err := session.Rows(t.Context(), loggedSQL[b.i.Engine])
	if err != nil {
		t.Fatal(err)
	}
	b.logged = map[int64]time.Time{}
	for _, line := range lines {
		var n, micro int64
		if _, err := fmt.Sscan(line, &n, &micro); err != nil {
			t.Fatalf("the row %q: %v", line, err)
		}
		b.logged[n] = time.UnixMicro(micro)
	}
	for _, r := range b.rows {
		at, is := b.logged[r.n]
		if !is || at.After(r.acked) {
			t.Errorf("row %d was acknowledged at %s; in the source: %v, at %s", r.n, r.acked, is, at)
		}
	}
}

// compareLogged demands that nothing is there whose time in the log is later than the
// moment, a whole second, and that what is there has no hole. MariaDB's log knows no
// parts of a second: what was begun in that of the moment is later.
//
// Of the rows that are not later one may be missing, the last: a commit that was under
// way at the moment. Its time was taken before it was durable, and a restore reads
// only what was durable at the first mark after the moment. Nobody had been told of it,
// or compare would miss it.
func (b *momentBed) compareLogged(t *testing.T, i *harness.Instance, at time.Time, have map[int64]bool) {
	t.Helper()
	missing := int64(0) // the first row that is not there
	for _, n := range slices.Sorted(maps.Keys(b.logged)) {
		logged := b.logged[n]
		late := logged.After(at) || b.i.Engine == "mariadb" && logged.Equal(at)
		switch {
		case have[n] && late:
			t.Errorf("%s at %s: row %d is there, in the log at %s", i.Name, at, n, logged)
			return
		case have[n] && missing > 0:
			t.Errorf("%s at %s: row %d is there, and row %d before it is not", i.Name, at, n, missing)
			return
		case !have[n] && !late && missing > 0:
			t.Errorf("%s at %s: row %d is missing, in the log at %s, and so is row %d", i.Name, at, n, logged, missing)
			return
		case !have[n] && missing == 0:
			missing = n
		}
	}
	for n := range have {
		if _, is := b.logged[n]; b.logged != nil && !is {
			t.Errorf("%s at %s: row %d is there, the source never had it", i.Name, at, n)
			return
		}
	}
}

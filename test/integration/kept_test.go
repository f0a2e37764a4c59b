//go:build integration

package integration

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

// kept is what there is of snapshots, over the API and on the disk.
type kept struct{ api, folders []string }

func keptBy(t *testing.T, s *harness.Service) kept {
	t.Helper()
	k := kept{api: snapshotNames(t, s)}
	for _, pattern := range []string{"snapshots/*", "snapshot-assignments/*"} {
		found, err := filepath.Glob(filepath.Join(s.Data, pattern))
		if err != nil {
			t.Fatal(err)
		}
		k.folders = append(k.folders, found...)
	}
	return k
}

// snapshotNames are all snapshots that the API lists, with their status.
func snapshotNames(t *testing.T, s *harness.Service) []string {
	t.Helper()
	var list []string
	pages := rds.NewDescribeDBSnapshotsPaginator(s.Client, &rds.DescribeDBSnapshotsInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page.DBSnapshots {
			list = append(list, aws.ToString(d.DBSnapshotIdentifier)+" "+aws.ToString(d.Status))
		}
	}
	return list
}

// wantKept waits until snapshots are what they were: files go after the record says so.
func wantKept(t *testing.T, s *harness.Service, want kept) {
	t.Helper()
	harness.Wait(t, cloneTime, "no snapshot more than before", func() string {
		if have := keptBy(t, s); !slices.Equal(have.api, want.api) || !slices.Equal(have.folders, want.folders) {
			return fmt.Sprintf("%q, before %q", have, want)
		}
		return ""
	})
}

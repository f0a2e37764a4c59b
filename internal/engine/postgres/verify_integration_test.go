//go:build integration

package postgres

import (
	"testing"

	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/postgres/wal"
)

// pagePlace is a byte among the rows of a relation's first page but one: of an index
// that is its root or a leaf.
func pagePlace(relation string, page int64) func(*testing.T, *enginetest.Bed) (string, int64) {
	return func(t *testing.T, b *enginetest.Bed) (string, int64) {
		return b.MustQuery(t, "SELECT pg_relation_filepath('"+relation+"')"), (page+1)*wal.PageBytes - 100
	}
}

func TestVerify(t *testing.T) {
	enginetest.RunVerify(t, setup(t, enginetest.Reachable(t)), enginetest.Damage{
		Table: pagePlace("rows_kept", 0), Index: pagePlace("by_half", 1), Says: []string{`btree index "shop.public.by_half"`, "verification failed in file"},
	})
}

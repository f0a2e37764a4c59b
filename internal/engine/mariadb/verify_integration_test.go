//go:build integration

package mariadb

import (
	"path/filepath"
	"strconv"
	"testing"

	"kurabe/internal/engine/enginetest"
)

// indexPlace is a byte among the rows of the root page of an index.
func indexPlace(table, index string) func(*testing.T, *enginetest.Bed) (string, int64) {
	return func(t *testing.T, b *enginetest.Bed) (string, int64) {
		const pageBytes, rows = 16384, 200
		page, err := strconv.ParseInt(b.MustQuery(t, `SELECT i.PAGE_NO FROM information_schema.INNODB_SYS_INDEXES i
 JOIN information_schema.INNODB_SYS_TABLES t ON t.TABLE_ID = i.TABLE_ID WHERE t.NAME = 'shop/`+table+`' AND i.NAME = '`+index+`'`), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Join("shop", table+".ibd"), page*pageBytes + rows
	}
}

func TestVerify(t *testing.T) {
	enginetest.RunVerify(t, setup(t, enginetest.Reachable(t)), enginetest.Damage{
		Table: indexPlace("rows_kept", "PRIMARY"), Index: indexPlace("ledger", "by_half"), Says: []string{"shop.ledger: ", "by_half"},
	})
}

package mariadb

import (
	"testing"
	"time"
)

func TestMoment(t *testing.T) {
	begun := time.Date(2026, 1, 2, 3, 4, 5, 500, time.UTC)
	for name, c := range map[string]struct {
		log  string
		want time.Time
	}{
		"later":              {"x\n[00] 2026-01-02 03:04:09 Starting BACKUP STAGE BLOCK_COMMIT\ny", time.Date(2026, 1, 2, 3, 4, 9, 0, time.UTC)},
		"in the same second": {"[00] 2026-01-02 03:04:05 Starting BACKUP STAGE BLOCK_COMMIT", begun},
		"not said":           {"completed OK!", begun},
		"no time":            {"[00] 2026-13-42 03:04:09 Starting BACKUP STAGE BLOCK_COMMIT", begun},
	} {
		if got := moment(c.log, begun); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

package mariadb

import (
	"errors"
	"testing"

	"kurabe/internal/engine"
)

func TestJudgeDeath(t *testing.T) {
	for words, rebuild := range map[string]bool{
		"Cannot truncate the binary log to file:mysql-bin-changelog.000002 pos:4711 as unsafe statement is found": true,
		"InnoDB: Database page corruption on disk":                                                                true,
		"Can't write (No space left on device)":                                                                   false,
		"Cannot allocate memory for the buffer pool":                                                              false,
	} {
		died := &serverDied{words}
		if errors.Is(judgeDeath(died, died), engine.ErrRebuild) != rebuild {
			t.Errorf("%s: %v", words, judgeDeath(died, died))
		}
	}
}

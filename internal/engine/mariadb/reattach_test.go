package mariadb

import (
	"errors"
	"os"
	"strings"
	"testing"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/mariadbtest"
	"kurabe/internal/engine/mariadb/replica"
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

func TestRejoinOfWhatWasGivenUp(t *testing.T) {
	i := mariadbtest.Follower()
	i.Home = engine.Home{Dir: t.TempDir()}
	if err := os.Mkdir(i.Home.DataDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := replica.WriteFollowing(i.Home.DataDir(), replica.Following{Position: "0-1-5", Rebuild: "a reason"}); err != nil {
		t.Fatal(err)
	}
	if err := (&Driver{}).Rejoin(t.Context(), i, ""); !errors.Is(err, engine.ErrRebuild) || !strings.Contains(err.Error(), "a reason") {
		t.Errorf("one that was given up rejoins: %v", err)
	}
}

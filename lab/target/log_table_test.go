package target

import (
	"slices"
	"testing"

	"kurabe/lab/study"
)

func TestLogsToTables(t *testing.T) {
	for value, want := range map[string]bool{"TABLE": true, "FILE,TABLE": true, "file, table": true, "FILE": false, "NONE": false, "": false} {
		if got := logsToTables(map[string]string{"log_output": value}); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
	if logsToTables(nil) {
		t.Error("without parameters")
	}
}

func TestOutputIsSetBeforeTheLog(t *testing.T) {
	got := outputFirst([]string{"general_log", "long_query_time", "log_output", "slow_query_log"})
	if !slices.Equal(got, []string{"log_output", "general_log", "long_query_time", "slow_query_log"}) {
		t.Errorf("%q", got)
	}
}

// A name of a table has 64 letters at the most.
func TestNamesOfLogTablesFit(t *testing.T) {
	target := &urlTarget{id: newID()}
	target.admin.Engine = study.MariaDB
	const most = 64
	for _, table := range logTables {
		for _, name := range []string{target.asideName(table), target.madeName(table)} {
			if len(name) > most {
				t.Errorf("%s has %d letters", name, len(name))
			}
		}
	}
}

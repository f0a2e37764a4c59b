package parameter

import (
	"encoding/json"
	"slices"
	"testing"

	"kurabe"
	"kurabe/internal/engine/enginetest"
)

func ptr(s string) *string { return &s }

func TestDescribe(t *testing.T) {
	variables := []Variable{
		{Name: "max_connections", Scope: "GLOBAL", Type: "BIGINT UNSIGNED", Default: ptr("151"), Min: ptr("10"), Max: ptr("100000"), ReadOnly: "NO", Argument: ptr("REQUIRED")},
		{Name: "long_query_time", Scope: "SESSION", Type: "DOUBLE", Default: ptr("10.000000"), Min: ptr("0"), Max: ptr("31536000"), ReadOnly: "NO", Argument: ptr("REQUIRED")},
		{Name: "local_infile", Scope: "GLOBAL", Type: "BOOLEAN", Default: ptr("ON"), Words: ptr("OFF,ON"), ReadOnly: "NO", Argument: ptr("OPTIONAL")},
		{Name: "event_scheduler", Scope: "GLOBAL", Type: "ENUM", Default: ptr("OFF"), Words: ptr("OFF,ON,DISABLED"), ReadOnly: "NO", Argument: ptr("OPTIONAL")},
		{Name: "log_output", Scope: "GLOBAL", Type: "SET", Default: ptr("FILE"), Words: ptr("NONE,FILE,TABLE"), ReadOnly: "NO", Argument: ptr("REQUIRED")},
		{Name: "optimizer_switch", Scope: "SESSION", Type: "FLAGSET", Default: ptr("mrr=off"), Words: ptr("mrr,default"), ReadOnly: "NO", Argument: ptr("REQUIRED")},
		{Name: "init_connect", Scope: "GLOBAL", Type: "VARCHAR", Default: ptr(""), ReadOnly: "NO", Argument: ptr("REQUIRED")},
		{Name: "datadir", Scope: "GLOBAL", Type: "VARCHAR", Default: ptr("/d"), ReadOnly: "YES", Argument: ptr("REQUIRED")},
		{Name: "version", Scope: "GLOBAL", Type: "VARCHAR", ReadOnly: "YES"},
		{Name: "last_insert_id", Scope: "SESSION ONLY", Type: "BIGINT UNSIGNED", ReadOnly: "NO"},
		{Name: "time_zone", Scope: "SESSION", Type: "VARCHAR", ReadOnly: "NO"},
		{Name: "character_set_server", Scope: "SESSION", Type: "ENUM", Default: ptr("latin1"), ReadOnly: "NO"},
		{Name: "performance_schema", Scope: "GLOBAL", Type: "BOOLEAN", Default: ptr("OFF"), ReadOnly: "YES", Argument: ptr("OPTIONAL")},
		{Name: "wsrep_notify_cmd", Scope: "GLOBAL", Type: "VARCHAR", ReadOnly: "YES", Argument: ptr("REQUIRED")},
		{Name: "log_bin", Scope: "GLOBAL", Type: "VARCHAR", ReadOnly: "YES", Argument: ptr("OPTIONAL")},
		{Name: "log_bin_trust_function_creators", Scope: "GLOBAL", Type: "BOOLEAN", Default: ptr("OFF"), ReadOnly: "NO", Argument: ptr("OPTIONAL")},
	}
	parameters := Describe(variables)
	text, err := json.MarshalIndent(parameters, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	enginetest.Golden(t, "catalog.json", string(text)+"\n")
	if !slices.IsSortedFunc(parameters, func(a, b kurabe.Parameter) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	}) {
		t.Error("out of order: Catalog.Find would miss some")
	}
}

// A variable that nobody has looked at is no user's, whatever it is; of texts not even one
// that was looked at, unless there is a reason.
func TestUnseenIsFixed(t *testing.T) {
	for _, v := range []Variable{
		{Name: "of_the_next_version", Scope: "GLOBAL", Type: "BIGINT UNSIGNED", ReadOnly: "NO", Argument: ptr("REQUIRED")},
		{Name: "path_of_the_next_version", Scope: "GLOBAL", Type: "VARCHAR", ReadOnly: "YES", Argument: ptr("REQUIRED")},
		{Name: "debug_dbug", Scope: "SESSION", Type: "VARCHAR", ReadOnly: "NO", Argument: ptr("OPTIONAL")},
		{Name: "max_connections", Scope: "GLOBAL", Type: "VARCHAR", ReadOnly: "NO", Argument: ptr("REQUIRED")}, // were it text one day
	} {
		if fixedReason(v) == "" {
			t.Errorf("%s is a user's", v.Name)
		}
	}
	for name, reason := range Free {
		if len(reason) < 10 || fixed[name] != "" || Looked()[name] {
			t.Errorf("%s is free without a reason, or fixed, or has closed values", name)
		}
	}
	for name := range Looked() {
		if fixed[name] != "" {
			t.Errorf("%s is both fixed and a user's", name)
		}
	}
}

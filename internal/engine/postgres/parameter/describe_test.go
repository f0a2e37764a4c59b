package parameter

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/engine/enginetest"
)

func TestDescribe(t *testing.T) {
	raw, err := os.ReadFile("testdata/describe/settings.json")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := DecodeSettings(raw)
	if err != nil {
		t.Fatal(err)
	}
	got := Describe(rows, Offer{Modules: []string{"auto_explain", "pg_stat_statements"}, Extensions: []string{"citext", "hstore"}})
	text, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	enginetest.Golden(t, "describe/parameters.json", string(text)+"\n")
	c := kurabe.Catalog{Parameters: got}
	for _, p := range got {
		if found, ok := c.Find(p.Name); !ok || found.Name != p.Name {
			t.Errorf("%s cannot be found", p.Name)
		}
	}
}

// A module that must be loaded with the server ends every session that loads it later.
func TestSessionsLoadNoModuleOfTheServer(t *testing.T) {
	rows := []Setting{{Name: "session_preload_libraries", Context: "superuser", VarType: "string"}, {Name: "shared_preload_libraries", Context: "postmaster", VarType: "string"}}
	c := kurabe.Catalog{Parameters: Describe(rows, Offer{Modules: Modules})}
	for name, want := range map[string]bool{"session_preload_libraries": false, "shared_preload_libraries": true} {
		p, ok := c.Find(name)
		if allows := slices.Contains(strings.Split(p.Allowed, ","), "pgaudit"); !ok || allows != want || !strings.Contains(p.Allowed, "auto_explain") {
			t.Errorf("%s takes %q", name, p.Allowed)
		}
	}
	for _, name := range WithServer {
		if !slices.Contains(Modules, name) {
			t.Errorf("%s is no module", name)
		}
	}
}

// A parameter that nobody has looked at is no user's, whatever it is; of texts not even one
// that was looked at, unless there is a reason.
func TestUnseenIsFixed(t *testing.T) {
	for _, row := range []Setting{
		{Name: "extension_destdir", Context: "superuser", VarType: "string", Category: "File Locations"},
		{Name: "of_the_next_version", Context: "sighup", VarType: "integer"},
		{Name: "next.module", Context: "user", VarType: "bool"},
		{Name: "text_of_the_next_version", Context: "user", VarType: "string"},
		{Name: "work_mem", Context: "user", VarType: "string"}, // were it text one day
	} {
		if fixedReason(row) == "" {
			t.Errorf("%s is a user's", row.Name)
		}
	}
	for name, reason := range Free {
		if len(reason) < 10 || Fixed[name] != "" || looked()[name] {
			t.Errorf("%s is free without a reason, or fixed, or has closed values", name)
		}
	}
	for name := range looked() {
		if Fixed[name] != "" {
			t.Errorf("%s is both fixed and a user's", name)
		}
	}
}

// Each reason must be one.
func TestRules(t *testing.T) {
	for name, reason := range Fixed {
		if reason == "" {
			t.Errorf("%s is fixed without a reason", name)
		}
	}
	if !slices.IsSorted(Modules) {
		t.Error("a list is out of order")
	}
}

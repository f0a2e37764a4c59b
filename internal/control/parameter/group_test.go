package parameter

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/control/installed"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/store"
)

func TestParameterGroupLifecycle(t *testing.T) {
	c := newGroups(t)
	tags := []kurabe.Tag{{Key: "b", Value: "1"}, {Key: "a"}}
	g, err := c.CreateParameterGroup(t.Context(), kurabe.ParameterGroup{Name: "My-PG", Family: "postgres15", Description: "mine", Tags: tags})
	if err != nil || g.Name != "my-pg" || g.Revision != 1 {
		t.Fatalf("%+v, %v", g, err)
	}
	_, err = c.CreateParameterGroup(t.Context(), kurabe.ParameterGroup{Name: "my-pg", Family: "postgres15", Description: "d"})
	scopetest.WantCode(t, err, kurabe.CodeParameterGroupExists, "Parameter group my-pg already exists")
	_, err = c.CreateParameterGroup(t.Context(), kurabe.ParameterGroup{Name: "x", Family: "postgres99", Description: "d"})
	scopetest.WantCode(t, err, kurabe.CodeInvalidParameterValue, "installed: mariadb10.11, postgres15")
	_, err = c.CreateParameterGroup(t.Context(), kurabe.ParameterGroup{Name: "default.postgres15", Family: "postgres15", Description: "d"})
	scopetest.WantCode(t, err, kurabe.CodeInvalidParameterValue, "not a valid identifier")

	if _, err := c.ModifyParameterGroup(t.Context(), "my-pg", []Change{set("autovacuum", "off", "")}); err != nil {
		t.Fatal(err)
	}
	copied, err := c.CopyParameterGroup(t.Context(), c.ARN("pg", "my-pg"), kurabe.ParameterGroup{Name: "copy", Description: "d"})
	if err != nil || copied.Values["autovacuum"].Value != "off" || copied.Tags != nil || copied.Family != "postgres15" {
		t.Errorf("%+v, %v", copied, err)
	}
	_, err = c.CopyParameterGroup(t.Context(), "default.postgres15", kurabe.ParameterGroup{Name: "c2", Description: "d"})
	scopetest.WantCode(t, err, kurabe.CodeInvalidParameterValue, "cannot be copied")

	var names []string
	for _, g := range c.ParameterGroups() {
		names = append(names, g.Name)
	}
	if want := []string{"copy", "default.mariadb10.11", "default.postgres15", "my-pg"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
	scopetest.WantCode(t, c.DeleteParameterGroup(t.Context(), "default.postgres15"), kurabe.CodeInvalidParameterGroup, "Default DBParameterGroup cannot be deleted")
	scopetest.WantCode(t, c.DeleteParameterGroup(t.Context(), "nope"), kurabe.CodeParameterGroupNotFound, "DBParameterGroup not found: nope")
	spec := scopetest.Spec("orders")
	spec.ParameterGroup = "my-pg"
	scopetest.AddInstance(t, c.Scope, spec)
	scopetest.WantCode(t, c.DeleteParameterGroup(t.Context(), "my-pg"), kurabe.CodeInvalidParameterGroup, "still members of this parameter group my-pg")
	scopetest.WantCode(t, c.DeleteParameterGroup(t.Context(), "COPY"), "", "")
}

// An instance that is given the group between check and commit wins.
func TestDeleteParameterGroupConflictsWithAttach(t *testing.T) {
	c := newGroups(t)
	mustGroup(t, c, "g")
	revision := c.View.Revision()
	record, _ := c.View.ParameterGroup("g")
	spec := scopetest.Spec("orders")
	spec.ParameterGroup = "g"
	scopetest.AddInstance(t, c.Scope, spec)
	late := store.NewChange().DeleteParameterGroup("g", record.ModRevision).RequireInstancesUnwritten(revision)
	if _, err := late.Commit(t.Context(), c.KV); err == nil {
		t.Fatal("a group in use was deleted")
	}
	scopetest.WantCode(t, c.DeleteParameterGroup(t.Context(), "g"), kurabe.CodeInvalidParameterGroup, "")
}

func TestModifyParameterGroup(t *testing.T) {
	long := make([]Change, 21)
	for n := range long {
		long[n] = set(fmt.Sprint("p", n), "1", "")
	}
	for _, tc := range []struct {
		name    string
		changes []Change
		code    kurabe.Code
		text    string
	}{
		{"plain", []Change{set("autovacuum", "OFF", kurabe.ApplyImmediate)}, "", ""},
		{"other case", []Change{set("AutoVacuum", "0", "")}, "", ""},
		{"formula", []Change{set("max_connections", "GREATEST({DBInstanceClassMemory/12582880},100)", kurabe.ApplyPendingReboot)}, "", ""},
		{"negative bound", []Change{set("log_min_duration_statement", "-1", "")}, "", ""},
		{"empty word on offer", []Change{set("ssl_max_protocol_version", "", "")}, "", ""},
		{"list", []Change{set("shared_preload_libraries", "pg_stat_statements, auto_explain", "")}, "", ""},
		{"free text", []Change{set("search_path", `"$user", public`, "")}, "", ""},
		{"float", []Change{set("random_page_cost", "1.1", "")}, "", ""},
		{"none", nil, kurabe.CodeInvalidParameterValue, "1 to 20"},
		{"too many", long, kurabe.CodeInvalidParameterValue, "1 to 20"},
		{"twice", []Change{set("autovacuum", "1", ""), set("AUTOVACUUM", "0", "")}, kurabe.CodeInvalidParameterCombo, "more than once"},
		{"unknown", []Change{set("nope", "1", "")}, kurabe.CodeInvalidParameterValue, "Could not find parameter with name: nope"},
		{"fixed", []Change{set("fsync", "0", "")}, kurabe.CodeInvalidParameterValue, "The parameter fsync cannot be modified: an acknowledged write"},
		{"static at once", []Change{set("max_connections", "10", kurabe.ApplyImmediate)}, kurabe.CodeInvalidParameterCombo, "cannot use immediate apply method for static parameter"},
		{"bad method", []Change{set("autovacuum", "1", "later")}, kurabe.CodeInvalidParameterValue, "Invalid apply method"},
		{"no value", []Change{{Name: "autovacuum"}}, kurabe.CodeInvalidParameterValue, "ParameterValue must be provided"},
		{"below range", []Change{set("max_connections", "5", "")}, kurabe.CodeInvalidParameterValue, "Invalid parameter value: 5 for: max_connections allowed values are: 6-8388607"},
		{"unit", []Change{set("max_connections", "100MB", "")}, kurabe.CodeInvalidParameterValue, "allowed values"},
		{"not a number", []Change{set("random_page_cost", "NaN", "")}, kurabe.CodeInvalidParameterValue, "allowed values"},
		{"bad boolean", []Change{set("autovacuum", "2", "")}, kurabe.CodeInvalidParameterValue, "0,1"},
		{"list with a stranger", []Change{set("shared_preload_libraries", "evil", "")}, kurabe.CodeInvalidParameterValue, "allowed values"},
		{"second line", []Change{set("search_path", "a\nfsync = off", "")}, kurabe.CodeInvalidParameterValue, "control character"},
		{"bad formula", []Change{set("max_connections", "{DBInstanceClassMemory/}", "")}, kurabe.CodeInvalidParameterValue, "formula"},
		{"formula out of range", []Change{set("max_connections", "{DBInstanceVCPU*1}", "")}, kurabe.CodeInvalidParameterValue, "for class db."},
		{"formula for text", []Change{set("search_path", "{a}", "")}, kurabe.CodeInvalidParameterValue, "numeric"},
		{"all or nothing", []Change{set("autovacuum", "0", ""), set("max_connections", "1", "")}, kurabe.CodeInvalidParameterValue, "allowed values"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newGroups(t)
			mustGroup(t, c, "g")
			_, err := c.ModifyParameterGroup(t.Context(), "G", tc.changes)
			scopetest.WantCode(t, err, tc.code, tc.text)
			g, _ := c.View.ParameterGroup("g")
			events := c.View.Events(scopetest.Now, scopetest.Now.Add(time.Second))
			if tc.code != "" {
				if len(g.Value.Values) != 0 || len(events) != 0 || g.Value.Revision != 1 {
					t.Errorf("a refused request changed %+v, %v", g.Value, events)
				}
				return
			}
			name := strings.ToLower(tc.changes[0].Name)
			if got := g.Value.Values[name].Value; got != *tc.changes[0].Value || g.Value.Revision != 2 {
				t.Errorf("stored %+v", g.Value)
			}
			if len(events) != 1 || events[0].ID != "RDS-EVENT-0037" || !strings.HasPrefix(events[0].Message, "Updated parameter "+name+" to ") {
				t.Errorf("events %+v", events)
			}
			// The same again is no change: neither revision nor event.
			if _, err := c.ModifyParameterGroup(t.Context(), "g", tc.changes); err != nil {
				t.Fatal(err)
			}
			if again, _ := c.View.ParameterGroup("g"); again.ModRevision != g.ModRevision {
				t.Error("no change was written")
			}
		})
	}
}

func TestModifyDefaultGroup(t *testing.T) {
	c := newGroups(t)
	_, err := c.ModifyParameterGroup(t.Context(), "default.postgres15", []Change{set("autovacuum", "0", "")})
	scopetest.WantCode(t, err, kurabe.CodeInvalidParameterValue, "Cannot modify a default parameter group.")
}

func TestResetParameterGroup(t *testing.T) {
	c := newGroups(t)
	mustGroup(t, c, "g")
	_, err := c.ModifyParameterGroup(t.Context(), "g", []Change{set("autovacuum", "0", ""), set("max_connections", "50", ""), set("random_page_cost", "2", "")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.ResetParameterGroup(t.Context(), "g", []Change{{Name: "max_connections", Method: kurabe.ApplyImmediate}})
	scopetest.WantCode(t, err, kurabe.CodeInvalidParameterCombo, "static")
	_, err = c.ResetParameterGroup(t.Context(), "g", []Change{{Name: "nope"}})
	scopetest.WantCode(t, err, kurabe.CodeInvalidParameterValue, "Could not find")
	if _, err = c.ResetParameterGroup(t.Context(), "g", []Change{{Name: "max_connections", Method: kurabe.ApplyPendingReboot}}); err != nil {
		t.Fatal(err)
	}
	if g, _ := c.View.ParameterGroup("g"); len(g.Value.Values) != 2 {
		t.Errorf("%+v", g.Value.Values)
	}
	if _, err = c.ResetParameterGroup(t.Context(), "g", nil); err != nil {
		t.Fatal(err)
	}
	if g, _ := c.View.ParameterGroup("g"); len(g.Value.Values) != 0 || g.Value.Revision != 4 {
		t.Errorf("%+v", g.Value)
	}
}

func TestParameters(t *testing.T) {
	c := newGroups(t)
	mustGroup(t, c, "g")
	if _, err := c.ModifyParameterGroup(t.Context(), "g", []Change{set("autovacuum", "OFF", kurabe.ApplyImmediate)}); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, source := range []string{"", SourceUser, SourceSystem, SourceEngineDefault} {
		list, err := c.Parameters("g", source)
		if err != nil {
			t.Fatal(err)
		}
		count[source] = len(list)
		for _, p := range list {
			switch p.Name {
			case "autovacuum":
				if p.Value != "OFF" || p.Source != SourceUser || p.Method != kurabe.ApplyImmediate {
					t.Errorf("%+v", p)
				}
			case "max_connections":
				if p.Value != "LEAST({DBInstanceClassMemory/9531392},5000)" || p.Source != SourceSystem {
					t.Errorf("%+v", p)
				}
			case "search_path":
				if p.HasValue || p.Source != SourceEngineDefault {
					t.Errorf("%+v", p)
				}
			}
		}
	}
	if all := len(scopetest.Parameters()); count[""] != all || count[SourceUser] != 1 || count[SourceSystem] != 1 || count[SourceEngineDefault] != all-2 {
		t.Errorf("%v", count)
	}
	_, err := c.Parameters("g", "other")
	scopetest.WantCode(t, err, kurabe.CodeInvalidParameterValue, "Invalid source")
	if list, err := c.FamilyParameters("postgres15"); err != nil || len(list) != len(scopetest.Parameters()) {
		t.Errorf("the newest version's catalog counts: %d, %v", len(list), err)
	}
}

// Whatever is accepted is one line of plain text that an engine's type allows.
func FuzzParameterValue(f *testing.F) {
	c := newGroups(f)
	worlds := c.formulaWorlds(kurabe.Postgres)
	for _, s := range []string{"", "1", "-1", "on", "1e3", "{DBInstanceClassMemory/32768}", "GREATEST(1,2)", "0x10", "TLSv1.2", "a,b", "1-5", "９"} {
		for n := range scopetest.Parameters() {
			f.Add(n, s)
		}
	}
	f.Fuzz(func(t *testing.T, n int, value string) {
		parameters := scopetest.Parameters()
		p := parameters[max(n, -(n+1))%len(parameters)]
		if checkParameterValue(p, value, worlds) != nil {
			return
		}
		if strings.ContainsAny(value, "\n\r\x00") {
			t.Errorf("%q holds a control character", value)
		}
		if p.Type != "integer" && p.Type != "float" {
			return
		}
		for _, w := range worlds {
			result, err := w.vars.Evaluate(value)
			if err != nil || !allowsValue(p, result) {
				t.Errorf("%s: %q gives %q, %v for %s", p.Name, value, result, err, w.class)
			}
		}
	})
}

func newGroups(t testing.TB) Groups {
	t.Helper()
	return Groups{installed.Engines{Scope: scopetest.New(t)}}
}

func mustGroup(t testing.TB, c Groups, name string) {
	t.Helper()
	if _, err := c.CreateParameterGroup(t.Context(), kurabe.ParameterGroup{Name: name, Family: "postgres15", Description: "d"}); err != nil {
		t.Fatal(err)
	}
}

func set(name, value string, method kurabe.ApplyMethod) Change {
	return Change{Name: name, Value: &value, Method: method}
}

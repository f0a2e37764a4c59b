package conf

import (
	"testing"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/mariadbtest"
)

func TestRenderGroup(t *testing.T) {
	waiting := mariadbtest.Writer(mariadbtest.Instance(nil).Instance.Member(2))
	waiting.Settings = map[string]string{"event_scheduler": "ON", "innodb_flush_log_at_trx_commit": "2"}
	held := mariadbtest.Writer()
	held.ClientsKeptOut = true
	for name, i := range map[string]engine.Instance{"writer.cnf": waiting, "held.cnf": held, "follower.cnf": mariadbtest.Follower()} {
		t.Run(name, func(t *testing.T) { enginetest.Golden(t, "render/"+name, renderSettings(i)) })
	}
	other := mariadbtest.Follower()
	other.Role.Source = &kurabe.Source{ID: "db-B", Address: "127.66.0.9", Port: 3306}
	if renderSettings(other) == renderSettings(mariadbtest.Follower()) {
		t.Error("another source is no other file, so nobody would load it")
	}
}

// A replica lets clients in, writes for nobody, and answers for nothing. A reader of a cluster
// answers for its writer.
func TestSettingsOfAReplica(t *testing.T) {
	i := mariadbtest.Follower()
	other := *i.Role.Source
	other.ID = kurabe.NewInstanceID()
	for _, c := range []struct {
		source         *kurabe.Source
		reads, answers bool
	}{{i.Role.Source, false, true}, {i.Role.Source, true, true}, {&other, true, false}} {
		role, reads := *i.Role, c.reads
		role.ServesReads, role.Source = reads, c.source
		i.Role = &role
		have := map[string]string{}
		for _, o := range groupSettings(i) {
			have[o.Name] = o.Value
		}
		want := map[string]string{"kurabe_guard_hold": Flag(!reads), "rpl_semi_sync_slave_enabled": Flag(c.answers), "read_only": "1", "rpl_semi_sync_master_enabled": "0", EventScheduler: "OFF"}
		for name, value := range want {
			if have[name] != value {
				t.Errorf("%+v: %s is %q, want %q", c, name, have[name], value)
			}
		}
	}
}

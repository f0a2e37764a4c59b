package postgres

import (
	"context"
	"slices"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/engine/scratch"
)

// A follower has the most of what it is to have, of what it has replayed, and of what it
// had before it was killed.
func TestFloorArgs(t *testing.T) {
	i := member(2, kurabe.Role{Duty: kurabe.DutyFollow, Source: &kurabe.Source{}})
	i.Settings = map[string]string{"max_connections": "90", "max_worker_processes": "4", "max_wal_senders": "3", "work_mem": "4096"}
	const killed = `/usr/lib/postgresql/15/bin/postgres "-D" "/data" "-c" "max_connections=200" "-c" "port=7" "-c" "max_worker_processes=2"`
	for _, c := range []struct {
		name    string
		control map[string]string
		before  string
		want    string
	}{
		{"nothing else is known", nil, "",
			"max_connections=90 max_locks_per_transaction=64 max_prepared_transactions=0 max_wal_senders=10 max_worker_processes=4"},
		{"its writer has had more", map[string]string{"max_connections": "150", "max_locks_per_transaction": "65", "max_worker_processes": "8", "track_commit_timestamp": "on"}, "",
			"max_connections=150 max_locks_per_transaction=65 max_prepared_transactions=0 max_wal_senders=10 max_worker_processes=8"},
		{"its writer has less", map[string]string{"max_connections": "20", "max_wal_senders": "5"}, "",
			"max_connections=90 max_locks_per_transaction=64 max_prepared_transactions=0 max_wal_senders=10 max_worker_processes=4"},
		{"it was killed", map[string]string{"max_connections": "150", "max_prepared_transactions": "7"}, killed,
			"max_connections=200 max_locks_per_transaction=64 max_prepared_transactions=7 max_wal_senders=10 max_worker_processes=4"},
	} {
		args := floorArgs(i, control{settings: c.control}, c.before)
		if got := strings.Join(slices.DeleteFunc(args, func(a string) bool { return a == "-c" }), " "); got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	if args, err := New(Config{ServiceUser: "root"}).floors(context.Background(), dataFolder(t)); args != nil || err != nil {
		t.Errorf("of a writer: %v, %v", args, err)
	}
}

// What the data says for others to do is not done by a server that is only to recover it.
func TestPrivateSettings(t *testing.T) {
	p := &private{i: member(1, kurabe.Role{Duty: kurabe.DutyWrite}), data: "/srv/kurabe/db-1/data", work: "/srv/kurabe/db-1/data" + privateSuffix, Server: scratch.Server{Folder: scratch.Folder{Dir: "/srv/kurabe/db-1"}}}
	for _, want := range []line{
		{"max_logical_replication_workers", "0"}, {"autovacuum", "off"}, {"listen_addresses", ""}, {"archive_mode", "off"}, {"shared_preload_libraries", ""},
	} {
		if !slices.Contains(p.settings(), want) {
			t.Errorf("no %s = %q", want.name, want.value)
		}
	}
}

package conf

import (
	"strconv"
	"strings"
	"time"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/role"
	"kurabe/internal/engine/mariadb/sqltext"
)

// Times of the stream from a writer to its follower, in seconds: a follower gives up a writer
// that has been silent for three, and tries again after one; the first try is at once. A writer
// with nothing to send says so four times a second: it finds out that a connection has ended
// only when it sends something, and while commits wait for an answer there is nothing to send.
const (
	HeartbeatSeconds = "0.25"
	silentSeconds    = 3
	RetrySeconds     = 1
)

// waitMost is how long the server itself would have a commit wait before it went on
// without an answer: longer than any machine runs. Whether commits go on alone is for the
// record of the group to say.
const waitMost = 100 * 365 * 24 * time.Hour

// ApplyThreads apply side by side what its writer committed at one time, in its order. One
// alone would fall behind a writer with many clients.
const ApplyThreads = 8

// groupSettings are what a server has for its group, beyond what every server has, and what
// overrules the user's own choice. A server that runs takes them all up, but for those that
// are about what it receives: one that has run as a single server follows only after a
// start.
//
// It is started without the right to write, and without events, whatever its duty: a
// follower that was told to write has to be promoted first (openWrites).
func groupSettings(i engine.Instance) []Option {
	if i.Role == nil {
		return nil
	}
	return []Option{
		{"kurabe_guard_group", "1"},
		{"kurabe_guard_hold", Flag(role.KeepsOut(i))},
		{"kurabe_guard_waits_for", role.WaitText(role.WaitsFor(i))},
		{"read_only", "1"},
		{EventScheduler, "OFF"},
		// What the binary log has the engine must have, too, or a writer that comes back
		// lacks what it has sent.
		{"innodb_flush_log_at_trx_commit", "1"},
		{"log_slave_updates", "1"},
		{"gtid_strict_mode", "1"},
		{"gtid_domain_id", strconv.Itoa(binlog.GroupDomain)},

		{"rpl_semi_sync_master_enabled", Flag(len(role.WaitsFor(i)) > 0)},
		{"rpl_semi_sync_master_wait_point", "AFTER_SYNC"},
		{"rpl_semi_sync_master_wait_no_slave", "1"},
		{"rpl_semi_sync_master_timeout", strconv.FormatInt(waitMost.Milliseconds(), 10)},
		{"rpl_semi_sync_slave_enabled", Flag(role.Answers(i))},
		// A stop of the stream tells its source; one that is dead must not be waited for.
		{"rpl_semi_sync_slave_kill_conn_timeout", "1"},

		{"skip_slave_start", "1"},
		{"slave_net_timeout", strconv.Itoa(silentSeconds)},
		{"slave_parallel_threads", strconv.Itoa(ApplyThreads)},
		{"slave_parallel_mode", "conservative"},
		{"relay_log", binlog.RelayLogName},
		{"relay_log_index", binlog.RelayLogName + ".index"},
		{"relay_log_purge", "1"},
		// What was received is kept over a start: it may have been answered for.
		{"relay_log_recovery", "0"},
		// The server would sync it by the event. kurabe_guard syncs it before each answer.
		{"sync_relay_log", "0"},
		{"report_host", i.Listens()},
		{"report_port", strconv.Itoa(i.Port)},
		// What the probe writes, perhaps to a schema that was made unlogged; and a server's
		// note of how far it is, which a user may have changed in the writer.
		{"replicate_wild_ignore_table", sqltext.LikeEscapes.Replace(SystemSchema + "." + ProbeTable)},
		{"replicate_wild_ignore_table", sqltext.LikeEscapes.Replace(ProbePrefix) + strings.Repeat("_", 32) + ".%"},
		{"replicate_wild_ignore_table", sqltext.LikeEscapes.Replace(SystemSchema + ".gtid_slave_pos")},
	}
}

func Flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// ByHand are settings that a server of a group gets by openWrites, once it may.
var ByHand = map[string]bool{"read_only": true, EventScheduler: true}

// followsWhom is a line of the settings file that no server reads: another source is then
// another file, and loaded like one.
func followsWhom(i engine.Instance) string {
	if !role.Follows(i) || i.Role.Source == nil {
		return ""
	}
	s := i.Role.Source
	return "# Follows " + string(s.ID) + " at " + s.Address + ":" + strconv.Itoa(s.Port) + "\n"
}

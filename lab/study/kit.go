package study

import "slices"

// generatorKits are the loads that each generator brings along. The lab's own are
// written in the package load.
var generatorKits = map[string][]string{
	GeneratorOwn: {
		"tpcb-like", "simple-update", "select-only", "point-select", "sysbench-like", "tpcc-like", "long-transaction", "connect", "select-now", KitWriters,
	},
	GeneratorPgbench: {"tpcb-like", "simple-update", "select-only"},
	GeneratorSysbench: {
		"oltp_read_write", "oltp_read_only", "oltp_write_only", "oltp_point_select", "oltp_update_index", "oltp_update_non_index", "oltp_insert", "oltp_delete",
	},
}

// KitWriters is the kit whose table is Workload.Table, so the one that a change can name.
const KitWriters = "writers"

// Kits are the names of a generator's kits, nil for an unknown generator.
func Kits(generator string) []string { return slices.Clone(generatorKits[generator]) }

// Protocols of a session. Extended is PostgreSQL's parse, bind, execute for each
// statement; prepared does the first once.
const (
	ProtocolSimple   = "simple"
	ProtocolExtended = "extended"
	ProtocolPrepared = "prepared"
)

// able is what a generator can do beyond a kit in a closed loop.
type able struct {
	engines   []string
	modes     []string
	arrivals  []string
	protocols []string
	script    bool
	connect   bool
	rows      bool // an exact number of them
	change    bool // the phases of a change
}

// generators says what each can do. pgbench -R draws its arrivals from a Poisson
// process and knows no other; sysbench keeps its sessions.
var generators = map[string]able{
	GeneratorOwn: {
		engines: []string{Postgres, MariaDB, MySQL}, modes: []string{ModeOpen, ModeClosed, ModeSeries}, arrivals: []string{ArrivalPoisson, ArrivalConstant},
		protocols: []string{ProtocolSimple, ProtocolExtended, ProtocolPrepared}, script: true, connect: true, rows: true, change: true,
	},
	GeneratorPgbench: {
		engines: []string{Postgres}, modes: []string{ModeOpen, ModeClosed}, arrivals: []string{ArrivalPoisson},
		protocols: []string{ProtocolSimple, ProtocolExtended, ProtocolPrepared}, script: true, connect: true,
	},
	GeneratorSysbench: {
		engines: []string{Postgres, MariaDB, MySQL}, modes: []string{ModeOpen, ModeClosed}, arrivals: []string{ArrivalPoisson},
		protocols: []string{ProtocolSimple, ProtocolPrepared}, rows: true,
	},
}

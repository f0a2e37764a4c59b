// Bench measures what the documents promise about speed, and prints a table.
//
//	make bench                            about 25 minutes; wants a quiet machine
//	make bench BENCH="--quick"            about 4 minutes: does it still run, roughly how fast
//	make bench BENCH="--only create,io"   some of it
//	make bench BENCH="--only snapshot --sizes 1,5,10"
//	make bench BENCH="--only failover"    beside Patroni; 20 rounds take hours, see --list
//	make bench BENCH="--only hosts"       those of its rows that need several machines
//	make bench BENCH="--only clusters"    the like of DB clusters, without peers
//
// The figures are those of a client: it signs real requests, polls, logs in and
// runs pgbench or sysbench. Beside each instance stands the same server started
// by hand, and the ratio of the two is estimated from interleaved blocks in
// random order, with an exact interval.
//
// Snapshots have services of their own, on the disk and on a loop-mounted file
// system that clones, with the copies beside them that people make by hand of the
// same server. Their clients follow a schedule, and a latency counts from it. A run
// needs up to five times the largest size on the disk, and an hour or more with 10.
//
// A user of its own for each instance ("accounts") is priced by two services that are the
// same but for that, in turn: an instance is made, a snapshot taken and restored.
//
// The failovers ("failover") have Patroni beside them when they are asked for by name:
// pairs of the same PostgreSQL under Debian's release and the current one, each with its
// own settings and with the fastest that it accepts (--peers; --quick: Debian's, fastest), which
// scripts/patroni.sh unpacks below .cache. Rounds are taken in turn, with one client, one
// code for the faults and one ledger; Patroni's client has both servers in a list, wants
// target_session_attrs=read-write and gives a host that hangs two seconds. What the machine
// does not have is a row that says so. A pair that does not become whole again is made anew for
// the next loss, and its figure says so. Each loss is a record of the raw file: --resume goes on
// with the file of an earlier run, --within ends a piece, --print makes its table again. A file
// is gone on with on the machine that began it, in the sizes that it has, and by one run at a
// time; one that is there is never begun anew.
//
// A part of them ("hosts") is done to a pair over two hosts: a service and two agents, each a
// machine in miniature, that is a network namespace at one bridge, with the client at the
// bridge. There a whole host is killed with its addresses, or frozen with its agent and
// wardens. That takes root: the run goes into namespaces of its own, where it can make such
// machines; without them a row says so. Patroni's servers and client stay on one machine,
// where the ports of a lost host refuse at once. Of a frozen host it is compared by the same
// rounds as with one machine, for the Patroni of a frozen server is always frozen with it.
//
// DB clusters ("clusters") lose their writer, by a kill and in order, and one reader, which is
// killed or frozen while four clients read at the reader endpoint; with the same rounds, ledger
// and file as the pairs.
//
// Of a fleet ("fleet") a whole host is lost: two further hosts, whose agents speak to the
// service over the network, have pairs of a fake engine, and one of them falls silent with all
// that it has. Counted is the planner's time.
//
// A read replica ("replica") is priced by what the clients of its source notice of it, beside
// an instance that has none, and by how soon after a load it has all of that.
//
// The metrics ("metrics") are priced by a server whose service is stopped by a signal in every other
// measurement, and by instances that nobody uses.
//
// A week of metrics ("week") is asked for over HTTP in each of CloudWatch's protocols.
//
// Exports of logs ("export") are priced by a server that logs every statement, whose export is switched on in
// every other measurement.
//
// Notifications ("notify") are timed from before the request that publishes one, or that writes an event, to its
// arrival.
//
// The lab's proof ("lab") turns the lab on itself: its generator against pgbench and
// against a server that costs nothing, costs that are planted and have to be found, and
// simulated studies whose truth is known.
//
// Each run leaves two files: JSON lines with every raw sample, the machine, the
// versions, the settings and the seed; and the table as Markdown, for the docs.
// Everything that it starts lives below one temporary folder and ends with it,
// after Ctrl-C too.
//
// This folder has the flags, the order of the benchmarks and the small ones; the others are
// packages below it, and bed is what all share.
package main

package target

import (
	"context"
	"fmt"
	"strconv"

	"kurabe/lab/study"
)

// labSessions are the lab's own beside the load: the probes', one that makes a change, one
// that looks after the server.
const labSessions = 3

// reservedFor are PostgreSQL's settings for sessions that only some users may open, the
// last one Amazon's.
var reservedFor = []string{"superuser_reserved_connections", "reserved_connections", "rds.rds_superuser_reserved_connections"}

// tooManyClients says which workload has more clients than the server takes sessions. A
// run would find out in the middle of it, by trials that fail. Variants that have a class
// of their own are not looked at: its limit is another one. raise is how the limit can be
// raised here.
func tooManyClients(s *study.Study, engine string, have map[string]setting, super bool, skip map[string]string, raise string) error {
	limit, err := strconv.Atoi(have["max_connections"].value)
	if err != nil {
		return nil // a server that does not tell
	}
	reserved := 0
	for _, name := range reservedFor {
		if n, err := strconv.Atoi(have[name].value); err == nil && !super {
			reserved += n
		}
	}
	for _, v := range s.Variants {
		if !applies(v.Engines, engine) || skip[v.Name] != "" || v.Class != "" {
			continue
		}
		most := limit
		if n, err := strconv.Atoi(v.Parameters["max_connections"]); err == nil {
			most = n
		}
		for _, w := range s.Workloads {
			if !applies(w.Engines, engine) || skip[w.Name] != "" {
				continue
			}
			need := w.Clients
			if v.Endpoint == study.EndpointPgBouncer {
				need = min(need, poolSize)
			}
			if need += reserved + labSessions; need > most {
				return fmt.Errorf("workload %s: clients: %d are too many for variant %s: the server's max_connections is %d, of which %d are reserved and %d the lab's own; it has to be %d: %s, or write fewer clients in a study of your own (kurabe lab init)",
					w.Name, w.Clients, v.Name, most, reserved, labSessions, need, raise)
			}
		}
	}
	return nil
}

// losesPrepared says why a variant's workloads cannot be had through this machine's
// PgBouncer, "" when they can.
func losesPrepared(ctx context.Context, s *study.Study, v study.Variant) string {
	if v.Endpoint != study.EndpointPgBouncer {
		return ""
	}
	for _, w := range s.Workloads {
		// sysbench prepares unless it is told not to.
		if w.Protocol != study.ProtocolPrepared && (w.Generator != study.GeneratorSysbench || w.Protocol == study.ProtocolSimple) {
			continue
		}
		k := betweenKinds[v.Endpoint]
		program, _ := lookFor(k.name)
		if version := programVersion(ctx, program, k.version); !keepsPrepared(version) {
			return fmt.Sprintf("%s %s with %s pooling loses prepared statements, and workload %s has them: give it protocol: %s, or install version 1.21 or a later one", k.title, version, poolMode, w.Name, study.ProtocolSimple)
		}
	}
	return ""
}

package target

import (
	"fmt"

	"kurabe/lab/study"
)

// undoable refuses a study that changes tables in a database that no trial gets anew: the
// second trial would find what the first one left.
func undoable(s *study.Study, named string) error {
	if !study.HasChanges(s) {
		return nil
	}
	return fmt.Errorf("the study changes tables, and in database %s, which the lab does not make anew for each trial, nothing would undo that: leave the database out of the URL", named)
}

// triggersRefused says why a tool that needs triggers cannot have them, "" when it can.
// With a binary log a server wants to trust who makes one.
func triggersRefused(v study.Variant, have map[string]setting, all bool) string {
	const trust = "log_bin_trust_function_creators"
	if v.Tool != study.ToolPtOSC || all {
		return ""
	}
	on := func(name string) bool { return truth(have[name].value) == "on" }
	if !on("log_bin") || on(trust) || truth(v.Parameters[trust]) == "on" {
		return ""
	}
	return fmt.Sprintf("%s makes triggers, which a server with a binary log lets only SUPER do: set %s = 1 on the server, or give the variant parameters: {%s: \"1\"}",
		v.Tool, trust, trust)
}

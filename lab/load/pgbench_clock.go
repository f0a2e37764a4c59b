package load

import (
	"context"
	"fmt"
	"strings"

	"kurabe/lab/load/script"
)

// pgbenchClock makes pgbench read its clock. Otherwise it reads it once for all that it
// does in a row (advanceConnectionState), and an answer that is there at once took no
// time: of a server that comes first on the processors, three quarters of the transactions
// of select-only took 0 µs. A command of its own ends the row (executeMetaCommand). With
// -r, what the statement before it took may stand beside either of the two.
const pgbenchClock = `\set kurabe_clock 0`

// text is the script that pgbench runs: its own of a kit, or the user's. In its own, whose
// lines are known, each statement is followed by the clock, in the user's the last one.
func (r *pgbenchRun) text(ctx context.Context) (string, error) {
	if r.Script != "" {
		return strings.TrimRight(r.Script, "\n") + "\n" + pgbenchClock + "\n", nil
	}
	e, err := tool{path: r.path, args: []string{"--show-script=" + r.Kit}}.run(ctx)
	if err != nil {
		return "", err
	}
	return clocked(string(e.output)+string(e.errors), r.Kit)
}

// clocked is a script as --show-script prints it, to one of its outputs by version.
func clocked(shown, kit string) (string, error) {
	var text strings.Builder
	statements := 0
	for line := range strings.Lines(shown) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "--"):
			continue
		case strings.HasPrefix(line, `\`):
			fmt.Fprintln(&text, line)
		case strings.HasSuffix(line, ";"):
			statements++
			fmt.Fprintln(&text, line+"\n"+pgbenchClock)
		default:
			return "", fmt.Errorf("pgbench's own script %s has the line %q, which is neither a command nor a statement", kit, script.Brief(line))
		}
	}
	if statements == 0 {
		return "", fmt.Errorf("pgbench shows no script %s; it needs version 13", kit)
	}
	return text.String(), nil
}

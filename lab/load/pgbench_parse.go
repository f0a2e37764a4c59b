package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kurabe/lab/owner"
)

// parseTime bounds the reading of a script by pgbench, a few milliseconds.
const parseTime = time.Minute

// parse has pgbench read the script, whose notation has more than ours. It does so before
// it looks for a server, of which there is none in an empty folder: what it says of the
// script's file is about the script, and anything else it says is not. Without pgbench
// nothing is claimed; Check says that it is missing.
func (g *pgbench) parse() (failure error) {
	if g.Script == "" {
		return nil
	}
	path, err := findTool("pgbench", pgbenchPackage, pgbenchFolders)
	if err != nil {
		return nil
	}
	dir, err := owner.Folder("", "pgbench")
	if err != nil {
		return err
	}
	defer func() { failure = errors.Join(failure, os.RemoveAll(dir)) }()
	script := filepath.Join(dir, "script.sql")
	if err := os.WriteFile(script, []byte(g.Script), 0o600); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), parseTime)
	defer cancel()
	e, err := tool{path: path, args: []string{"-n", "-t", "1", "-f", script}, env: []string{"PGHOST=" + dir, "PGHOSTADDR=", "PGSERVICE=", "PGPASSFILE=" + filepath.Join(dir, "none")}}.run(ctx)
	if err == nil {
		return nil
	}
	said := string(e.errors)
	if _, rest, ok := strings.Cut(said, script+":"); ok {
		line, what, _ := strings.Cut(rest, ":")
		return fmt.Errorf("script, line %s: %s", line, strings.TrimSpace(what))
	}
	if _, rest, ok := strings.Cut(said, `"`+script+`"`); ok {
		return fmt.Errorf("script, %s", strings.TrimSpace(rest))
	}
	return nil
}

package proxy

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"kurabe/internal/tokenize"
)

// TestLoggedStatementsHaveNoValues holds that DebugLogging tells what was asked for, and no
// value of it, also when the text is cut off.
func TestLoggedStatementsHaveNoValues(t *testing.T) {
	for name, statement := range map[string]string{
		"password": "ALTER ROLE app PASSWORD 'hush'",
		"cut off":  "SELECT " + strings.Repeat("a, ", 2000) + "'hush'",
		"in text":  "INSERT INTO t VALUES ('" + strings.Repeat("hush", 3000) + "')",
	} {
		var out bytes.Buffer
		s := &Settings{Endpoint: "default", Log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))}
		s.LogStatement(7, []byte(statement), tokenize.Dialect{})
		if out.Len() > 0 {
			t.Errorf("%s: logged without DebugLogging: %s", name, &out)
		}
		s.DebugLogging = true
		s.LogStatement(7, []byte(statement), tokenize.Dialect{})
		if got := out.String(); strings.Contains(got, "hush") || !strings.Contains(got, statement[:6]) || !strings.Contains(got, "clientConnection=7") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

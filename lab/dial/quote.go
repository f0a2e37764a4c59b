package dial

import (
	"strings"

	"kurabe/lab/study"
)

// Ident quotes a name.
func Ident(engine, name string) string {
	if engine == study.Postgres {
		return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	}
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}

// Literal quotes a string.
func Literal(engine, text string) string {
	if engine != study.Postgres {
		text = strings.ReplaceAll(text, `\`, `\\`)
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

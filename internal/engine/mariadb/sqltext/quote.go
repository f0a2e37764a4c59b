package sqltext

import "strings"

// literalEscapes are those of a string while sql_mode is empty, as it is in our
// sessions.
var literalEscapes = strings.NewReplacer("\x00", "", `\`, `\\`, "'", `\'`, "\n", `\n`, "\r", `\r`)

// Literal writes an SQL string.
func Literal(s string) string { return "'" + literalEscapes.Replace(s) + "'" }

// Name writes an SQL name.
func Name(s string) string {
	return "`" + strings.ReplaceAll(strings.ReplaceAll(s, "\x00", ""), "`", "``") + "`"
}

// Account is a user from anywhere, the only kind the service makes.
func Account(user string) string { return Literal(user) + "@'%'" }

// LikeEscapes take the meaning from the signs of LIKE, which are those of a
// schema name in GRANT too.
var LikeEscapes = strings.NewReplacer(`\`, `\\`, "_", `\_`, "%", `\%`)

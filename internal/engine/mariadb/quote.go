package mariadb

import "strings"

// literalEscapes are those of a string while sql_mode is empty, as it is in our
// sessions.
var literalEscapes = strings.NewReplacer("\x00", "", `\`, `\\`, "'", `\'`, "\n", `\n`, "\r", `\r`)

// quoteLiteral writes an SQL string.
func quoteLiteral(s string) string { return "'" + literalEscapes.Replace(s) + "'" }

// quoteName writes an SQL name.
func quoteName(s string) string {
	return "`" + strings.ReplaceAll(strings.ReplaceAll(s, "\x00", ""), "`", "``") + "`"
}

// account is a user from anywhere, the only kind the service makes.
func account(user string) string { return quoteLiteral(user) + "@'%'" }

// likeEscapes take the meaning from the signs of LIKE, which are those of a
// schema name in GRANT too.
var likeEscapes = strings.NewReplacer(`\`, `\\`, "_", `\_`, "%", `\%`)

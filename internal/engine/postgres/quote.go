package postgres

import "strings"

// quoteLiteral writes an SQL string. Our sessions and single-user runs have
// standard_conforming_strings on, so a backslash is a character like any other.
func quoteLiteral(s string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(s, "\x00", ""), "'", "''") + "'"
}

// quoteName writes an SQL name that keeps its case.
func quoteName(s string) string {
	return `"` + strings.ReplaceAll(strings.ReplaceAll(s, "\x00", ""), `"`, `""`) + `"`
}

// settingEscapes are those of guc-file.l. A raw newline would end the line and
// let a value set further parameters.
var settingEscapes = strings.NewReplacer("\x00", "", `\`, `\\`, "'", "''", "\n", `\n`, "\r", `\r`, "\b", `\b`, "\f", `\f`, "\t", `\t`)

// quoteSetting writes a value of postgresql.conf.
func quoteSetting(s string) string { return "'" + settingEscapes.Replace(s) + "'" }

// quoteAccess writes a word of pg_hba.conf or pg_ident.conf, where quotes also
// take the special meaning from words like all.
func quoteAccess(s string) string {
	return `"` + strings.NewReplacer("\x00", "", "\n", "", "\r", "", `"`, `""`).Replace(s) + `"`
}

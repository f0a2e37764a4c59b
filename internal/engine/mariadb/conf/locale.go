package conf

import (
	"slices"
	"strings"

	"kurabe"
)

// A CharacterSetName is a character set of the server. It decides what new
// schemas get unless they say otherwise; character_set_server and
// collation_server of a parameter group come before it.
//
// utf8mb4 is the default, and sorts by code point, as the other engine does with
// locale C. The set's own default collation, general_ci, would take all
// characters beyond the basic plane for the same one, and so refuse the second
// of two names that differ in an emoji or a rare kanji only. utf8mb4_bin and not
// nopad_bin, because MySQL knows the former too.
const (
	DefaultCharset   = "utf8mb4"
	defaultCollation = "utf8mb4_bin"
)

// OfferedCharsets are the names that the server has, the default first.
func OfferedCharsets(names []string) []string {
	rest := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == DefaultCharset })
	slices.Sort(rest)
	return append([]string{DefaultCharset}, slices.Compact(rest)...)
}

// characterSet are the settings that an instance's locale stands for. The server
// refuses a collation of another set, so each follows the other where only one
// is given.
func characterSet(a kurabe.Assignment) map[string]string {
	const set, collation = "character_set_server", "collation_server"
	_, hasSet := a.Settings[set]
	chosen, hasCollation := a.Settings[collation]
	switch {
	case hasSet:
		return map[string]string{}
	case hasCollation:
		// A collation begins with the name of its set, but for the families
		// that belong to any Unicode set.
		name, _, _ := strings.Cut(chosen, "_")
		if strings.HasPrefix(name, "uca") {
			name = DefaultCharset
		}
		return map[string]string{set: name}
	case a.Locale == "" || a.Locale == DefaultCharset:
		return map[string]string{set: DefaultCharset, collation: defaultCollation}
	}
	return map[string]string{set: a.Locale}
}

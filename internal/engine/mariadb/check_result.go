package mariadb

import "strings"

// told is what CHECK TABLE said of one table.
type told struct {
	problems  []string
	unchecked string // why nothing can be said of it, ""
}

// uncheckable are the words with which the server says of a table that a user's statements
// have left nothing in it to check, each with what that means. What such a statement leaves
// is what its user asked for, and is in every copy of the instance: it is no damage. A table
// whose file is missing for any other reason has other words (1812, "Tablespace is missing").
var uncheckable = []struct{ words, reason string }{
	// ER_TABLESPACE_DISCARDED, of what InnoDB's dictionary says.
	{"Tablespace has been discarded for table", "its tablespace was discarded (ALTER TABLE … DISCARD TABLESPACE)"},
	// ER_WRONG_MRG_TABLE. A table of engine MERGE has no rows of its own; those of others are
	// checked with these.
	{"Unable to open underlying table which is differently defined or of non-MyISAM type", "it is a MERGE table of tables that are none of MyISAM's, are defined otherwise or do not exist"},
}

// judge reads the answer. The server ends what it cannot check with the word "Corrupt", too.
func judge(said []map[string]string) told {
	var t told
	for _, line := range said {
		text := line["Msg_text"]
		for _, u := range uncheckable {
			if strings.HasPrefix(text, u.words) {
				return told{unchecked: u.reason}
			}
		}
		if kind := strings.ToLower(line["Msg_type"]); kind == "note" || kind == "status" && text == "OK" {
			continue
		}
		t.problems = append(t.problems, line["Table"]+": "+text)
	}
	return t
}

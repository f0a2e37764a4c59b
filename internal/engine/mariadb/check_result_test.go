package mariadb

import (
	"slices"
	"testing"
)

func TestJudge(t *testing.T) {
	line := func(kind, text string) map[string]string {
		return map[string]string{"Table": "shop.t", "Op": "check", "Msg_type": kind, "Msg_text": text}
	}
	for _, c := range []struct {
		name     string
		said     []map[string]string
		problems []string
		told     bool // as not checked
	}{
		{"sound", []map[string]string{line("status", "OK")}, nil, false},
		{"no check", []map[string]string{line("note", "The storage engine for the table doesn't support check")}, nil, false},
		{"damage", []map[string]string{line("Warning", "InnoDB: Index by_half is corrupted"), line("error", "Corrupt")},
			[]string{"shop.t: InnoDB: Index by_half is corrupted", "shop.t: Corrupt"}, false},
		{"file lost", []map[string]string{line("Error", "Tablespace is missing for a table"), line("error", "Corrupt")},
			[]string{"shop.t: Tablespace is missing for a table", "shop.t: Corrupt"}, false},
		{"discarded", []map[string]string{line("Error", "Tablespace has been discarded for table `t`"), line("error", "Corrupt")}, nil, true},
		{"merge", []map[string]string{
			line("Error", "Table 'shop.m' is differently defined or of non-MyISAM type or doesn't exist"),
			line("Error", "Unable to open underlying table which is differently defined or of non-MyISAM type or doesn't exist"), line("error", "Corrupt"),
		}, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := judge(c.said)
			if !slices.Equal(got.problems, c.problems) || (got.unchecked != "") != c.told {
				t.Errorf("%+v", got)
			}
		})
	}
}

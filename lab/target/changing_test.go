package target

import (
	"strings"
	"testing"

	"kurabe/lab/study"
)

func TestTriggersRefused(t *testing.T) {
	logged := map[string]setting{"log_bin": {value: "ON"}, "log_bin_trust_function_creators": {value: "OFF"}}
	tool := study.Variant{Tool: study.ToolPtOSC}
	trusting := tool
	trusting.Parameters = map[string]string{"log_bin_trust_function_creators": "1"}
	for name, c := range map[string]struct {
		variant study.Variant
		have    map[string]setting
		all     bool
		want    string
	}{
		"a binary log, and no trust":        {tool, logged, false, "log_bin_trust_function_creators = 1"},
		"a superuser":                       {tool, logged, true, ""},
		"trust by the variant":              {trusting, logged, false, ""},
		"trust by the server":               {tool, map[string]setting{"log_bin": {value: "ON"}, "log_bin_trust_function_creators": {value: "ON"}}, false, ""},
		"no binary log":                     {tool, map[string]setting{"log_bin": {value: "OFF"}}, false, ""},
		"a change that makes no triggers":   {study.Variant{}, logged, false, ""},
		"a server that knows no such thing": {tool, nil, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if why := triggersRefused(c.variant, c.have, c.all); !strings.Contains(why, c.want) || c.want == "" && why != "" {
				t.Errorf("%q, want %q", why, c.want)
			}
		})
	}
}

func TestUndoable(t *testing.T) {
	plain := &study.Study{Variants: []study.Variant{{Name: "plain"}}}
	if err := undoable(plain, "db"); err != nil {
		t.Error(err)
	}
	changing := &study.Study{Variants: []study.Variant{{Name: "sham", Change: map[string][]string{"": {"SELECT 1"}}}}}
	if err := undoable(changing, "db"); err == nil || !strings.Contains(err.Error(), "leave the database out of the URL") {
		t.Error(err)
	}
}

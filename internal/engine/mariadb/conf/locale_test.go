package conf

import (
	"testing"

	"kurabe"
)

func TestCharacterSet(t *testing.T) {
	cases := map[string]struct {
		locale   string
		settings map[string]string
		want     string
	}{
		"the default sorts by code point": {"utf8mb4", nil, "utf8mb4/utf8mb4_bin"},
		"another set has its own":         {"sjis", nil, "sjis/"},
		"the group's set comes first":     {"utf8mb4", map[string]string{"character_set_server": "latin1"}, "/"},
		"a collation brings its set":      {"utf8mb4", map[string]string{"collation_server": "latin1_bin"}, "latin1/"},
		"one of any Unicode set":          {"utf8mb4", map[string]string{"collation_server": "uca1400_ai_ci"}, "utf8mb4/"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := characterSet(kurabe.Assignment{Locale: c.locale, Settings: c.settings})
			if text := got["character_set_server"] + "/" + got["collation_server"]; text != c.want {
				t.Errorf("%s, want %s", text, c.want)
			}
		})
	}
}

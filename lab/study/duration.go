package study

import (
	"fmt"
	"strings"
	"time"
)

// String is the shortest form: "90s" reads as "1m30s", and "5m0s" is "5m".
func (d Duration) String() string {
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// MarshalText writes the form that UnmarshalText reads, in YAML and in JSON.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads "30s", "1m30s", "250ms". A number without a unit is refused: some
// programs would take it for seconds and others for milliseconds.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil || parsed == 0 && string(text) == "0" {
		return fmt.Errorf("%q is no duration; write a number with its unit, such as 30s or 2m", text)
	}
	*d = Duration(parsed)
	return nil
}

package tell

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"kurabe"
)

// WaitAfter is how long a step must have failed until users are told: once, and again when the
// reason is another one.
const WaitAfter = time.Minute

// changing is what differs between two failures of one reason: numbers, names by chance.
var changing = regexp.MustCompile(`[0-9a-f]{16,}|[0-9]+`)

// Gist is what makes one reason another than before.
func Gist(f *kurabe.Failure) string {
	return f.Step + "\x00" + changing.ReplaceAllString(f.Message, "#")
}

// problemsMax bounds the problems in the text of an event.
const problemsMax = 3

// First joins the first few problems, and counts the others.
func First(all []string) string {
	told := all[:min(len(all), problemsMax)]
	text := strings.Join(told, "; ")
	if more := len(all) - len(told); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

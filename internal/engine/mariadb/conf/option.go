package conf

import (
	"fmt"
	"regexp"
	"strings"
)

// Option is one line of the rendered file.
type Option struct{ Name, Value string }

// optionName is what may stand before an equals sign. The catalogue holds no
// other name; a record that does must not be able to write a second line.
var optionName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// optionBytesMax is less than the server's line buffer of 4096: it would take
// the rest of a longer line for another option.
const optionBytesMax = 4000

// optionEscapes are those of my_default.c. A raw newline would end the line and
// let a value set further options; a quote would let it begin a comment.
var optionEscapes = strings.NewReplacer("\x00", "", `\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\b", `\b`)

// String is the line. What cannot be written faithfully becomes an option that
// no server knows, so that it refuses to start and names it, where leaving it
// out would be silently running with another value.
func (o Option) String() string {
	text := fmt.Sprintf("%s = \"%s\"\n", o.Name, optionEscapes.Replace(o.Value))
	if len(text) > optionBytesMax {
		return fmt.Sprintf("value_too_long_of_%s = 1\n", o.Name)
	}
	return text
}

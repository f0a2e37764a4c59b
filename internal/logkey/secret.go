package logkey

import (
	"fmt"
	"io"
	"log/slog"
)

// mask is all that is ever shown of a Secret. Its length tells nothing.
const mask = "***"

// Secret is a password, key or token. It prints, marshals and logs as "***";
// only Reveal gives the value. It can be unmarshalled from JSON or text as is.
//
// Traps that a string type cannot close: fmt cannot call methods on unexported
// struct fields, so a Secret sits in an exported field or its struct is never
// printed; and encoding/json writes map keys of string kind raw, so a Secret is
// never a key. A Secret marshalled for storage is stored as "***": storing one
// takes an explicit Reveal, on purpose.
type Secret string

// Reveal returns the value, for the one place that hands it to whom it is for.
func (s Secret) Reveal() string { return string(s) }

// String implements fmt.Stringer.
func (s Secret) String() string { return mask }

// GoString implements fmt.GoStringer, so %#v shows no value either.
func (s Secret) GoString() string { return mask }

// Format covers every verb: without it %x and %d would print the bytes.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, mask) }

// MarshalText masks the value in XML and wherever text is asked for.
func (s Secret) MarshalText() ([]byte, error) { return []byte(mask), nil }

// MarshalJSON implements json.Marshaler.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + mask + `"`), nil }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(mask) }

package client

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Span is a time span of a flag, of days too: 30m, 24h, 7d.
type Span time.Duration

// Set implements pflag.Value.
func (s *Span) Set(text string) error {
	span, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n float64
		n, err = strconv.ParseFloat(days, 64)
		span = time.Duration(n * float64(24*time.Hour))
	}
	if err != nil || span < 0 {
		return fmt.Errorf("%q is no time span, such as 30m, 24h or 7d", text)
	}
	*s = Span(span)
	return nil
}

// String implements pflag.Value.
func (s *Span) String() string { return time.Duration(*s).String() }

// Type implements pflag.Value.
func (*Span) Type() string { return "span" }

package client

import (
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	for text, want := range map[string]time.Duration{"30m": 30 * time.Minute, "7d": 7 * 24 * time.Hour, "0.5d": 12 * time.Hour, "0": 0, "x": -1, "-1h": -1, "d": -1, "-1d": -1} {
		var got Span
		if err := got.Set(text); (err == nil) != (want >= 0) || err == nil && got != Span(want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

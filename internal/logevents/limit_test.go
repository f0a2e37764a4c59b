package logevents

import (
	"strings"
	"testing"
)

func TestTooMuch(t *testing.T) {
	b := newBed(t)
	if err := b.Append("g", "s", []Event{at(1, strings.Repeat("a", MessageMax+1))}, nil); err == nil {
		t.Fatal("a message that is too long was taken")
	}
	if err := b.Append("g", "s", nil, make([]byte, MarkMax+1)); err == nil {
		t.Fatal("a mark that is too long was taken")
	}
	b.append("s", "m", at(1, strings.Repeat("a", MessageMax)))
	if err := b.Append("g", "s", nil, []byte("alone")); err != nil || string(b.Mark("g", "s")) != "alone" {
		t.Fatalf("a mark alone: %v", err)
	}
}

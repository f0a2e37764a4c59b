package client

import (
	"strings"
	"testing"
)

func TestReadLine(t *testing.T) {
	in := strings.NewReader("shop\r\npass word\nlast")
	for _, want := range []string{"shop", "pass word", "last"} {
		if got, err := readLine(in); got != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	if got, err := readLine(in); err == nil {
		t.Errorf("%q after the end", got)
	}
	if _, err := readLine(strings.NewReader(strings.Repeat("x", lineBytesMax+1))); err == nil {
		t.Error("an endless line is taken")
	}
}

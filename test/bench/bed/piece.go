package bed

import (
	"fmt"
	"time"
)

// Piece is one run of the program into a file.
type Piece struct {
	Machine  Machine   `json:"machine"`
	Settings Settings  `json:"settings"`
	Started  time.Time `json:"started"`
	Seconds  float64   `json:"-"` // 0: it was cut off
}

// SameSetting refuses to add to figures of another machine or other sizes: the mixture would be
// of neither.
func SameSetting(before []Piece, m Machine, s Settings) error {
	for _, p := range before {
		if how := m.Differs(p.Machine); how != "" {
			return fmt.Errorf("the file was begun on %s", how)
		}
		had := p.Settings
		if had.Quick != s.Quick || had.Blocks != s.Blocks || had.Seconds != s.Seconds {
			return fmt.Errorf("the file was begun with quick %t, %d blocks, %d seconds, and this is with quick %t, %d blocks, %d seconds", had.Quick, had.Blocks, had.Seconds, s.Quick, s.Blocks, s.Seconds)
		}
	}
	return nil
}

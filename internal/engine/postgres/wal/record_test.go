package wal

import "testing"

func FuzzRecord(f *testing.F) {
	f.Add([]byte{255, 8, 1, 2, 3, 4, 5, 6, 7, 8}, byte(0))
	f.Add([]byte{253, 1, 1, 252, 1, 1, 1, 1, 254, 8, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}, byte(0x10))
	f.Fuzz(func(t *testing.T, head []byte, info byte) {
		r := Record{Resource: resourceXact, Info: info, head: head[:min(len(head), headBytes)]}
		if at, ok, err := r.TransactionEnd(); ok != !at.IsZero() && err == nil {
			t.Errorf("%s, %v", at, ok)
		}
	})
}

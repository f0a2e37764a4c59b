package blob

import "time"

// For the tests of package blob_test, which may use the suite.

// SetParts makes the parts of an upload small, and waits short.
func (s *S3) SetParts(sizeBytes int64, stall time.Duration) {
	s.partBytes, s.stall, s.pause = sizeBytes, stall, stall/100
}

// Blind says if conditional puts are given up.
func (s *S3) Blind() bool { return s.blind.Load() }

// SetListBatch makes List look at a folder several times.
func SetListBatch(n int) (restore func()) {
	old := listBatch
	listBatch = n
	return func() { listBatch = old }
}

func init() { sendPauseMax = 10 * time.Millisecond }

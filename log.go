package kurabe

import "time"

// LogFile is one engine log of an instance, under its RDS name
// ("error/postgresql.log.2026-11-21-03").
type LogFile struct {
	Name        string
	SizeBytes   int64
	LastWritten time.Time
}

// LogPortion is a piece of a log file. Marker continues after it; More says that
// there is more at this moment.
type LogPortion struct {
	Data   string
	Marker string
	More   bool
}

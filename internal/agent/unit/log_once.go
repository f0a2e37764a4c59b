package unit

import (
	"log/slog"

	"kurabe/internal/logkey"
)

// LogOnce says once why a report is not delivered, and not each time that it is tried again:
// the service may be away for hours.
type LogOnce struct{ said string }

func (u *LogOnce) Warn(log *slog.Logger, what string, err error) {
	if said := err.Error(); said != u.said {
		u.said = said
		log.Warn(what, logkey.Error, err)
	}
}

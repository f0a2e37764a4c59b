package conf

import (
	"path"
	"strings"
)

// IsInnoDBFile says that a file is one of InnoDB's tables; its log is not among them.
func IsInnoDBFile(name string) bool {
	base := path.Base(name)
	return strings.HasSuffix(base, ".ibd") || strings.HasPrefix(base, "ibdata") || strings.HasPrefix(base, "undo")
}

// RedoLog is how the files of InnoDB's log are called, one since 10.5.
const RedoLog = "ib_logfile"

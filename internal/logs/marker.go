package logs

import (
	"strconv"
	"strings"

	"kurabe"
)

// position is a place in a file. The inode tells a file from the one that took
// its name after a rotation; 0 is any file.
type position struct {
	inode  uint64
	offset int64
}

// String is the marker of a position.
func (p position) String() string {
	return strconv.FormatUint(p.inode, 10) + ":" + strconv.FormatInt(p.offset, 10)
}

// parseMarker reads a marker; "" and "0" are the beginning of any file.
func parseMarker(marker string) (position, error) {
	if marker == "" || marker == "0" {
		return position{}, nil
	}
	inode, offset, _ := strings.Cut(marker, ":")
	i, err1 := strconv.ParseUint(inode, 10, 64)
	o, err2 := strconv.ParseInt(offset, 10, 64)
	if p := (position{i, o}); err1 == nil && err2 == nil && o >= 0 && p.String() == marker {
		return p, nil
	}
	return position{}, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid marker: %.100q", marker)
}

package blob

import (
	"fmt"
	"strings"
)

// A name has to live in a file system, in a URL and in people's terminals. 512
// bytes leave half of S3's 1,024 to the prefix; 200 stay below the 255 of file
// systems.
const (
	nameBytesMax = 512
	partBytesMax = 200
)

// markName is the object that makes a place a repository. It is no object of a
// Store: List does not show it and no other method takes the name.
const markName = "kurabe-repository.json"

// CheckName says if a name may be used: parts of A-Z a-z 0-9 . _ - between single
// slashes, none beginning with a dot (which also shuts out ".."). Let no name be
// the folder of another ("a" beside "a/b"), and no two differ in case only: not
// every store can hold both.
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: it is empty", ErrName)
	case len(name) > nameBytesMax:
		return fmt.Errorf("%w: %d bytes are more than %d", ErrName, len(name), nameBytesMax)
	case name == markName:
		return fmt.Errorf("%w: %s is reserved for the repository itself", ErrName, markName)
	}
	for part := range strings.SplitSeq(name, "/") {
		if !goodPart(part) {
			return fmt.Errorf("%w: %.*q (parts of A-Z a-z 0-9 . _ - that do not begin with a dot, at most %d bytes each)", ErrName, partBytesMax, part, partBytesMax)
		}
	}
	return nil
}

func goodPart(part string) bool {
	if part == "" || part[0] == '.' || len(part) > partBytesMax {
		return false
	}
	for i := range len(part) {
		if !goodByte(part[i]) {
			return false
		}
	}
	return true
}

func goodByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}

// checkPrefix is CheckName for the beginning of a name.
func checkPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	// What comes after the last slash may be any beginning of a part.
	if err := CheckName(prefix + "x"); err != nil {
		return fmt.Errorf("prefix: %w", err)
	}
	return nil
}

// listed says if a name that was found in a store is one of its objects. Others
// may lie there: lost+found, a desktop's droppings.
func listed(name string) bool { return CheckName(name) == nil }

func checkRange(offset, length int64) error {
	if offset < 0 || length < 0 || offset > 1<<62 || length > 1<<62 {
		return fmt.Errorf("range of %d bytes from %d: %w", length, offset, ErrUnsupported)
	}
	return nil
}

package proc

import (
	"os"
	"path/filepath"
	"syscall"
)

// Traversable says if a user can reach path: every folder on the way, path itself
// included if it is a folder, must let the user through. It looks at mode bits
// only. Access control lists and supplementary groups that would grant more are
// not seen, so the answer errs towards false, where BindAs helps.
func Traversable(path string, uid, gid int) bool {
	if uid == 0 {
		return true
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	// The engine walks the path as given; where links lead must be passable too.
	return passable(filepath.Clean(path), uid, gid) && passable(real, uid, gid)
}

func passable(path string, uid, gid int) bool {
	for {
		info, err := os.Stat(path)
		if err != nil || (info.IsDir() && !mayEnter(info, uid, gid)) {
			return false
		}
		parent := filepath.Dir(path)
		if parent == path {
			return true
		}
		path = parent
	}
}

// mayEnter picks the one class of bits that applies, as the kernel does: an owner
// without x is refused even if others have it.
func mayEnter(info os.FileInfo, uid, gid int) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	mode := info.Mode().Perm()
	switch {
	case int(owner.Uid) == uid:
		return mode&0o100 != 0
	case int(owner.Gid) == gid:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}

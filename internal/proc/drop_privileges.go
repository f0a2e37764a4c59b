package proc

import (
	"fmt"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// become changes to the user for good: without groups, without a capability that could
// come back, and so that no program gives more rights by its mode. Groups first:
// afterwards we may not. The syscall package changes all threads, x/sys only the calling
// one, which is the one that becomes the program.
func become(user *Credential) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	if user == nil {
		return nil
	}
	if os.Geteuid() != 0 {
		if os.Geteuid() == user.UID && os.Getegid() == user.GID {
			return nil
		}
		return fmt.Errorf("running as uid %d, only root can start a process as uid %d", os.Geteuid(), user.UID)
	}
	// The kernel takes -1 for "leave it": the program would be root.
	if user.UID < 0 || user.GID < 0 {
		return fmt.Errorf("uid %d with gid %d is no user", user.UID, user.GID)
	}
	if user.UID != 0 {
		if err := dropBounding(); err != nil {
			return err
		}
	}
	groups := slices.Clone(user.Groups)
	if groups == nil {
		groups = []int{}
	}
	if err := syscall.Setgroups(groups); err != nil {
		return fmt.Errorf("set groups: %w", err)
	}
	if err := syscall.Setresgid(user.GID, user.GID, user.GID); err != nil {
		return fmt.Errorf("set gid %d: %w", user.GID, err)
	}
	if err := syscall.Setresuid(user.UID, user.UID, user.UID); err != nil {
		return fmt.Errorf("set uid %d: %w", user.UID, err)
	}
	if user.UID == 0 {
		return nil
	}
	// The change of the user has emptied all sets but the inheritable one.
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

// dropBounding: no program that is started later has a capability, whatever its file says.
func dropBounding() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err == unix.EINVAL { // this kernel has fewer, or is done
			return nil
		}
		if err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	return nil
}

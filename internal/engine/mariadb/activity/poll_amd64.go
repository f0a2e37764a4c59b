package activity

import "golang.org/x/sys/unix"

const sysPoll = unix.SYS_POLL

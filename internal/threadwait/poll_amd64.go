package threadwait

import "golang.org/x/sys/unix"

const sysPoll = unix.SYS_POLL

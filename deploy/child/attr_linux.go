package child

import "syscall"

// attributes make the kernel kill a process whose parent is gone, even by SIGKILL, and
// keep a terminal's Ctrl-C for the parent, which stops the others in order. They hold
// for the thread that starts the process; Go ends no thread that a goroutine has not
// locked.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

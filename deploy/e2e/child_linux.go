//go:build e2e

package e2e

import "syscall"

// childAttr makes the kernel end a process whose test process is gone, as it is
// after a test's time-out.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

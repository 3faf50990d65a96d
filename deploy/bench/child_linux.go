package main

import "syscall"

// childAttr makes the kernel end a process whose parent is gone, and keeps a
// terminal's Ctrl-C for the parent, which stops the others in order.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

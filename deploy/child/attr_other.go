//go:build !linux

package child

import "syscall"

// attributes keep a terminal's Ctrl-C for the parent, which stops the others in order.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

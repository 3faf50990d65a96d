package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// sandboxAttr makes the kernel give a process namespaces of its own, and kill it when
// its parent is gone. A terminal's Ctrl-C is for the parent, which hands it on.
func sandboxAttr() (*syscall.SysProcAttr, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("needs root: it makes network namespaces and firewall rules, all in a sandbox of its own")
	}
	return &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
		Setpgid:    true,
	}, nil
}

// inSandbox says whether this is the first process of a process namespace, and was
// started to be that.
func inSandbox() bool { return os.Getenv(sandboxMark) != "" && os.Getpid() == 1 }

// furnishSandbox gives the sandbox its own /proc and /run. What is mounted in it is
// not seen outside.
func furnishSandbox(ctx context.Context) error {
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
		data                 string
	}{
		{"none", "/", "", syscall.MS_REC | syscall.MS_PRIVATE, ""},
		{"proc", "/proc", "proc", syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC, ""},
		{"tmpfs", sandboxDir, "tmpfs", syscall.MS_NOSUID | syscall.MS_NODEV, "mode=0755,size=1g"},
	} {
		if err := syscall.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	return makeBridge(ctx)
}

package nio

import (
	"syscall"
	"unsafe"
)

// rawMost bounds what is read or written outside of the scheduler's sight. On a socket
// that does not block, moving so much takes microseconds; telling the scheduler before
// and after each time cost an edge 5 to 8 % of its CPU.
const rawMost = 64 << 10

// read and write are read(2) and write(2) on a socket that does not block. p is not
// empty.
func read(fd int, p []byte) (int, error) {
	return raw(syscall.SYS_READ, fd, p[:min(len(p), rawMost)])
}

func write(fd int, p []byte) (int, error) {
	if len(p) > rawMost {
		return syscall.Write(fd, p)
	}
	return raw(syscall.SYS_WRITE, fd, p)
}

func raw(trap uintptr, fd int, p []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(trap, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

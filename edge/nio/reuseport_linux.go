package nio

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// reusePort is a net.ListenConfig.Control. It lets other sockets that have the same
// option, of processes of the same user, listen at the same address. The kernel
// picks one of them for each new connection, by a hash of its addresses.
func reusePort(_, _ string, c syscall.RawConn) error {
	return control(c, func(fd int) error {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	})
}

// turnAway makes a listener begin no handshake any more and finish those that have
// begun, by a filter that drops every segment with SYN and without ACK. The kernel
// shows it segments from their TCP header on; the flags are at offset 13 (RFC 9293
// section 3.1). It takes no privilege, and accepted connections that inherit it
// never see such a segment.
func turnAway(ln *net.TCPListener) error {
	const flags, synAck, syn, pass, drop = 13, 0x12, 0x02, 0xffffffff, 0
	program := [...]unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: flags},
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: synAck},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: syn, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: drop},
		{Code: unix.BPF_RET | unix.BPF_K, K: pass},
	}
	c, err := ln.SyscallConn()
	if err != nil {
		return err
	}
	return control(c, func(fd int) error {
		return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	})
}

// waiting is how many connections are in the accept queue: what tcpi_unacked is for
// a listener (tcp_get_info in the kernel's net/ipv4/tcp.c).
func waiting(ln *net.TCPListener) (n int) {
	c, err := ln.SyscallConn()
	if err != nil {
		return 0
	}
	_ = control(c, func(fd int) error { // fails for a closed listener only: nothing waits there
		info, err := unix.GetsockoptTCPInfo(fd, unix.SOL_TCP, unix.TCP_INFO)
		if err == nil {
			n = int(info.Unacked)
		}
		return err
	})
	return n
}

func control(c syscall.RawConn, f func(fd int) error) error {
	var err error
	if e := c.Control(func(fd uintptr) { err = f(int(fd)) }); e != nil {
		return e
	}
	return err
}

package nio

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/lesismal/nbio"
	"golang.org/x/sys/unix"
)

// adopter gives connections to nbio without the event that makes it close them
// when the peer shuts down its sending side.
//
// nbio registers each descriptor with EPOLLRDHUP and closes the connection when
// that comes, before a session could read what came along with it, let alone
// answer. In edge-triggered mode it never touches the registration again. So the
// descriptor is registered while it stands for a pipe in which nothing happens;
// then the socket is put in the pipe's place and registered with the events that
// are wanted. Nothing else knows the connection meanwhile.
type adopter struct {
	epolls []int // by poller; nil when they could not be found
	pipe   [2]int
}

// newAdopter reads the descriptors of nbio's pollers.
func newAdopter(e *nbio.Engine, pollers int) (adopter, error) {
	var a adopter
	list := reflect.ValueOf(e).Elem().FieldByName("pollers")
	if !list.IsValid() || list.Kind() != reflect.Slice || list.Len() != pollers {
		return a, errors.New("this nbio has no list of pollers")
	}
	epolls := make([]int, pollers)
	for i := range epolls {
		p := list.Index(i)
		if p.Kind() != reflect.Pointer || p.Elem().Kind() != reflect.Struct {
			return a, errors.New("this nbio has other pollers")
		}
		fd := p.Elem().FieldByName("epfd")
		if !fd.IsValid() || fd.Kind() != reflect.Int {
			return a, errors.New("this nbio's pollers have no epoll descriptor")
		}
		epolls[i] = int(fd.Int())
	}
	if err := unix.Pipe2(a.pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return a, fmt.Errorf("pipe: %w", err)
	}
	a.epolls = epolls
	return a, nil
}

func (a *adopter) close() {
	if a.epolls != nil {
		_ = unix.Close(a.pipe[0])
		_ = unix.Close(a.pipe[1])
	}
}

// adopt adds the connection to its poller. With an error it is closed.
func (e *engine) adopt(nb *nbio.Conn) error {
	if e.epolls == nil {
		_, err := e.AddConn(nb)
		return err
	}
	fd := nb.Hash()
	epoll := e.epolls[fd%len(e.epolls)]
	socket, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		_ = nb.Close()
		return fmt.Errorf("dup: %w", err)
	}
	defer func() { _ = unix.Close(socket) }() // dup3 has made another of it
	if err := unix.Dup3(e.pipe[0], fd, unix.O_CLOEXEC); err != nil {
		_ = nb.Close()
		return fmt.Errorf("dup3: %w", err)
	}
	if _, err := e.AddConn(nb); err != nil {
		return err
	}
	// The pipe stays open, so its registration would outlive the descriptor.
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_DEL, fd, nil); err != nil {
		_ = nb.CloseWithError(err)
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	if err := unix.Dup3(socket, fd, unix.O_CLOEXEC); err != nil {
		_ = nb.CloseWithError(err)
		return fmt.Errorf("dup3: %w", err)
	}
	err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{
		Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLET, // errors and hang-ups come unasked
		Fd:     int32(fd),
	})
	if err != nil {
		_ = nb.CloseWithError(err)
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

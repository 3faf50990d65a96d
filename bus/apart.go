package bus

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// DialApart opens several links and keeps them on different servers as long as more
// than one can be reached: what is lost with one server is asked over another at once.
// Like Dial it returns without an error while none can be reached.
func DialApart(cfg LinkConfig, n int) ([]*Link, error) {
	a := &apart{again: apartFirst}
	urls := slices.Clone(cfg.URLs)
	rand.Shuffle(len(urls), func(i, j int) { urls[i], urls[j] = urls[j], urls[i] })
	cfg.inOrder = true
	for range n {
		cfg.URLs = slices.Clone(urls)
		l, err := Dial(cfg)
		if err != nil {
			a.close()
			return nil, err
		}
		a.links = append(a.links, l)
		if len(urls) > 0 { // the next one begins with the next server
			urls = append(urls[1:], urls[0])
		}
	}
	a.timer = time.AfterFunc(time.Hour, a.part)
	a.timer.Stop()
	for _, l := range a.links {
		// The watches end with the links.
		l.Watch(func(up bool) {
			if up {
				a.look()
			}
		})
		l.onClose = a.stop
	}
	a.look()
	return slices.Clone(a.links), nil
}

const (
	// apartFirst is how long two links may share a server before one is moved, and
	// apartLast the most between two attempts, while no other server lets it in.
	apartFirst = time.Second
	apartLast  = time.Minute
	apartDial  = time.Second
)

// apart keeps links on different servers.
type apart struct {
	links []*Link

	mu      sync.Mutex
	timer   *time.Timer
	again   time.Duration // pause before the next attempt
	stopped bool
}

// look arms the timer if two links are on one server.
func (a *apart) look() {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.stopped:
	case a.double() == nil:
		a.again = apartFirst
	default:
		a.timer.Reset(a.again)
		a.again = min(2*a.again, apartLast)
	}
}

// double returns a link to a server that a link before it is on as well.
func (a *apart) double() *Link {
	seen := map[string]bool{}
	for _, l := range a.links {
		if !l.Up() {
			continue
		}
		id := l.nc.ConnectedServerId()
		if seen[id] && len(l.nc.Servers()) > 1 {
			return l
		}
		seen[id] = true
	}
	return nil
}

// part moves a link away from a server that another one is on.
func (a *apart) part() {
	a.mu.Lock()
	l := a.double()
	stopped := a.stopped
	a.mu.Unlock()
	if stopped || l == nil {
		return
	}
	if !elsewhere(l.nc) {
		a.look()
		return
	}
	l.log.Info("two links are on one bus server, moving one", "server", redact(l.nc.ConnectedUrl()))
	l.renew()
}

// elsewhere says whether another server than the connected one takes connections.
func elsewhere(nc *nats.Conn) bool {
	here, err := url.Parse(nc.ConnectedUrl())
	if err != nil {
		return false
	}
	for _, s := range nc.Servers() {
		u, err := url.Parse(s)
		if err != nil || u.Host == here.Host {
			continue
		}
		if id, err := serverID(u.Host); err == nil && id != nc.ConnectedServerId() {
			return true
		}
	}
	return false
}

// serverID asks who listens at an address. A NATS server says so before anything else.
func serverID(addr string) (string, error) {
	c, err := net.DialTimeout("tcp", addr, apartDial)
	if err != nil {
		return "", err
	}
	defer c.Close() //nolint:errcheck // nothing was sent
	if err := c.SetDeadline(time.Now().Add(apartDial)); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(io.LimitReader(c, maxInfo)).ReadBytes('\n')
	if err != nil {
		return "", err
	}
	var info struct {
		ID string `json:"server_id"`
	}
	err = json.Unmarshal(bytes.TrimPrefix(line, []byte("INFO ")), &info)
	return info.ID, err
}

// maxInfo bounds what is read of a server's first line, in bytes.
const maxInfo = 64 << 10

func (a *apart) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped = true
	if a.timer != nil {
		a.timer.Stop()
	}
}

func (a *apart) close() {
	a.stop()
	for _, l := range a.links {
		l.Close()
	}
}

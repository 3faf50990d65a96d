//go:build !linux

package nio

import "github.com/lesismal/nbio"

// adopter has nothing to do here: with kqueue nbio leaves the end of a connection
// to whoever reads it.
type adopter struct{}

func newAdopter(*nbio.Engine, int) (adopter, error) { return adopter{}, nil }

func (*adopter) close() {}

// adopt adds the connection to its poller. With an error it is closed.
func (e *engine) adopt(nb *nbio.Conn) error {
	_, err := e.AddConn(nb)
	return err
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/ommer/ommer/deploy/load"
)

// holdCommand is the argument that makes this program the one that holds idle
// connections.
const holdCommand = "hold-idle-connections"

// holding is what that process is told on its standard input.
type holding struct {
	Endpoint  endpoint
	Questions []question
	Conns     int
}

// hold opens the connections, makes one exchange on each, says so by a line, and
// keeps them until its input ends.
func hold(in io.Reader, out io.Writer) (err error) {
	dec := json.NewDecoder(in)
	var h holding
	if err = dec.Decode(&h); err != nil {
		return fmt.Errorf("what to hold: %w", err)
	}
	d, err := newDialer(h.Endpoint, h.Questions)
	if err != nil {
		return err
	}
	conns, err := d.DialAll(context.Background(), h.Conns, func(*load.Conn) error { return nil })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, load.CloseAll(conns)) }()
	if _, err = fmt.Fprintln(out, "holding"); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, io.MultiReader(dec.Buffered(), in))
	return err
}

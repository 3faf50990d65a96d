package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"

	"github.com/ommer/ommer/deploy/child"
)

// role is this program started again to do a part of a run: see playRole. Both sides
// speak in lines of JSON, and the process ends when its input does.
type role struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	tell *json.Encoder
	hear *json.Decoder
}

// startRole starts a process and tells it what it is to do. The end of ctx kills it.
func startRole(ctx context.Context, command string, what any) (*role, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r := &role{cmd: child.Command(ctx, self, command)}
	r.cmd.Stderr = os.Stderr
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.tell, r.hear = json.NewEncoder(r.in), json.NewDecoder(out)
	if err = r.cmd.Start(); err != nil {
		return nil, err
	}
	// By its standard input, since arguments are there for all to read.
	if err = r.tell.Encode(what); err != nil {
		return nil, errors.Join(err, r.stop())
	}
	return r, nil
}

func (r *role) pid() int { return r.cmd.Process.Pid }

func (r *role) stop() error { return errors.Join(r.in.Close(), r.cmd.Wait()) }

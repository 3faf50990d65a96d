package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// sandboxDir is what only this run sees: a file system in memory, which goes with it.
const sandboxDir = "/run"

// childExit is the exit code of the part in the sandbox.
type childExit int

func (e childExit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// sandboxMark tells the part in the sandbox what it is. It is looked at as well
// whether it is so: see inSandbox.
const sandboxMark = "CHAOS_SANDBOX"

// enterSandbox runs the program again in network, process and mount namespaces of its
// own, and waits for it. Nothing of a run can be left over: the first process in a
// process namespace takes all others with it (pid_namespaces(7)), its death is that of
// this process too, and with the last process go networks, firewall rules and files.
func enterSandbox(ctx context.Context, args []string) error {
	if err := checkTools(); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), sandboxMark+"=1")
	if cmd.SysProcAttr, err = sandboxAttr(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("namespaces of its own need root and the capability CAP_SYS_ADMIN: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(os.Interrupt) })() // it may have ended
	err = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code > 0 {
		return childExit(code)
	}
	return err
}

// checkTools says what has to be installed.
func checkTools() error {
	var missing []string
	for _, tool := range []struct{ name, pkg string }{{"ip", "iproute2"}, {"nft", "nftables"}} {
		if _, err := exec.LookPath(tool.name); err != nil {
			missing = append(missing, tool.name+" (Debian's "+tool.pkg+")")
		}
	}
	if len(missing) > 0 {
		return errors.New("not installed: " + strings.Join(missing, ", "))
	}
	return nil
}

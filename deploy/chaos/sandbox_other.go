//go:build !linux

package main

import (
	"context"
	"errors"
	"syscall"
)

var errLinux = errors.New("needs Linux, for its network namespaces")

func sandboxAttr() (*syscall.SysProcAttr, error) { return nil, errLinux }

func inSandbox() bool { return false }

func furnishSandbox(context.Context) error { return errLinux }

//go:build !linux

package build

func limited() {}

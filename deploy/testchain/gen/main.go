// Command gen writes the devnode's sample chain, compressed, to the file named by
// its argument.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"

	"github.com/ommer/ommer/deploy/testchain"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want the output file as the only argument, got %d", len(args))
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := testchain.Write(z); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(args[0], b.Bytes(), 0o644)
}

package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/ommer/ommer/bus/process"
	"github.com/ommer/ommer/workers/archive"
	"github.com/ommer/ommer/workers/archive/build"
)

// archives are the commands about history files.
type archives struct {
	Build  buildArchive  `cmd:"" help:"Make one file of the uncles of many blocks."`
	Verify verifyArchive `cmd:"" help:"Read an archive or an era1 file whole and check it."`
	Info   infoArchive   `cmd:"" help:"Show what an archive or an era1 file holds."`
}

// interruptible is a context that ends with SIGINT or SIGTERM.
func interruptible() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

type buildArchive struct {
	From  string  `required:"" placeholder:"FILE|DIR|URL" help:"Era1 files, or a folder of them, here or on a web server (http, https: its index page or checksums.txt names them); or an Ethereum node (http, https, ws, wss), which has to have the blocks. Which of the two answers at an http URL is found out by asking."`
	Out   string  `required:"" placeholder:"PATH" type:"path" help:"The file to make, PATH ending in .uncles where a folder is to be served. It must not exist. Until it is whole there is PATH.part, from which the same command goes on after any end."`
	First *uint64 `placeholder:"N" help:"First block to read from a node. Default: the earliest that it has."`
	Last  *uint64 `placeholder:"N" help:"Last block to read from a node. Default: the last from before the merge that is final."`
}

// Run implements the command.
func (b *buildArchive) Run(std streams) error {
	ctx, stop := interruptible()
	defer stop()
	p := newBuildProgress(std.err)
	err := build.Build(ctx, build.Config{From: b.From, Out: b.Out, First: b.First, Last: b.Last, Progress: p.tell})
	p.end()
	switch {
	case errors.Is(err, build.ErrExists):
		return process.Usage{Err: fmt.Errorf("--out: %w", err)}
	case errors.Is(err, context.Canceled):
		return errors.New("stopped" + kept(b.Out))
	case err != nil:
		return fmt.Errorf("%w%s", err, kept(b.Out))
	}
	return printArchive(std.out, b.Out)
}

// kept says what is left of a build that has ended.
func kept(out string) string {
	if _, err := os.Stat(out + build.Suffix); err != nil {
		return ""
	}
	return "; what was done is kept in " + out + build.Suffix + ", and the same command goes on from there"
}

// buildProgress says how far a build is: on a terminal in one line that changes,
// elsewhere in a line now and then.
type buildProgress struct {
	bar   progress
	every time.Duration
	begun time.Time
	said  time.Time
}

func newBuildProgress(w io.Writer) *buildProgress {
	p := &buildProgress{bar: *newProgress(w, 0), begun: time.Now()}
	if p.every = 10 * time.Second; p.bar.terminal {
		p.every = 100 * time.Millisecond
	}
	return p
}

func (p *buildProgress) tell(b build.Progress) {
	now := time.Now()
	if now.Sub(p.said) < p.every && b.Blocks < b.Total {
		return
	}
	p.said = now
	took := now.Sub(p.begun)
	rate := float64(b.Blocks-b.Resumed) / took.Seconds()
	left := "?"
	if rate > 0 && b.Total >= b.Blocks {
		left = time.Duration(math.Round(float64(b.Total-b.Blocks)/rate) * float64(time.Second)).String()
	}
	p.bar.say(fmt.Sprintf("block %d: %d of %d blocks (%.1f %%), %d with uncles, %.0f blocks/s, %s left",
		b.At, b.Blocks, b.Total, 100*float64(b.Blocks)/float64(b.Total), b.Uncled, rate, left))
}

func (p *buildProgress) end() { p.bar.end() }

type verifyArchive struct {
	Path string `arg:"" type:"path" help:"The file."`
}

// Run implements the command.
func (v *verifyArchive) Run(std streams) error {
	ctx, stop := interruptible()
	defer stop()
	is, err := archive.IsUncles(v.Path)
	if err != nil {
		return err
	}
	if is {
		err = verifyUncles(ctx, v.Path)
	} else {
		err = verifyEra1(ctx, v.Path)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(std.out, "%s is whole and unaltered.\n", v.Path)
	return nil
}

func verifyUncles(ctx context.Context, path string) error {
	u, err := archive.OpenUncles(path)
	if err != nil {
		return err
	}
	return errors.Join(u.Verify(ctx), u.Close())
}

func verifyEra1(ctx context.Context, path string) error {
	e, err := archive.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(e.Verify(ctx, nil), e.Close())
}

type infoArchive struct {
	Path string `arg:"" type:"path" help:"The file."`
}

// Run implements the command.
func (i *infoArchive) Run(std streams) error {
	is, err := archive.IsUncles(i.Path)
	if err != nil {
		return err
	}
	if is {
		return printArchive(std.out, i.Path)
	}
	return printEra1(std.out, i.Path)
}

func printArchive(out io.Writer, path string) error {
	u, err := archive.OpenUncles(path)
	if err != nil {
		return err
	}
	defer u.Close() //nolint:errcheck // only read from
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	digest := u.Digest()
	fmt.Fprintf(w, "File\t%s\nFormat\tuncles, version 1\nChain\t%s\n", path, chainText(u.Chain()))
	fmt.Fprintf(w, "Size\t%d bytes, %d of them index\n", u.Size(), u.IndexSize())
	fmt.Fprintf(w, "Blocks\t%d, %d of them with %d uncles\n", u.Blocks(), u.Uncled(), u.Count())
	for _, r := range u.Ranges() {
		fmt.Fprintf(w, "From\t%d, parent %v\nTo\t%d, hash %v\n", r.First, r.Parent, r.Last, r.Hash)
	}
	fmt.Fprintf(w, "Digest\t%s\n", hex.EncodeToString(digest[:]))
	return w.Flush()
}

func chainText(c archive.Chain) string {
	id, genesis := "unknown", ""
	if c.ID != 0 {
		id = strconv.FormatUint(c.ID, 10)
	}
	if c.Genesis != (common.Hash{}) {
		genesis = ", genesis " + c.Genesis.Hex()
	}
	return id + genesis
}

func printEra1(out io.Writer, path string) error {
	e, err := archive.Open(path)
	if err != nil {
		return err
	}
	defer e.Close() //nolint:errcheck // only read from
	first, last := e.Start(), e.Start()+uint64(e.Count())-1
	head, err := e.Block(first)
	if err != nil {
		return err
	}
	tail, err := e.Block(last)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "File\t%s\nFormat\tera1\nBlocks\t%d\n", path, e.Count())
	fmt.Fprintf(w, "From\t%d, parent %v\nTo\t%d, hash %v\n", first, head.Header.ParentHash, last, tail.Hash)
	fmt.Fprintf(w, "Root\t%v\n", e.Accumulator())
	return w.Flush()
}

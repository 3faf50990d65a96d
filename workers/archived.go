package workers

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/archive"
	"github.com/ommer/ommer/workers/upstream"
)

// Archived is a Source that looks into history files before it asks another one. What
// the files say is exact: of a number that they cover, the uncles or that there are
// none; of a hash that they hold, the uncles. A hash that they do not hold may be that
// of a block without uncles, and what a tag means is for nodes to say.
//
// Block reads from files that are mapped into memory, and may wait for the disk.
type Archived struct {
	files   *archive.Set
	next    Source // nil: there are the files only
	log     *slog.Logger
	damage  sync.Once // is logged once; a metric counts it
	answers *prometheus.CounterVec
}

// ArchivedConfig is what an Archived is made of.
type ArchivedConfig struct {
	// Files are asked first. Required; they must stay open as long as Block may run.
	Files *archive.Set
	// Next is asked for what the files do not say. Default: nothing.
	Next Source
	// Logger gets a line when a file turns out to be damaged. Default: none.
	Logger *slog.Logger
	// Registerer takes the metrics. Default: none.
	Registerer prometheus.Registerer
}

// How the files were of use, as the values of a label.
const (
	fromArchive   = "archive"  // they had the block
	fromElsewhere = "upstream" // it was asked of Next
	fromNowhere   = "none"     // there is no Next
	fromDamage    = "damaged"  // they could not be read, on top of one of the others
)

// NewArchived returns an Archived.
func NewArchived(c ArchivedConfig) (*Archived, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	a := &Archived{files: c.Files, next: c.Next, log: c.Logger, answers: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ommer_workers_blocks_total",
		Help: "Blocks by where they were looked up; damaged are those that the archive could not read.",
	}, []string{"source"})}
	for _, source := range []string{fromArchive, fromElsewhere, fromNowhere, fromDamage} {
		a.answers.WithLabelValues(source) // there from the start
	}
	if c.Registerer == nil {
		return a, nil
	}
	gauge := func(name, help string, of float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return of })
	}
	for _, m := range []prometheus.Collector{
		a.answers,
		gauge("ommer_archive_blocks", "Blocks of whose uncles the archive knows.", float64(c.Files.Blocks())),
		gauge("ommer_archive_uncles", "Uncles in the archive.", float64(c.Files.Count())),
		gauge("ommer_archive_bytes", "Bytes of the files of the archive.", float64(c.Files.Size())),
	} {
		if err := c.Registerer.Register(m); err != nil {
			return nil, fmt.Errorf("workers: metrics: %w", err)
		}
	}
	return a, nil
}

// Block returns a block from the files, without its header, or else from Next.
func (a *Archived) Block(ctx context.Context, s schema.Selector) (b upstream.Block, found bool, err error) {
	b, held, err := a.lookup(s)
	if held {
		a.answers.WithLabelValues(fromArchive).Inc()
		return b, true, nil
	}
	if err != nil {
		a.answers.WithLabelValues(fromDamage).Inc()
		a.damage.Do(func() { a.log.Error("the archive cannot be read; build it anew", "block", s.String(), "err", err) })
	}
	if a.next != nil {
		a.answers.WithLabelValues(fromElsewhere).Inc()
		return a.next.Block(ctx, s)
	}
	a.answers.WithLabelValues(fromNowhere).Inc()
	if err != nil {
		return upstream.Block{}, false, fmt.Errorf("%w: %w", upstream.ErrFailed, err)
	}
	// Tags too: nobody here will ever tell which block it is, so it is of no use to try
	// again, which other reasons invite to.
	return upstream.Block{}, false, fmt.Errorf("%w: the archive does not have it, and there is no node", upstream.ErrPruned)
}

// lookup looks into the files.
func (a *Archived) lookup(s schema.Selector) (b upstream.Block, held bool, err error) {
	var list []byte
	switch s.Kind() {
	case schema.ByNumber:
		list, held, err = a.files.ByNumber(nil, s.Number())
	case schema.ByHash:
		list, held, err = a.files.ByHash(nil, common.Hash(s.Hash()))
	}
	if err != nil || !held {
		return b, false, err
	}
	if b.Uncles, err = archive.DecodeUncles(list); err != nil {
		return b, false, err
	}
	b.Final = true // history was final when it was put into a file
	return b, true, nil
}

// View is that of Next.
func (a *Archived) View(now time.Time) *upstream.View {
	if v, ok := a.next.(Viewer); ok {
		return v.View(now)
	}
	return nil
}

// Ready is that of Next: the files alone are always ready, but where there are to be
// nodes, a worker without them is not what was asked for.
func (a *Archived) Ready() error {
	if a.next != nil {
		return a.next.Ready()
	}
	return nil
}

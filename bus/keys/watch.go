package keys

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// openTimeout bounds each question to JetStream.
	openTimeout = 2 * time.Second
	// loadStall is how long a load may deliver nothing before it is begun anew.
	loadStall = 5 * time.Second
	// lateAfter is how long after a record was written the watch may take to deliver it. It
	// takes less than a millisecond, on a cluster a few.
	lateAfter = 250 * time.Millisecond
	// retryPause is the wait between attempts to watch. The first attempts after a
	// server is lost fail while JetStream elects a leader, and a revocation must
	// be seen within a second.
	retryPause = 100 * time.Millisecond
)

// errEnded: the watch has to be started anew for no fault of its own.
var errEnded = errors.New("watch ended")

// run watches the bucket until ctx is done. The library's watcher takes up to 20
// seconds to find out that its server is gone, so each new connection gets a new
// watch. In a cluster the server that delivers may be another than the one of the
// connection; so a watch that is late with what was seen being written is given up too.
func (d *Directory) run(ctx context.Context) {
	defer d.listen()()
	defer d.cfg.Link.Watch(func(up bool) {
		if up {
			select {
			case d.again <- struct{}{}:
			default: // it will be seen
			}
		}
	})()
	pause := time.NewTimer(0)
	defer pause.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.again:
		case <-pause.C:
		}
		err := d.cfg.Link.NATS().LastError()
		if d.cfg.Link.Up() {
			err = d.follow(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		pause.Reset(retryPause)
		if errors.Is(err, errEnded) {
			pause.Reset(0)
			said = ""
			continue
		}
		if text := d.explain(err); text != said && d.cfg.Link.Up() { // once per reason; a link speaks for itself
			said = text
			d.log.Warn("API keys cannot be read", "reason", text)
		}
	}
}

// listen notes that a record is written, before the bucket has it and whether or not it
// takes it. The returned func ends that.
func (d *Directory) listen() (cancel func()) {
	sub, err := d.cfg.Link.NATS().Subscribe("$KV."+bucket+".*", func(*nats.Msg) {
		select {
		case d.written <- struct{}{}:
		default: // it will be seen
		}
	})
	if err != nil {
		return func() {} // the connection was closed
	}
	return func() { _ = sub.Unsubscribe() } // an error means the same
}

// explain keeps why the directory is not ready and returns it.
func (d *Directory) explain(err error) string {
	text := d.cfg.Link.Missing()
	switch {
	case text != "":
		text = "API keys: " + text
	case errors.Is(err, jetstream.ErrBucketNotFound):
		text = "the bucket " + bucket + " does not exist; creating a key makes it"
	default:
		text = fmt.Sprintf("API keys: %v", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.missing = text
	return text
}

// follow reads the whole bucket and then every change, until there is a reason to
// begin anew.
func (d *Directory) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, last, err := d.watch(ctx)
	if err != nil {
		return err
	}
	// Stopping asks the server to forget the consumer, which takes long when it is
	// gone. The next watch does not wait for it.
	defer d.wg.Go(func() { end(w) })

	d.load++
	d.full = false
	loading := true
	stall := time.NewTimer(loadStall)
	defer stall.Stop()
	resync := time.NewTimer(d.cfg.Resync)
	defer resync.Stop()
	late := time.NewTimer(lateAfter)
	late.Stop()
	defer late.Stop()
	owing := false // something was written, and nothing was delivered since
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.again:
			return errEnded
		case <-resync.C:
			return errEnded
		case <-d.written:
			if !owing {
				owing = true
				late.Reset(lateAfter)
			}
		case <-late.C:
			return errEnded
		case <-stall.C:
			if loading {
				return errors.New("the bucket delivers nothing")
			}
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return errors.New("the watch was closed")
			case e != nil:
				owing = false
				late.Stop()
				d.apply(e)
				if loading {
					stall.Reset(loadStall)
				}
			case loading:
				loading = false
				d.loaded(last)
			}
		}
	}
}

// watch starts a watcher. Last is the bucket's last revision before it.
func (d *Directory) watch(ctx context.Context) (w jetstream.KeyWatcher, last uint64, err error) {
	js, err := jetstream.New(d.cfg.Link.NATS(), jetstream.WithDefaultTimeout(openTimeout))
	if err != nil {
		return nil, 0, err
	}
	short, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	kv, err := js.KeyValue(short, bucket)
	if err != nil {
		return nil, 0, explain(err)
	}
	status, err := kv.Status(short)
	if err != nil {
		return nil, 0, err
	}
	if s, ok := status.(*jetstream.KeyValueBucketStatus); ok {
		info := s.StreamInfo()
		last = info.State.LastSeq
		d.epoch(info.Created)
	}
	// The library asks without a time-out of ours, and a server that ends has not answered:
	// ending the context ends the asking. It is the watch's too, so it may not end later.
	ctx, cancel = context.WithCancel(ctx)
	asking := time.AfterFunc(openTimeout, cancel)
	w, err = kv.WatchAll(ctx)
	if !asking.Stop() && err == nil {
		end(w)
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel()
		return nil, 0, err
	}
	return w, last, nil
}

// epoch notices a bucket that was deleted and made anew: its revisions begin at 1,
// and what is known counts as older than all of them.
func (d *Directory) epoch(created time.Time) {
	if created.Equal(d.created) {
		return
	}
	d.created = created
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.entries {
		if e.revision != static {
			e.revision = 0
		}
	}
}

// apply takes one record, or the end of one. A replica that lags may deliver what
// is older than what is known: the revision decides.
func (d *Directory) apply(e jetstream.KeyValueEntry) {
	h, ok := parseHash(e.Key())
	if !ok {
		d.metrics.skipped(skipGarbage)
		return
	}
	usable, rec := false, Record{ID: h.id()}
	if e.Operation() == jetstream.KeyValuePut {
		r, err := readRecord(h, e.Value())
		if err != nil {
			// A good key whose record was overwritten by something else is good no
			// longer: what cannot be read must not let anyone in.
			d.metrics.skipped(skipGarbage)
			d.log.Warn("API key refused: its record cannot be read", "key", h.id(), "reason", err)
		} else {
			usable, rec = r.Usable(), r
		}
	}
	changed := d.set(h, rec, usable, e.Revision())
	switch {
	case changed == nil:
		return
	case changed.Revoked():
		d.metrics.revoked.Inc()
		d.log.Info("API key revoked", "key", changed.id)
	default:
		d.log.Info("API key good for other origins or networks", "key", changed.id)
	}
	d.cfg.OnChange(changed)
}

// set makes the entry what the given revision says, and returns it when OnChange
// is to be told.
func (d *Directory) set(h hash, rec Record, usable bool, revision uint64) (changed *Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.entries[h]
	if old != nil {
		old.seen = d.load
		if revision <= old.revision {
			return nil
		}
		old.revision = revision
		switch {
		case !old.Revoked() && !usable:
			old.revoked.Store(true)
			return old
		case !usable:
			return nil
		case !old.Revoked():
			if old.apply(rec.Settings) {
				return old
			}
			return nil
		}
	}
	if old == nil && len(d.entries) >= d.cfg.Max {
		d.metrics.skipped(skipFull)
		if !d.full {
			d.full = true
			d.log.Error("more API keys than fit in memory, the rest is refused", "max", d.cfg.Max)
		}
		return nil
	}
	// Ends of keys are kept too, so that an older record cannot bring one back.
	e := &Entry{id: rec.ID, name: rec.Name, revision: revision, seen: d.load}
	e.revoked.Store(!usable)
	e.apply(rec.Settings)
	d.entries[h] = e
	return nil
}

// loaded ends a load: what the bucket no longer has, although it was at a later
// revision, is gone.
func (d *Directory) loaded(last uint64) {
	var ended []*Entry
	d.mu.Lock()
	for h, e := range d.entries {
		if e.seen == d.load || e.revision == static || e.revision > last {
			continue
		}
		delete(d.entries, h)
		if !e.revoked.Swap(true) {
			ended = append(ended, e)
		}
	}
	n := len(d.entries)
	d.mu.Unlock()
	for _, e := range ended {
		d.metrics.revoked.Inc()
		d.log.Info("API key gone from the bucket", "key", e.id)
		d.cfg.OnChange(e)
	}
	d.metrics.loads.Inc()
	if !d.ready.Swap(true) {
		d.log.Info("API keys read", "keys", n)
	}
}

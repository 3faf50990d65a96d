package keys

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/ommer/ommer/bus"
)

// bucket is the name of the JetStream key-value bucket. Its keys are the hex
// SHA-256 of API keys, its values records.
const bucket = "ommer_keys"

// updateTries is how often a change is tried against others who write the same
// record.
const updateTries = 8

// Errors of the registry.
var (
	ErrNotFound  = errors.New("no such API key")
	ErrAmbiguous = errors.New("several API keys have this name")
	ErrConflict  = errors.New("the record is being changed by somebody else")
	ErrRevoked   = errors.New("the API key is revoked for good: create another")
)

// Registry is the operator's side of the bucket. Its methods may be called from any
// goroutine, and by several processes at once.
type Registry struct {
	kv jetstream.KeyValue
}

// RegistryConfig says where the bucket is.
type RegistryConfig struct {
	Link *bus.Link
	// Replicas is how many servers keep the bucket when it has to be made: 1, 3 or 5;
	// 0 means three where there are as many, else one. An existing bucket stays as it is.
	Replicas int
}

// Open opens the bucket and makes it when it is missing. It needs a connection.
func Open(ctx context.Context, cfg RegistryConfig) (*Registry, error) {
	js, err := jetstream.New(cfg.Link.NATS())
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	kv, err := bucketOf(ctx, js)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = create(ctx, js, cmp.Or(cfg.Replicas, 3))
		if cfg.Replicas == 0 && tooFewServers(err) {
			kv, err = create(ctx, js, 1)
		}
		if errors.Is(err, jetstream.ErrBucketExists) { // somebody else was faster
			kv, err = js.KeyValue(ctx, bucket)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("keys: opening the bucket %s: %w", bucket, explain(err))
	}
	return &Registry{kv}, nil
}

// explain says what may be wrong with a server that keeps nothing.
func explain(err error) error {
	if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrJetStreamNotEnabled) {
		return fmt.Errorf("%w: no JetStream answers; is nats-server started with -js, and has a cluster its leader?", err)
	}
	return err
}

// bucketOf opens the bucket.
func bucketOf(ctx context.Context, js jetstream.JetStream) (kv jetstream.KeyValue, err error) {
	err = insist(ctx, func(ctx context.Context) error {
		kv, err = js.KeyValue(ctx, bucket)
		return err
	})
	return kv, err
}

// insist asks again what got no answer: of a cluster's server that ends none comes, and
// the others answer once they have chosen a leader.
func insist(ctx context.Context, ask func(context.Context) error) error {
	for {
		short, cancel := context.WithTimeout(ctx, openTimeout)
		err := ask(short)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return err
		}
	}
}

func create(ctx context.Context, js jetstream.JetStream, replicas int) (jetstream.KeyValue, error) {
	return js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket:       bucket,
		Description:  "API keys by their SHA-256",
		History:      1, // a directory needs the state of things, and nothing reads the past
		MaxValueSize: maxRecord,
		Replicas:     replicas,
		Storage:      jetstream.FileStorage,
	})
}

// tooFewServers says whether a bucket was not made because it cannot have so many
// replicas: the codes are those of nats-server's errors.json.
func tooFewServers(err error) bool {
	const noPeers, notClustered = 10005, 10074
	e, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (e.ErrorCode == noPeers || e.ErrorCode == notClustered)
}

// Create makes a key with a name and settings. The key is in no other place than the first result, and
// cannot be shown again.
func (r *Registry) Create(ctx context.Context, name string, s Settings) (string, Record, error) {
	key := New()
	h := hash(sha256.Sum256([]byte(key)))
	rec := Record{ID: h.id(), Name: name, State: Active, Created: time.Now().UTC().Truncate(time.Second), Settings: s}
	if err := rec.validate(); err != nil {
		return "", Record{}, err
	}
	value, err := json.Marshal(&rec)
	if err != nil {
		return "", Record{}, fmt.Errorf("keys: %w", err)
	}
	tries := 0
	err = insist(ctx, func(ctx context.Context) error {
		tries++
		_, err := r.kv.Create(ctx, h.String(), value)
		if tries > 1 && errors.Is(err, jetstream.ErrKeyExists) {
			return nil // the try before was taken: nobody else has this key
		}
		return err
	})
	if err != nil {
		return "", Record{}, fmt.Errorf("keys: writing the record: %w", err)
	}
	return key, rec, nil
}

// List returns all records, oldest first. What is no record is left out.
func (r *Registry) List(ctx context.Context) ([]Record, error) {
	var all []Record
	err := r.walk(ctx, func(_ hash, rec Record) { all = append(all, rec) })
	slices.SortFunc(all, func(a, b Record) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
	})
	return all, err
}

// Get returns the record with that ID, or the one with that name. A name that
// several have is refused with ErrAmbiguous, and the text lists their IDs; those
// revoked do not count when one is active.
func (r *Registry) Get(ctx context.Context, idOrName string) (Record, error) {
	_, rec, err := r.find(ctx, idOrName)
	return rec, err
}

// Revoke ends a key for good, named as for Get, and returns its record. To revoke
// a revoked key again changes nothing.
func (r *Registry) Revoke(ctx context.Context, idOrName string) (Record, error) {
	return r.update(ctx, idOrName, func(rec *Record) error {
		if rec.State == Revoked {
			return errUnchanged
		}
		rec.State, rec.Revoked = Revoked, time.Now().UTC().Truncate(time.Second)
		return nil
	})
}

// Set changes the settings of a key, named as for Get, and returns its record.
// Change is given those that the key has; it may be called again when somebody else
// changes them at the same time. A key that is revoked is refused with ErrRevoked.
func (r *Registry) Set(ctx context.Context, idOrName string, change func(*Settings)) (Record, error) {
	return r.update(ctx, idOrName, func(rec *Record) error {
		if rec.State == Revoked {
			return ErrRevoked
		}
		change(&rec.Settings)
		return rec.validate()
	})
}

// errUnchanged is what the change of an update returns when there is none.
var errUnchanged = errors.New("unchanged")

// update changes a record and returns it.
func (r *Registry) update(ctx context.Context, idOrName string, change func(*Record) error) (Record, error) {
	h, _, err := r.find(ctx, idOrName)
	if err != nil {
		return Record{}, err
	}
	for range updateTries {
		var e jetstream.KeyValueEntry
		err := insist(ctx, func(ctx context.Context) (err error) {
			e, err = r.kv.Get(ctx, h.String())
			return err
		})
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			return Record{}, ErrNotFound
		}
		if err != nil {
			return Record{}, fmt.Errorf("keys: reading the record: %w", err)
		}
		rec, err := readRecord(h, e.Value())
		if err != nil {
			return Record{}, fmt.Errorf("keys: %w", err)
		}
		switch err := change(&rec); {
		case errors.Is(err, errUnchanged):
			return rec, nil
		case err != nil:
			return Record{}, err
		}
		value, err := json.Marshal(&rec)
		if err != nil {
			return Record{}, fmt.Errorf("keys: %w", err)
		}
		// Tried again after no answer, a write that was taken is in its own way: the next
		// round reads it.
		err = insist(ctx, func(ctx context.Context) error {
			_, err := r.kv.Update(ctx, h.String(), value, e.Revision())
			return err
		})
		if err == nil {
			return rec, nil
		}
		if !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			return Record{}, fmt.Errorf("keys: writing the record: %w", err)
		}
	}
	return Record{}, ErrConflict
}

// find looks for an ID first, then for a name.
func (r *Registry) find(ctx context.Context, idOrName string) (h hash, rec Record, err error) {
	type match struct {
		hash hash
		rec  Record
	}
	var byID, active, revoked []match
	err = r.walk(ctx, func(h hash, rec Record) {
		switch {
		case rec.ID == idOrName:
			byID = append(byID, match{h, rec})
		case rec.Name != idOrName:
		case rec.Usable():
			active = append(active, match{h, rec})
		default:
			revoked = append(revoked, match{h, rec})
		}
	})
	if err != nil {
		return h, rec, err
	}
	for _, found := range [][]match{byID, active, revoked} {
		switch len(found) {
		case 0:
			continue
		case 1:
			return found[0].hash, found[0].rec, nil
		}
		const show = 10
		ids := make([]string, 0, show)
		for _, m := range found[:min(len(found), show)] {
			ids = append(ids, m.rec.ID)
		}
		return h, rec, fmt.Errorf("%w (%d), name one by its ID: %s", ErrAmbiguous, len(found), strings.Join(ids, " "))
	}
	return h, rec, ErrNotFound
}

// walk calls f for every record, in one pass over the bucket.
func (r *Registry) walk(ctx context.Context, f func(hash, Record)) error {
	w, err := r.kv.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return fmt.Errorf("keys: reading the bucket: %w", err)
	}
	defer end(w)
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("keys: reading the bucket: %w", ctx.Err())
		case e, ok := <-w.Updates():
			if !ok {
				return errors.New("keys: reading the bucket: the connection was closed")
			}
			if e == nil { // that was all
				return nil
			}
			h, ok := parseHash(e.Key())
			if !ok {
				continue
			}
			if rec, err := readRecord(h, e.Value()); err == nil {
				f(h, rec)
			}
		}
	}
}

// end stops a watcher and takes what it still delivers: it would wait for a reader
// for ever.
func end(w jetstream.KeyWatcher) {
	// An error means that the subscription is gone, and its channel closed or about
	// to be.
	_ = w.Stop()
	for range w.Updates() {
	}
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"text/tabwriter"
	"time"

	"github.com/ommer/ommer/bus"
	registry "github.com/ommer/ommer/bus/keys"
)

// keys are the commands that manage API keys.
type keys struct {
	Create createKey `cmd:"" help:"Make a key. It is the last line of the output and is never shown again."`
	List   listKeys  `cmd:"" help:"List all keys by their ID; the keys themselves are not kept."`
	Show   showKey   `cmd:"" help:"Show what is known of one key."`
	Set    setKey    `cmd:"" help:"Change what a key may do. Edges and open WebSockets follow at once."`
	Revoke revokeKey `cmd:"" help:"Refuse a key from now on. Its open WebSockets are closed."`
}

// keyBus is how the commands reach the registry.
type keyBus struct {
	Bus bus.Flags `embed:"" group:"NATS:"`
}

// keysName begins the reply subjects of the commands, each random beside that: a name
// that does not change is one that a user can be allowed.
const keysName = "keys"

// keyTimeout bounds a command as a whole.
const keyTimeout = 10 * time.Second

// with calls f with the registry.
func (k keyBus) with(f func(ctx context.Context, r *registry.Registry) error) error {
	link, err := bus.Dial(k.Bus.Link(keysName, slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer link.Close()
	if missing := link.Missing(); missing != "" {
		return errors.New(missing + " (--nats says where)")
	}
	ctx, cancel := context.WithTimeout(context.Background(), keyTimeout)
	defer cancel()
	r, err := registry.Open(ctx, registry.RegistryConfig{Link: link})
	if err != nil {
		return err
	}
	return f(ctx, r)
}

type createKey struct {
	keyBus   `embed:""`
	Name     string `required:"" placeholder:"NAME" help:"Who or what the key is for, 1 to 64 printable characters."`
	keyRules `embed:"" group:"What the key may do:"`
}

// Run implements the command.
func (c *createKey) Run(std streams) error {
	var settings registry.Settings
	c.change(&settings)
	if err := settings.Validate(); err != nil {
		return wrongRules(err)
	}
	return c.with(func(ctx context.Context, r *registry.Registry) error {
		key, record, err := r.Create(ctx, c.Name, settings)
		if err != nil {
			return err
		}
		fmt.Fprintf(std.err, "Created key %s for %q. Keep it safe: it is not shown again.\n", record.ID, record.Name)
		fmt.Fprintln(std.out, key)
		return nil
	})
}

type listKeys struct {
	keyBus `embed:""`
}

// Run implements the command.
func (l *listKeys) Run(std streams) error {
	return l.with(func(ctx context.Context, r *registry.Registry) error {
		records, err := r.List(ctx)
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tSTATE\tCREATED\tNAME")
		for _, rec := range records {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", rec.ID, state(rec), stamp(rec.Created), rec.Name)
		}
		return w.Flush()
	})
}

type showKey struct {
	keyBus `embed:""`
	Key    string `arg:"" name:"id-or-name" help:"ID of the key, or its name."`
}

// Run implements the command.
func (s *showKey) Run(std streams) error {
	return s.with(func(ctx context.Context, r *registry.Registry) error {
		rec, err := r.Get(ctx, s.Key)
		if err != nil {
			return err
		}
		return printKey(std.out, rec)
	})
}

// printKey writes all that is known of a key.
func printKey(out io.Writer, rec registry.Record) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "ID\t%s\nName\t%s\nState\t%s\nCreated\t%s\n", rec.ID, rec.Name, state(rec), stamp(rec.Created))
	if !rec.Revoked.IsZero() {
		fmt.Fprintf(w, "Revoked\t%s\n", stamp(rec.Revoked))
	}
	printRules(w, rec.Settings)
	return w.Flush()
}

type revokeKey struct {
	keyBus `embed:""`
	Key    string `arg:"" name:"id-or-name" help:"ID of the key, or its name."`
}

// Run implements the command.
func (k *revokeKey) Run(std streams) error {
	return k.with(func(ctx context.Context, r *registry.Registry) error {
		rec, err := r.Revoke(ctx, k.Key)
		if err != nil {
			return err
		}
		fmt.Fprintf(std.err, "Revoked key %s (%q).\n", rec.ID, rec.Name)
		return nil
	})
}

func state(r registry.Record) registry.State {
	if r.Usable() {
		return registry.Active
	}
	return r.State
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// devKey returns the key that serve accepts beside those of the registry: the
// given one, or else one that is made once and kept in file, so that the address
// that a developer has pasted somewhere stays good.
func devKey(given registry.Static, file string) (string, error) {
	if given != "" {
		return string(given), nil
	}
	text, err := os.ReadFile(file)
	switch {
	case err == nil:
		key := registry.Static("")
		if err := key.UnmarshalText(bytes.TrimSpace(text)); err != nil {
			return "", fmt.Errorf("%s: %w; delete it to have another made", file, err)
		}
		return string(key), nil
	case !errors.Is(err, os.ErrNotExist):
		return "", err
	}
	key := registry.New()
	return key, os.WriteFile(file, []byte(key+"\n"), 0o600)
}

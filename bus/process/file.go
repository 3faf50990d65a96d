package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
)

// file is a parsed configuration file: flag names without dashes as keys, for
// example
//
//	https: ":8443"
//	nats: [nats://n1:4222, nats://n2:4222]
//
// It is a kong.Resolver.
type file struct {
	path   string
	values map[string]any
}

var _ kong.Resolver = (*file)(nil)

var mapperValue = reflect.TypeFor[kong.MapperValue]()

func parseFile(path string, text []byte) (*file, error) {
	f := &file{path: path}
	d := yaml.NewDecoder(bytes.NewReader(text), yaml.DisallowUnknownField())
	if err := d.Decode(&f.values); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %s", path, strings.TrimSpace(yaml.FormatError(err, false, true)))
	}
	return f, nil
}

// Validate refuses keys that are no flag of the program.
func (f *file) Validate(app *kong.Application) error {
	var known []string
	_ = kong.Visit(app, func(n kong.Visitable, next kong.Next) error {
		if flag, ok := n.(*kong.Flag); ok && flag.Name != "help" && flag.Name != "version" && flag.Name != "config" {
			known = append(known, flag.Name)
		}
		return next(nil)
	})
	slices.Sort(known)
	known = slices.Compact(known)
	for key := range f.values {
		if !slices.Contains(known, key) {
			return fmt.Errorf("%s: unknown key %q: it takes %s", f.path, key, words(known))
		}
	}
	return nil
}

// Resolve gives a flag its value from the file, unless the environment has one. A flag
// that decodes for itself gets the value as YAML has it.
func (f *file) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	v, ok := f.values[flag.Name]
	if !ok || envSet(flag) {
		return nil, nil //nolint:nilnil // kong's way to say "no value here"
	}
	if v != nil && flag.Target.IsValid() && reflect.PointerTo(flag.Target.Type()).Implements(mapperValue) {
		return v, nil
	}
	switch v := v.(type) {
	case []any: // kong takes lists as one string
		items := make([]string, len(v))
		for i, item := range v {
			switch item.(type) {
			case map[string]any, []any:
				return nil, fmt.Errorf("%s: %s[%d]: want a single value", f.path, flag.Name, i)
			}
			items[i] = fmt.Sprint(item)
		}
		return strings.Join(items, ","), nil
	case map[string]any, nil:
		return nil, fmt.Errorf("%s: %s takes a single value or a list", f.path, flag.Name)
	default:
		return fmt.Sprint(v), nil
	}
}

package process

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"runtime/debug"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// Options are the flags that every process has. Embed them in a command's struct.
type Options struct {
	Config    string        `placeholder:"FILE" type:"existingfile" help:"YAML file with any of these flags as keys. Flags win over the environment, the environment over the file."`
	Admin     Addr          `placeholder:"ADDR" default:"${admin}" help:"Listen here for /livez, /readyz, /metrics and /debug/pprof/, plain HTTP; keep it private. Default ${admin}, empty for none."`
	LogLevel  string        `enum:"debug,info,warn,error" default:"info" help:"Least severe level to log: debug, info, warn or error."`
	LogFormat string        `enum:"text,json" default:"text" help:"How to write log lines: text or json."`
	StopAfter time.Duration `default:"20s" help:"How long a graceful stop may take as a whole before what is left is cut off."`
}

// Logger makes the logger that the options ask for. Lines go to w.
func (o Options) Logger(w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(o.LogLevel)) // the flag is an enum; its zero value is info
	h := &slog.HandlerOptions{Level: level}
	if o.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, h))
	}
	return slog.New(slog.NewTextHandler(w, h))
}

// Usage is a mistake in the command line, the environment or the file. Main
// functions exit with 2 for it.
type Usage struct{ Err error }

// Error returns the mistake in words.
func (u Usage) Error() string { return u.Err.Error() }

// Unwrap returns what kong reported.
func (u Usage) Unwrap() error { return u.Err }

// ErrHelp is returned by Parse after --help or --version was answered: there is
// nothing left to do.
var ErrHelp = errors.New("help or version was printed")

// Program describes a binary to Parse.
type Program struct {
	Name, Description string
	AdminDefault      string // default of --admin
	Out, Err          io.Writer
	Vars              kong.Vars // further variables for help texts
}

// Parse fills the struct that cli points to from args, the environment
// (OMMER_<FLAG>) and the file of --config, in this order of precedence.
func Parse(cli any, args []string, p Program) (*kong.Context, error) {
	exited := false
	vars := kong.Vars{"admin": p.AdminDefault, "version": p.Name + " " + Version()}
	k, err := kong.New(cli,
		kong.Name(p.Name), kong.Description(p.Description),
		kong.Writers(p.Out, p.Err), kong.Exit(func(int) { exited = true }),
		kong.DefaultEnvars("OMMER"), vars.CloneWith(p.Vars),
		kong.WithBeforeResolve(addFile),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 100}),
	)
	if err != nil {
		return nil, err
	}
	ctx, err := k.Parse(args)
	if err == nil {
		err = notNegative(ctx)
	}
	switch {
	case exited:
		return nil, ErrHelp
	case err != nil:
		text := fromEnv.ReplaceAllString(err.Error(), "(from the environment's $1)")
		return nil, Usage{fmt.Errorf("%s\nTry '%s --help'", text, p.Name)}
	default:
		return ctx, nil
	}
}

// notNegative refuses negative numbers and times: no flag has a use for them.
func notNegative(ctx *kong.Context) error {
	for _, f := range ctx.Flags() {
		if v := reflect.ValueOf(ctx.FlagValue(f)); v.IsValid() && v.CanInt() && v.Int() < 0 {
			return fmt.Errorf("--%s: must not be negative", f.Name)
		}
	}
	return nil
}

// ExitCode is what a main function exits with for the error that ended it,
// after saying it on w.
func ExitCode(w io.Writer, name string, err error) int {
	var usage Usage
	switch {
	case err == nil, errors.Is(err, ErrHelp):
		return 0
	case errors.As(err, &usage):
		fmt.Fprintf(w, "%s: %v\n", name, err)
		return 2
	default:
		fmt.Fprintf(w, "%s: %v\n", name, err)
		return 1
	}
}

// version is set by the linker: -X github.com/ommer/ommer/bus/process.version=v1.2.3.
var version string

// Version is the release, or what the Go build recorded of the source.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "devel-" + s.Value[:min(12, len(s.Value))]
		}
	}
	return "devel"
}

// addFile makes the file that --config names a source of flags.
func addFile(ctx *kong.Context) error {
	for _, f := range ctx.Flags() {
		if f.Name != "config" {
			continue
		}
		path, _ := ctx.FlagValue(f).(string)
		if path == "" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("--config: %w", err)
		}
		file, err := parseFile(path, text)
		if err != nil {
			return err
		}
		if err := file.Validate(ctx.Model); err != nil {
			return err
		}
		ctx.AddResolver(file)
	}
	return nil
}

func envSet(f *kong.Flag) bool {
	for _, name := range f.Envs {
		if _, ok := os.LookupEnv(name); ok {
			return true
		}
	}
	return false
}

// words joins a list for people: "a, b or c".
func words(list []string) string {
	if n := len(list); n > 1 {
		return strings.Join(list[:n-1], ", ") + " or " + list[n-1]
	}
	return strings.Join(list, "")
}

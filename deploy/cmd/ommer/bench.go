package main

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/ommer/ommer/bus/process"
	"github.com/ommer/ommer/deploy/load"
)

// bench is a load on a service as its clients see it.
type bench struct {
	URLs []benchURL `arg:"" name:"url" help:"Where clients ask, with the API key: https://HOST[:PORT]/v3/KEY, wss://HOST/ws/v3/KEY, or http:// and ws://. Connections go to several in turn."`

	Config   string `env:"OMMER_BENCH_CONFIG" placeholder:"FILE" type:"existingfile" help:"YAML file with any of these flags as keys. Flags win over the environment, the environment over the file."`
	KeysFile string `env:"OMMER_BENCH_KEYS_FILE" placeholder:"FILE" type:"existingfile" help:"API keys, one on each line (# begins a comment line), that take the place of KEY in the URLs, in turn."`

	Connections int           `env:"OMMER_BENCH_CONNECTIONS" default:"64" help:"Connections, up to 1000000. Default ${default}."`
	Rate        float64       `env:"OMMER_BENCH_RATE" placeholder:"N" help:"Calls per second, all together, on a schedule (an open loop): a request that has to wait counts as slow. Default: a closed loop, each connection asks when it has its answer."`
	InFlight    int           `env:"OMMER_BENCH_IN_FLIGHT" default:"1" help:"Requests of each WebSocket that wait for their answer, up to 1024. Default ${default}."`
	Batch       int           `env:"OMMER_BENCH_BATCH" placeholder:"N" help:"Calls in one batch, up to 1000. Default: single calls."`
	Ramp        time.Duration `env:"OMMER_BENCH_RAMP" default:"0s" help:"Time over which connections are opened, and --rate is reached. Default: as fast as they can be."`
	Warmup      time.Duration `env:"OMMER_BENCH_WARMUP" default:"1s" help:"Time from when all are open until the measured time. Default ${default}."`
	Duration    time.Duration `env:"OMMER_BENCH_DURATION" default:"10s" help:"Measured time. Default ${default}."`
	Timeout     time.Duration `env:"OMMER_BENCH_TIMEOUT" default:"15s" help:"For opening a connection, and for each request. Default ${default}."`

	Method    string      `env:"OMMER_BENCH_METHOD" enum:"number,hash,mix" default:"number" help:"Ask for uncles by the block's number (number), by its hash (hash), or both in turn (mix). Default ${default}."`
	Blocks    *load.Range `env:"OMMER_BENCH_BLOCKS" placeholder:"FROM-TO" help:"Ask for every block of this range, whether it has uncles or not; by hash: look for uncles there. Default: uncles that are looked for where mainnet, Sepolia and the chains of Ommer have some."`
	Index     uint64      `env:"OMMER_BENCH_INDEX" default:"0" help:"Index of the uncles of --blocks. Default ${default}."`
	Questions string      `env:"OMMER_BENCH_QUESTIONS" placeholder:"FILE" type:"existingfile" help:"Ask these: an array of parameters in JSON on each line, for example [\"0x29c\",\"0x0\"]."`

	Verify   bool     `env:"OMMER_BENCH_VERIFY" help:"Recompute the hash of each uncle from its fields. Ids are always checked."`
	Gzip     bool     `env:"OMMER_BENCH_GZIP" help:"Accept compressed answers over HTTP."`
	CA       string   `name:"ca" env:"OMMER_BENCH_CA" placeholder:"FILE" type:"existingfile" help:"Certificates to trust, PEM. Default: those of the system."`
	Insecure bool     `env:"OMMER_BENCH_INSECURE" help:"Do not verify the server's certificate."`
	Source   []net.IP `env:"OMMER_BENCH_SOURCE" placeholder:"ADDR,..." help:"Local addresses to connect from, in turn: each has some 28,000 ports for one server. On Linux all of 127.0.0.0/8 is local."`

	MaxErrorRatio float64 `env:"OMMER_BENCH_MAX_ERROR_RATIO" default:"0" help:"Exit with 1 if a larger part of the calls and connections failed, 0 to 1. A wrong answer always does. Default ${default}."`
	Histogram     bool    `env:"OMMER_BENCH_HISTOGRAM" help:"Print the distribution of latencies in ms as well."`
	JSON          string  `name:"json" env:"OMMER_BENCH_JSON" placeholder:"FILE" help:"Write the report there as JSON, - for standard output."`
}

// benchURL is a URL as an argument. Its errors do not quote it.
type benchURL struct{ load.Endpoint }

// UnmarshalText reads the URL.
func (u *benchURL) UnmarshalText(text []byte) (err error) {
	u.Endpoint, err = load.ParseURL(string(text))
	return err
}

// Help is the end of the help text.
func (b *bench) Help() string {
	return `Against what "make run" serves:

  ommer bench http://127.0.0.1:8080/v3/KEY
  ommer bench --rate 2000 --connections 500 --duration 30s ws://127.0.0.1:8080/ws/v3/KEY

Arguments can be read by everybody on this machine; to keep keys out of them, write KEY as
above and give --keys-file. The result goes to standard output, progress to standard error.
Ctrl-C ends the measured time early.`
}

// Validate says what cannot be meant.
func (b *bench) Validate() error {
	inside := func(name string, n, least, most int) error {
		if n < least || n > most {
			return fmt.Errorf("--%s: want %d to %d", name, least, most)
		}
		return nil
	}
	switch {
	case math.IsNaN(b.Rate) || b.Rate < 0 || b.Rate > 1e9:
		return errors.New("--rate: want a positive number")
	case b.Duration <= 0 || b.Duration > 24*time.Hour:
		return errors.New("--duration: want more than 0s and at most 24h")
	case b.Timeout <= 0 || b.Timeout > time.Hour:
		return errors.New("--timeout: want more than 0s and at most 1h")
	case math.IsNaN(b.MaxErrorRatio) || b.MaxErrorRatio < 0 || b.MaxErrorRatio > 1:
		return errors.New("--max-error-ratio: want 0 to 1")
	case b.Blocks != nil && b.Questions != "":
		return errors.New("--blocks and --questions: want one of them")
	case b.Index != 0 && b.Blocks == nil:
		return errors.New("--index: want --blocks as well")
	case b.InFlight > 1 && !b.any(true):
		return errors.New("--in-flight: want a WebSocket; over HTTP each connection has one request at a time")
	case b.Gzip && !b.any(false):
		return errors.New("--gzip: want http:// or https://; answers over WebSockets are not compressed")
	case b.Insecure && b.CA != "":
		return errors.New("--ca and --insecure: want one of them")
	}
	return errors.Join(inside("connections", b.Connections, 1, load.MaxConnections),
		inside("in-flight", b.InFlight, 1, load.MaxInFlight), inside("batch", b.Batch, 0, load.MaxBatch))
}

// any says whether a URL is of a WebSocket, or of HTTP.
func (b *bench) any(ws bool) bool {
	return slices.ContainsFunc(b.URLs, func(u benchURL) bool { return u.WS == ws })
}

// Run implements the command.
func (b *bench) Run(std streams) error {
	err := b.run(std)
	if wrong, ok := errors.AsType[process.Usage](err); ok {
		return process.Usage{Err: fmt.Errorf("%w\nTry 'ommer bench --help'", wrong.Err)}
	}
	return err
}

func (b *bench) run(std streams) error {
	if err := load.CheckFiles(b.Connections); err != nil {
		return process.Usage{Err: fmt.Errorf("--connections: %w", err)}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process
	var file io.WriteCloser
	if b.JSON != "" && b.JSON != "-" {
		f, err := os.Create(b.JSON) // before the run, which may take long
		if err != nil {
			return process.Usage{Err: fmt.Errorf("--json: %w", err)}
		}
		defer f.Close() //nolint:errcheck // print has closed it, or there is nothing in it
		file = f
	}
	c, keys, err := b.dialer(ctx, std.err)
	if err != nil {
		return err
	}
	d, err := load.NewDialer(c)
	if err != nil {
		return process.Usage{Err: err}
	}
	p := newProgress(std.err, b.Connections)
	started := time.Now()
	r, failed := load.Run(ctx, load.Config{
		Dialer: d, Connections: b.Connections, InFlight: b.InFlight, Rate: b.Rate,
		Ramp: b.Ramp, WarmUp: b.Warmup, Duration: b.Duration, Progress: p.tick,
	})
	p.end()
	var urls []string
	for _, u := range b.URLs {
		urls = append(urls, u.String())
	}
	report, err := r.Report(process.Version(), started, load.Settings{
		URLs: urls, Keys: keys, Questions: len(c.Questions), Connections: b.Connections, InFlight: b.InFlight,
		Batch: b.Batch, Rate: b.Rate, Gzip: b.Gzip, Verify: b.Verify,
		RampSeconds: b.Ramp.Seconds(), WarmUpSeconds: b.Warmup.Seconds(), Seconds: b.Duration.Seconds(),
	})
	if err != nil {
		return err
	}
	if err := b.print(std.out, file, &r, &report); err != nil {
		return err
	}
	switch ratio := r.ErrorRatio(); {
	case failed != nil:
		return hint(failed, slices.Collect(maps.Keys(r.Opening))...)
	case r.Wrong() > 0:
		return fmt.Errorf("%d answers were wrong", r.Wrong())
	case r.Right == 0:
		return r.Nothing()
	case ratio > b.MaxErrorRatio:
		return fmt.Errorf("%.3g of the calls and connections failed, more than --max-error-ratio %v", ratio, b.MaxErrorRatio)
	}
	return nil
}

// print writes the result where it is wanted. JSON on standard output stands alone; one
// that the file does not take leaves the text.
func (b *bench) print(out io.Writer, file io.WriteCloser, r *load.Result, report *load.Report) error {
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if b.JSON == "-" {
		_, err = out.Write(text)
		return err
	}
	err = report.Print(out)
	if err == nil && b.Histogram {
		fmt.Fprintln(out)
		err = r.PrintHistogram(out)
	}
	if file == nil {
		return err
	}
	_, wrong := file.Write(text)
	if wrong = errors.Join(wrong, file.Close()); wrong != nil {
		wrong = fmt.Errorf("--json: %w", wrong)
	}
	return errors.Join(err, wrong)
}

// dialer says whom to ask what. It looks for uncles if it must, and says so on w.
func (b *bench) dialer(ctx context.Context, w io.Writer) (c load.DialerConfig, keys int, err error) {
	c = load.DialerConfig{Batch: b.Batch, Verify: b.Verify, Sources: b.Source, Timeout: b.Timeout}
	if c.Endpoints, keys, err = b.endpoints(); err != nil {
		return c, 0, err
	}
	switch {
	case b.Questions != "":
		text, err := os.ReadFile(b.Questions)
		if err == nil {
			c.Questions, err = load.ReadQuestions(text)
		}
		if err != nil {
			return c, 0, process.Usage{Err: fmt.Errorf("--questions: %w", err)}
		}
	case b.Blocks != nil && b.Method == "number":
		c.Questions = load.Numbers(*b.Blocks, b.Index)
	default:
		if c.Questions, err = b.look(ctx, c, w); err != nil {
			return c, 0, err
		}
	}
	return c, keys, nil
}

// look asks the service for uncles that it has.
func (b *bench) look(ctx context.Context, c load.DialerConfig, w io.Writer) ([]load.Question, error) {
	var where []load.Range
	if b.Blocks != nil {
		where = []load.Range{*b.Blocks}
	}
	found, err := load.Look(ctx, c, where)
	if err != nil {
		return nil, hintLooking(fmt.Errorf("looking for uncles in the blocks %v: %w", found.Looked, err))
	}
	fmt.Fprintf(w, "Looked at the blocks %v: %d uncles, %d of them by the hash of their block.\n",
		found.Looked, len(found.Numbers), len(found.Hashes))
	qs := found.Numbers
	switch b.Method {
	case "hash":
		qs = found.Hashes
	case "mix":
		qs = nil
		for i := range max(len(found.Numbers), len(found.Hashes)) {
			for _, list := range [][]load.Question{found.Numbers, found.Hashes} {
				if len(list) > 0 {
					qs = append(qs, list[i%len(list)])
				}
			}
		}
	}
	if len(qs) == 0 {
		return nil, errors.New("nothing to ask: no uncles were found there; say where with --blocks, or what with --questions")
	}
	return qs, nil
}

// hint adds what helps against the failures behind an error, of these kinds.
func hint(err error, kinds ...string) error {
	for _, kind := range kinds {
		switch kind {
		case load.KindCertificate:
			return fmt.Errorf("%w; --ca names the certificates to trust, --insecure trusts any", err)
		case load.KindSource:
			return fmt.Errorf("%w; --source wants addresses of this machine", err)
		}
	}
	return err
}

// hintLooking adds what helps against a failure to look for uncles.
func hintLooking(err error) error {
	f, ok := errors.AsType[*load.Failure](err)
	switch {
	case !ok:
		return err
	case f.Kind == "HTTP status 429" || f.Kind == "handshake status 429":
		return fmt.Errorf("%w; --questions or --blocks says what to ask without looking", err)
	default:
		return hint(err, f.Kind)
	}
}

// readKeys reads keys, one on each line. Errors do not quote them.
func readKeys(text []byte) (list []string, err error) {
	number := 0
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
		number++
		switch line = strings.TrimSpace(line); {
		case line == "" || line[0] == '#':
		case strings.ContainsFunc(line, unicode.IsSpace):
			return nil, fmt.Errorf("line %d: want one key, without white space", number)
		default:
			list = append(list, line)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("it has no keys")
	}
	return list, nil
}

// endpoints are the URLs with each of the keys.
func (b *bench) endpoints() (list []load.Endpoint, keys int, err error) {
	var ca []byte
	if b.CA != "" {
		if ca, err = os.ReadFile(b.CA); err != nil {
			return nil, 0, process.Usage{Err: fmt.Errorf("--ca: %w", err)}
		}
		if !x509.NewCertPool().AppendCertsFromPEM(ca) {
			return nil, 0, process.Usage{Err: fmt.Errorf("--ca %s: want certificates in PEM", b.CA)}
		}
	}
	if b.KeysFile == "" && slices.ContainsFunc(b.URLs, func(u benchURL) bool { return u.NeedsKey() }) {
		return nil, 0, process.Usage{Err: errors.New("KEY in a URL stands for an API key: write one there, or give --keys-file")}
	}
	var lines []string
	if b.KeysFile != "" {
		text, err := os.ReadFile(b.KeysFile)
		if err != nil {
			return nil, 0, fmt.Errorf("--keys-file: %w", err)
		}
		if lines, err = readKeys(text); err != nil {
			return nil, 0, process.Usage{Err: fmt.Errorf("--keys-file: %w", err)}
		}
	}
	for k := range max(len(lines), 1) {
		for _, u := range b.URLs {
			e := u.Endpoint
			if e.Insecure, e.Gzip = b.Insecure, b.Gzip; e.TLS {
				e.CA = ca
			}
			if len(lines) > 0 {
				var ok bool
				if e, ok = e.WithKey(lines[k]); !ok {
					return nil, 0, process.Usage{Err: errors.New("--keys-file: want KEY as the last part of each URL's path")}
				}
			}
			list = append(list, e)
		}
	}
	return list, max(len(lines), 1), nil
}
